"""The SQL door: the search as a DuckDB function, and the macros of ``sql/``.

DuckDB hands a search one row per scope, with the columns of the scope as lists, up to 2,048 scopes
at once and from several threads. Python cannot define table functions or aggregates there, so the
macros gather a relation into lists, search and unnest what comes back. A search is four functions,
so that DuckDB can leave it at any time: see `jobs` and ``croma_search.sql``.
"""

import threading
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.cohort import Columns, Names, build_scopes, checked_k, checked_m
from croma_sql.edges import nearest_lists, typed_lists
from croma_sql.errors import CohortError
from croma_sql.udfs import ctrl_c
from croma_sql.udfs.doors import duckdb_silhouettes
from croma_sql.udfs.doors.duckdb_consistency import CONSISTENCY, CONSISTENCY_KERNEL, compare_scopes
from croma_sql.udfs.doors.duckdb_lists import beginning, bounds_of, given, one_array, take, wait
from croma_sql.udfs.neighbours.search import search_all
from croma_sql.udfs.scope import Edges, Scope, Wanted
from croma_sql.udfs.threads import IsStopped
from croma_sql.vectors import OnBadVectors, as_matrix, in_memory

# What DuckDB prints as the missing function where a stored view is opened without `register`.
KERNEL = (
    "the croma_sql kernel (to add it, run in python: import croma_sql; croma_sql.register(con))"
)
NEIGHBOURS = (
    "STRUCT(so_id VARCHAR[], so_distance DOUBLE[], os_id VARCHAR[], os_distance DOUBLE[],"
    " nearest_id VARCHAR[], nearest_type VARCHAR[], nearest_distance DOUBLE[],"
    " nearest_label_hit BOOLEAN[], nearest_confounder_hit BOOLEAN[], usable BOOLEAN)[]"
)

_HAS_KERNEL = "SELECT count(*) FROM duckdb_functions() WHERE function_name = ?"
_WRITABLE = "SELECT NOT readonly FROM duckdb_databases() WHERE database_name = current_database()"
_STORED, _TEMPORARY = "CREATE OR REPLACE MACRO", "CREATE OR REPLACE TEMP MACRO"
_registering = threading.Lock()


