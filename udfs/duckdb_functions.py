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

from croma_sql.arrays import checked_m
from croma_sql.cohort import Names, as_text, build_scope
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

_STORED, _TEMPORARY = "CREATE OR REPLACE MACRO", "CREATE OR REPLACE TEMP MACRO"
_registering = threading.Lock()


def register(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Add ``croma_margins``, ``croma_neighbours``, ``f0`` and ``ltm`` to a connection.

    Any number of times, on any connection. The macros are stored in the current database, where
    cursors and later sessions find them (``f0`` and ``ltm`` are plain SQL and need nothing else);
    in a database opened read-only they are temporary, and each cursor needs its own call.

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
        found = "SELECT count(*) FROM duckdb_functions() WHERE function_name = ?"
        if con.execute(found, [KERNEL]).fetchall() == [(0,)]:
            # No parameter types: they bind as ANY, so vectors of every dimension and precision do.
            con.create_function(  # type: ignore[call-overload] # its types forget Arrow functions
                KERNEL, _search_scopes, None, NEIGHBOURS, type="arrow", null_handling="special"
            )
        writable = (
            "SELECT NOT readonly FROM duckdb_databases() WHERE database_name = current_database()"
        )
        stored = con.execute(writable).fetchall() == [(True,)]
        for statement in macro_statements():
            con.execute(statement if stored else statement.replace(_STORED, _TEMPORARY, 1))
    return con


def macro_statements() -> Iterator[str]:
    """Text of ``sql/macros/*.sql``, each one CREATE OR REPLACE MACRO, helpers first."""
    order = {"croma_search.sql": 1, "croma_margins.sql": 2, "croma_neighbours.sql": 2}
    folder = files("croma_sql.sql") / "macros"
    for file in sorted(folder.iterdir(), key=lambda file: (order.get(file.name, 0), file.name)):
        yield file.read_text(encoding="utf-8")


def _search_scopes(
    sample_ids: pa.ChunkedArray,
    vectors: pa.ChunkedArray,
    labels: pa.ChunkedArray,
    confounders: pa.ChunkedArray,
    groups: pa.ChunkedArray,
    m: pa.ChunkedArray,
    on_bad_vectors: pa.ChunkedArray,
    threads: pa.ChunkedArray,
    names: pa.ChunkedArray,
) -> pa.ListArray:
    """Search each scope (one row of lists); returns one list of `NEIGHBOURS` per scope."""
    results = []
    for row in range(len(sample_ids)):
        columns = names[row].as_py()
        result = _search_scope(
            [column[row].values for column in (vectors, labels, confounders, groups, sample_ids)],
            _given(m[row].as_py(), "m"),
            _given(on_bad_vectors[row].as_py(), "on_bad_vectors"),
            threads[row].as_py(),
            Names(*(_given(columns[name], name) for name in _NAMED)),
        )
        results.append(result)
    offsets = np.cumsum([0, *map(len, results)])
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.concat_arrays(results))


_NAMED = ("sample_id", "embedding", "label", "confounder", "group_id")


def _given(value: Any, name: str) -> Any:
    if value is None:
        raise CohortError(f"{name} is NULL; leave it out to take its default")
    return value


def _search_scope(
    columns: list[pa.Array], m: int, on_bad_vectors: OnBadVectors, threads: int, names: Names
) -> pa.StructArray:
    scope = build_scope(*columns, names=names, on_bad_vectors=on_bad_vectors)
    edges = typed_neighbours(scope, checked_m(m), threads=threads)
    lists = neighbour_lists(edges, as_text(columns[-1], names.sample_id))
    fields = {
        **dict(zip(lists.type.names, lists.flatten(), strict=True)),
        "usable": pa.array(edges.usable),
    }
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
