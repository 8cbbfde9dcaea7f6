"""Rows of a warehouse, matched to the observations of AnnData and in the forms these take."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from croma_sql.errors import CromaSqlError, SourceError, listed
from croma_sql.exports.scored import Scope, margins
from croma_sql.exports.tables import asked, frame_of
from croma_sql.session import connect

SAMPLE = "sample_id"
FIRST = 4  # names told, one more than a message shows
MARGINS = ("margin", "undefined_reason", "d_so", "d_os")


@dataclass(frozen=True, slots=True)
class Matched:
    """What became of the observations, and of the rows for them.

    columns : that were added
    n : observations that have a row; n_without : that have none, and the first of them
    n_unused : samples that have a row but no observation, and the first of them
    """

    columns: list[str]
    n: int
    n_without: int
    without: list[str]
    n_unused: int
    unused: list[str]


def margins_of_samples(warehouse: str | Path, scope: Scope, m: int, key: str) -> pl.DataFrame:
    """Read margins, in columns whose names begin with ``key``."""
    with connect(warehouse) as con:
        _, found = margins(con, warehouse, scope, m)
        relation = found.select(*map(duckdb.ColumnExpression, (SAMPLE, *MARGINS)))
        frame = frame_of(con, relation)
    return frame.rename({name: f"{key}_{name}" for name in MARGINS})


def rows_of_samples(warehouse: str | Path, query: str) -> pl.DataFrame:
    """Read the rows of a query.

    Raises
    ------
    CromaSqlError
        It has no sample_id, or has one twice.
    """
    with connect(warehouse) as con:
        relation = asked(con, query)
        if SAMPLE not in relation.columns or len(relation.columns) < 2:
            raise CromaSqlError(
                f"the query has columns {listed(relation.columns, show=50)}; it needs sample_id, "
                "and others beside it"
            )
        frame = frame_of(con, relation)
    frame = frame.with_columns(pl.col(SAMPLE).cast(pl.String)).drop_nulls(SAMPLE)
    twice = frame.filter(pl.col(SAMPLE).is_duplicated())[SAMPLE].unique(maintain_order=True)
    if len(twice):
        raise CromaSqlError(
            f"the query has {len(twice)} samples in more than one row: {listed(twice)}. An "
            "observation takes one: name one benchmark, encoder and subset in its WHERE"
        )
    return frame.select(SAMPLE, pl.exclude(SAMPLE))


def beside(
    rows: pl.DataFrame, ids: Sequence[Any], taken: Sequence[str]
) -> tuple[dict[str, Any], Matched]:
    """Give the columns of rows in the order of observations.

    Parameters
    ----------
    ids : sample of each observation; some may have none, or share one
    taken : names that observations have

    Raises
    ------
    CromaSqlError
        A name that is taken, or no observation that has a row.
    """
    import pandas as pd

    names = rows.columns[1:]
    for name in names:
        if name in taken:
            raise CromaSqlError(
                f"obs has a column {name!r} already; give these other names with --key, or in the "
                "query (Python: key=, query=)"
            )
        if name in ("", ".") or set(name) & {"/", "\0"}:  # which lead elsewhere in HDF5
            raise CromaSqlError(f"AnnData takes no column of the name {name!r}; say AS another")
    texts = [None if pd.isna(one) else _text(one) for one in ids]
    sought = pl.DataFrame({SAMPLE: pl.Series(texts, dtype=pl.String)})
    found = sought.join(rows, on=SAMPLE, how="left", maintain_order="left")
    if sought.is_empty():
        raise SourceError("there are no observations that a row could stand beside")
    has_row = pl.col(SAMPLE).is_in(rows[SAMPLE].implode()).fill_null(False)
    without = sought.filter(~has_row)[SAMPLE]
    if len(without) == len(sought):
        raise SourceError(
            f"no observation is a sample: these are {listed(without.drop_nulls())}, samples "
            f"{listed(rows[SAMPLE])}. Name the column of obs that holds sample ids with --on "
            "(Python: on=)"
        )
    unused = rows.filter(~pl.col(SAMPLE).is_in(sought[SAMPLE].implode()))[SAMPLE]
    matched = Matched(
        columns=names,
        n=len(sought) - len(without),
        n_without=len(without),
        without=without.head(FIRST).to_list(),
        n_unused=len(unused),
        unused=unused.head(FIRST).to_list(),
    )
    return {name: _element(found[name]) for name in names}, matched


def _text(one: Any) -> str:
    """Write an id as samples have it; pandas makes whole numbers floats where some are missing."""
    return str(int(one)) if isinstance(one, float) and one.is_integer() else str(one)


def _element(column: pl.Series) -> Any:
    """Write a column as AnnData keeps it: text as categories, whole numbers whole."""
    import pandas as pd

    dtype = column.dtype
    if dtype.is_nested() or dtype == pl.Binary:
        raise CromaSqlError(
            f"column {column.name!r} holds {dtype}, which obs cannot; cast it in the query"
        )
    if dtype == pl.Boolean or dtype.is_integer():
        kind = "boolean" if dtype == pl.Boolean else "Int64"
        return pd.array(column.to_list(), dtype=kind) if column.null_count() else column.to_numpy()
    if dtype.is_numeric() or dtype == pl.Null:
        wide = column if dtype == pl.Float32 else column.cast(pl.Float64)
        return wide.fill_null(float("nan")).to_numpy()
    return pd.Categorical(column.cast(pl.String).to_list())