def register(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Add the functions ``croma_margins``, ``f0`` and their like to a connection.

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
            _create_functions(con)
        stored = con.execute(_WRITABLE).fetchall() == [(True,)]
        for statement in macro_statements():
            con.execute(statement if stored else statement.replace(_STORED, _TEMPORARY, 1))
    return con


def _create_functions(con: duckdb.DuckDBPyConnection) -> None:
    """Create the functions of the macros, that by which they are recognised last."""

    def create(on: duckdb.DuckDBPyConnection) -> None:
        duckdb_silhouettes.create_function(on)
        on.create_function("croma_search_query", ctrl_c.watched_query, [], "BIGINT")
        for name, function, takes, gives in (
            # No parameter types: they bind as ANY, so every kind of vector does.
            ("croma_search_begin", beginning(_search_scopes), None, "BIGINT"),
            ("croma_consistency_begin", beginning(compare_scopes), None, "BIGINT"),
            ("croma_search_wait", wait, ["BIGINT"], "BIGINT"),
            (CONSISTENCY_KERNEL, take, ["BIGINT"], CONSISTENCY),
            (KERNEL, take, ["BIGINT"], NEIGHBOURS),
        ):
            on.create_function(  # type: ignore[call-overload] # its types forget Arrow functions
                name, function, takes, gives, type="arrow", null_handling="special"
            )

    try:
        create(con)
    except duckdb.NotImplementedException:  # `con` remembers one that was rolled back
        with con.cursor() as cursor:
            create(cursor)


def macro_statements() -> Iterator[str]:
    """Text of ``sql/macros`` and ``sql/designs``: each one a macro, those that others use first."""
    for folder in ("parts", "search", "consistency", "statistics", "centre", "comparing"):
        yield from _texts(f"macros/{folder}")
    yield from design_statements()


def design_statements() -> Iterator[str]:
    """Text of ``sql/designs``: macros over plain rows, which need no function of ours."""
    yield from _texts("designs")


def _texts(folder: str) -> Iterator[str]:
    for file in sorted((files("croma_sql.sql") / folder).iterdir(), key=lambda file: file.name):
        yield file.read_text(encoding="utf-8")


def _search_scopes(
    sample_names: pa.ChunkedArray,
    vectors: pa.ChunkedArray,
    labels: pa.ChunkedArray,
    confounders: pa.ChunkedArray,
    groups: pa.ChunkedArray,
    m: pa.ChunkedArray,
    k: pa.ChunkedArray,
    on_bad_vectors: pa.ChunkedArray,
    threads: pa.ChunkedArray,
    scopes: pa.ChunkedArray,
    columns: pa.ChunkedArray,
    is_stopped: IsStopped,
) -> pa.LargeListArray:
    """Search each scope (one row of lists); returns one list of `NEIGHBOURS` per scope.

    What is asked for is the same for every scope, but where a macro stands in a LATERAL join or a
    correlated subquery.
    """
    relation = [sample_names, vectors, labels, confounders, groups, scopes, columns]
    asked = list(zip(m.to_pylist(), k.to_pylist(), on_bad_vectors.to_pylist(), strict=True))
    found, places = [], []
    for one in dict.fromkeys(asked):
        rows = [row for row, other in enumerate(asked) if other == one]
        some = relation if len(rows) == len(asked) else [c.take(pa.array(rows)) for c in relation]
        found.append(
            _search_alike(
                *some,
                m=one[0],
                k=one[1],
                on_bad_vectors=one[2],
                threads=threads[0].as_py(),
                is_stopped=is_stopped,
            )
        )
        places += rows
    if len(found) == 1:
        return found[0]
    return pa.concat_arrays(found).take(pa.array(np.argsort(places)))


def _search_alike(
    sample_names: pa.ChunkedArray,
    vectors: pa.ChunkedArray,
    labels: pa.ChunkedArray,
    confounders: pa.ChunkedArray,
    groups: pa.ChunkedArray,
    scopes: pa.ChunkedArray,
    columns: pa.ChunkedArray,
    *,
    m: Any,
    k: Any,
    on_bad_vectors: Any,
    threads: int,
    is_stopped: IsStopped,
) -> pa.LargeListArray:
    lists = [one_array(c) for c in (labels, confounders, groups, sample_names)]
    bounds = bounds_of(lists[0])
    names = [
        Names(
            sample_id=given(named["sample_id"], "sample_id"),
            embedding=given(named["embedding"], "embedding"),
            label=given(named["label"], "label"),
            confounder=given(named["confounder"], "confounder"),
            group=given(named["group_id"], "group_id"),
            where="" if scope is None else f"scope {scope!r}",
        )
        for scope, named in zip(scopes.to_pylist(), columns.to_pylist(), strict=True)
    ]
    wanted = Wanted(checked_m(given(m, "m")), 0 if k is None else checked_k(k))
    built = _scopes(
        one_array(vectors),
        Columns(*(column.flatten() for column in lists)),
        bounds,
        names,
        given(on_bad_vectors, "on_bad_vectors"),
    )
    found = search_all(built, wanted, threads=threads, is_stopped=is_stopped)
    rows = _result(found, built, lists[3].flatten())
    return pa.LargeListArray.from_arrays(pa.array(bounds), rows)


def _scopes(
    vectors: pa.Array,
    columns: Columns,
    bounds: NDArray[np.int64],
    names: list[Names],
    on_bad_vectors: OnBadVectors,
) -> list[Scope]:
    """Scopes over one matrix; over one each where their vectors have different dimensions."""
    try:
        together = in_memory(as_matrix(vectors.flatten(), names[0].embedding))
    except CohortError:
        of_scopes = [slice(start, stop) for start, stop in pairwise(bounds)]
        return [
            _scope(vectors.flatten()[some], columns.slice(some), named, on_bad_vectors)
            for some, named in zip(of_scopes, names, strict=True)
        ]
    return build_scopes(together, np.arange(bounds[-1]), columns, bounds, names, on_bad_vectors)


def _scope(
    vectors: pa.Array, columns: Columns, names: Names, on_bad_vectors: OnBadVectors
) -> Scope:
    try:
        matrix = as_matrix(vectors, names.embedding)
    except CohortError as error:
        raise CohortError(f"{names.prefix}{error}") from error
    every_row, bounds = np.arange(len(matrix)), [0, len(matrix)]
    return build_scopes(in_memory(matrix), every_row, columns, bounds, [names], on_bad_vectors)[0]


def _result(found: list[Edges], scopes: list[Scope], ids: pa.Array) -> pa.StructArray:
    typed, nearest = typed_lists(found, ids), nearest_lists(found, scopes, ids)
    fields = dict(zip(typed.type.names, typed.flatten(), strict=True))
    fields |= {f"nearest_{name}": nearest.field(name) for name in nearest.type.names}
    fields["usable"] = pa.array(np.concatenate([edges.usable for edges in found]))
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
