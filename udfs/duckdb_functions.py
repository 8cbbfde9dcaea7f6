"""The SQL door: the search as a DuckDB function, and the macros of ``sql/macros``.

DuckDB hands the function one row per scope, with the columns of the scope as lists, up to 2,048
scopes at once and from several threads. Python cannot define table functions or aggregates there,
so the macros gather a relation into lists, call the function and unnest what it returns.
"""

import threading
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from croma_sql.cohort import Names, build_scope, checked_m
from croma_sql.edges import neighbour_lists
from croma_sql.errors import CohortError
from croma_sql.udfs.search import typed_neighbours
from croma_sql.vectors import OnBadVectors

# What DuckDB prints as the missing function where a stored view is opened without `register`.
KERNEL = (
    "the croma_sql kernel (to add it, run in python: import croma_sql; croma_sql.register(con))"
)
NEIGHBOURS = (
    "STRUCT(so_id VARCHAR[], so_distance DOUBLE[], os_id VARCHAR[], os_distance DOUBLE[],"
    " usable BOOLEAN)[]"
)

_HAS_KERNEL = "SELECT count(*) FROM duckdb_functions() WHERE function_name = ?"
_WRITABLE = "SELECT NOT readonly FROM duckdb_databases() WHERE database_name = current_database()"
_STORED, _TEMPORARY = "CREATE OR REPLACE MACRO", "CREATE OR REPLACE TEMP MACRO"
_registering = threading.Lock()


def register(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Add ``croma_margins``, ``croma_neighbours``, ``f0`` and ``ltm`` to a connection.

    Any number of times, on any connection. The macros are stored in the current database, where
    cursors and later sessions find them (``f0`` and ``ltm`` are plain SQL and need nothing else);
    in a database opened read-only they are temporary, and each cursor needs its own call. After
    ``USE another_database``, call it again.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection

    Returns
    -------
    duckdb.DuckDBPyConnection
        The same connection.

    Examples
    --------
    >>> import duckdb
    >>> con = register(duckdb.connect())
    >>> con.sql("SELECT f0(x), ltm(x, 0.5) FROM (VALUES (-1.0), (0.0), (1.0)) t(x)").fetchall()
    [(0.6666666666666666, -0.5)]
    """
    with _registering:  # two cursors of one database may not create the same entry at once
        if con.execute(_HAS_KERNEL, [KERNEL]).fetchall() == [(0,)]:
            _create_kernel(con)
        stored = con.execute(_WRITABLE).fetchall() == [(True,)]
        for statement in macro_statements():
            con.execute(statement if stored else statement.replace(_STORED, _TEMPORARY, 1))
    return con


def _create_kernel(con: duckdb.DuckDBPyConnection) -> None:
    """Create the function. No parameter types: they bind as ANY, so every kind of vector does."""

    def create(on: duckdb.DuckDBPyConnection) -> None:
        on.create_function(  # type: ignore[call-overload] # its types forget Arrow functions
            KERNEL, _search_scopes, None, NEIGHBOURS, type="arrow", null_handling="special"
        )

    try:
        create(con)
    except duckdb.NotImplementedException:  # `con` remembers one that was rolled back
        with con.cursor() as cursor:
            create(cursor)


def macro_statements() -> Iterator[str]:
    """Text of ``sql/macros/*.sql``, each one CREATE OR REPLACE MACRO, helpers first."""
    order = {"croma_search.sql": 1, "croma_margins.sql": 2, "croma_neighbours.sql": 2}
    folder = files("croma_sql.sql") / "macros"
    for file in sorted(folder.iterdir(), key=lambda file: (order.get(file.name, 0), file.name)):
        yield file.read_text(encoding="utf-8")


def _search_scopes(
    sample_names: pa.ChunkedArray,
    vectors: pa.ChunkedArray,
    labels: pa.ChunkedArray,
    confounders: pa.ChunkedArray,
    groups: pa.ChunkedArray,
    m: pa.ChunkedArray,
    on_bad_vectors: pa.ChunkedArray,
    threads: pa.ChunkedArray,
    scopes: pa.ChunkedArray,
    columns: pa.ChunkedArray,
) -> pa.ListArray:
    """Search each scope (one row of lists); returns one list of `NEIGHBOURS` per scope."""
    results = []
    for row in range(len(sample_names)):
        name = scopes[row].as_py()
        named = columns[row].as_py()
        result = _search_scope(
            [column[row].values for column in (vectors, labels, confounders, groups, sample_names)],
            _given(m[row].as_py(), "m"),
            _given(on_bad_vectors[row].as_py(), "on_bad_vectors"),
            threads[row].as_py(),
            Names(
                sample_id=_given(named["sample_id"], "sample_id"),
                embedding=_given(named["embedding"], "embedding"),
                label=_given(named["label"], "label"),
                confounder=_given(named["confounder"], "confounder"),
                group=_given(named["group_id"], "group_id"),
                where="" if name is None else f"scope {name!r}",
            ),
        )
        results.append(result)
    offsets = np.cumsum([0, *map(len, results)])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.concat_arrays(results))


def _given(value: Any, name: str) -> Any:
    if value is None:
        raise CohortError(f"{name} is NULL; leave it out to take its default")
    return value


def _search_scope(
    columns: list[pa.Array], m: Any, on_bad_vectors: OnBadVectors, threads: int, names: Names
) -> pa.StructArray:
    scope = build_scope(*columns, names=names, on_bad_vectors=on_bad_vectors)
    edges = typed_neighbours(scope, checked_m(m), threads=threads)
    lists = neighbour_lists(edges, columns[-1])
    fields = {
        **dict(zip(lists.type.names, lists.flatten(), strict=True)),
        "usable": pa.array(edges.usable),
    }
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
