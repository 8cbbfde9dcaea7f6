"""The design of labels under confounders: which samples can have a margin, before any search."""

from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column, checked_m
from croma_sql.connection import open_duckdb
from croma_sql.errors import CohortError
from croma_sql.udfs.doors.duckdb_functions import design_statements


def design(label: Any, confounder: Any, group: Any, *, m: int = 5, by: Any = None) -> pl.DataFrame:
    """Count the rows of every label under every confounder, and those that can have no margin.

    Parameters
    ----------
    label, confounder, group : (n,) sequences, as of `margins`
    m : int, default 5
        Neighbours per type.
    by : (n,) sequence, optional
        Each value is a scope of its own, as in ``.over(by)``.

    Returns
    -------
    polars.DataFrame
        One row per scope, label and confounder, sorted: ``scope``, ``label``, ``confounder``,
        ``n``, ``n_groups``, ``so_candidates``, ``os_candidates`` (fewest eligible candidates of any
        of its rows), ``n_few_so``, ``n_few_os``, ``n_undefined``, ``problem`` (words, or NULL). The
        macro ``croma_design`` gives the same in SQL.

    Raises
    ------
    CohortError
        Columns of different lengths; m that is no whole number of at least 1.

    Examples
    --------
    >>> design(["a", "a", "b"], ["x", "y", "x"], [1, 2, 3], m=1)["n_undefined"].to_list()
    [0, 1, 1]
    """
    return _asked("croma_design", "scope, label, confounder", label, confounder, group, m, by)


def design_problems(
    label: Any, confounder: Any, group: Any, *, m: int = 5, by: Any = None
) -> pl.DataFrame:
    """Name what is wrong with a design, and what to change; parameters and errors as in `design`.

    Returns
    -------
    polars.DataFrame
        ``scope``, ``problem``, ``n`` (rows it is about), ``words``; no rows for a sound design. See
        ``sql/designs/croma_design_problems.sql``.

    Examples
    --------
    >>> design_problems(["a", "a", "b", "b"], ["x", "x", "y", "y"], [1, 2, 3, 3], m=1)["problem"][0]
    'confounded'
    """
    return _asked("croma_design_problems", "scope, problem", label, confounder, group, m, by)


def _asked(
    macro: str, order: str, label: Any, confounder: Any, group: Any, m: int, by: Any
) -> pl.DataFrame:
    given = {"label": label, "confounder": confounder, "group_id": group}
    columns = {name: as_column(values, name) for name, values in given.items()}
    lengths = {len(column) for column in columns.values()}
    scope = pa.nulls(len(columns["label"]), pa.string()) if by is None else as_column(by, "by")
    if len(lengths | {len(scope)}) > 1:
        told = ", ".join(f"{name!r} has {len(column)}" for name, column in columns.items())
        raise CohortError(f"columns differ in length: {told}, 'by' has {len(scope)} rows")
    with open_duckdb() as con:
        for statement in design_statements():
            con.execute(statement)
        con.register("rows", pa.table(columns | {"by": scope}))
        query = f"FROM {macro}('rows', m := $m, \"by\" := 'by') ORDER BY {order}"
        found: pl.DataFrame = con.sql(query, params={"m": checked_m(m)}).pl()
        return found


def benchmark_design(rows: pa.Table, m: int = 5) -> pl.DataFrame:
    """Count the rows of a benchmark as `design` does; a scope is a subset, a stratum, or both."""
    return design(*_columns(rows), m=m, by=_scope(rows))


def words_of_problems(rows: pa.Table, m: int = 5, show: int = 3) -> list[str]:
    """Say what is wrong with the rows of a benchmark, each problem once, in its first scopes."""
    found = design_problems(*_columns(rows), m=m, by=_scope(rows))
    ids, groups = (pc.count_distinct(rows.column(name)) for name in ("sample_id", "group_id"))
    if groups != ids:  # then a group has several rows, be they of several scopes
        found = found.filter(pl.col("problem") != "group_per_row")
    n_scopes = pc.count_distinct(_scope(rows), mode="all").as_py()
    said = []
    for problem in found["problem"].unique(maintain_order=True):
        some = found.filter(pl.col("problem") == problem)
        told = [
            words if scope is None else f"{scope}: {words}"
            for scope, words in some.select("scope", "words").head(show).rows()
        ]
        more = (
            f"; and so in {len(some) - show} more of {n_scopes} scopes" if len(some) > show else ""
        )
        said.append("; ".join(told) + more)
    return said


def _columns(rows: pa.Table) -> list[pa.ChunkedArray]:
    return [rows.column(name) for name in ("label", "confounder", "group_id")]


def _scope(rows: pa.Table) -> pa.ChunkedArray:
    """Name the scope of every row: its subset, what it must match, or both; NULL where neither."""
    named = [rows.column(name) for name in ("subset", "matched")]
    given = [column for column in named if column.null_count < len(column)]
    if not given:
        return pa.chunked_array([pa.nulls(len(rows), pa.string())])
    return pc.binary_join_element_wise(*given, " ")
