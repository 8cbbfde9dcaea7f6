"""The SQL door to consistency across acquisitions: what its macros gather, compared per scope."""

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import polars as pl
import pyarrow as pa

from croma_sql.acquisitions.compared import (
    Consistency,
    check_complete,
    check_depth,
    checked_options,
)
from croma_sql.acquisitions.paired import compare_units
from croma_sql.acquisitions.units import UnitNames, pool_rows
from croma_sql.errors import CohortError
from croma_sql.udfs.doors.duckdb_lists import bounds_of, given, one_array
from croma_sql.udfs.threads import IsStopped
from croma_sql.vectors import as_matrix

# What DuckDB prints as the missing function where a stored view is opened without `register`.
CONSISTENCY_KERNEL = (
    "the croma_sql kernel of consistency"
    " (to add it, run in python: import croma_sql; croma_sql.register(con))"
)
CONSISTENCY = (
    "STRUCT("
    "units STRUCT(unit BIGINT, acquisition BIGINT, n_samples INTEGER, intra_distance DOUBLE,"
    " median_distance DOUBLE)[],"
    " unit_pairs STRUCT(unit BIGINT, acquisition_a BIGINT, acquisition_b BIGINT, distance DOUBLE,"
    " rank INTEGER, nearest_unit BIGINT, profile_r DOUBLE)[],"
    " unit_neighbourhoods STRUCT(unit BIGINT, n_units INTEGER, depth INTEGER,"
    " shared_at INTEGER[])[],"
    " acquisition_pairs STRUCT(acquisition_a BIGINT, acquisition_b BIGINT, n_units INTEGER,"
    " mantel_r DOUBLE, mantel_p DOUBLE, permutations INTEGER)[],"
    " acquisitions STRUCT(acquisition BIGINT, n_vectors INTEGER, mean_distance DOUBLE,"
    " effective_rank DOUBLE)[])"
)
TABLES = ("units", "unit_pairs", "unit_neighbourhoods", "acquisition_pairs", "acquisitions")


def compare_scopes(
    vectors: pa.ChunkedArray,
    units: pa.ChunkedArray,
    acquisitions: pa.ChunkedArray,
    incomplete: pa.ChunkedArray,
    on_bad_vectors: pa.ChunkedArray,
    permutations: pa.ChunkedArray,
    seed: pa.ChunkedArray,
    depth: pa.ChunkedArray,
    threads: pa.ChunkedArray,
    scopes: pa.ChunkedArray,
    columns: pa.ChunkedArray,
    is_stopped: IsStopped,
) -> pa.StructArray:
    """Compare the units of each scope (one row of lists); returns one `CONSISTENCY` per scope.

    Units and acquisitions go by the first place in the lists of the scope, from 1, that has them,
    so that their names keep the types they have in DuckDB.
    """
    lists = [one_array(column) for column in (vectors, units, acquisitions)]
    of_scopes = [slice(start, stop) for start, stop in pairwise(bounds_of(lists[0]))]
    flat = [column.flatten() for column in lists]
    asked = (incomplete, on_bad_vectors, permutations, seed, depth, scopes, columns)
    rows = zip(*(column.to_pylist() for column in asked), strict=True)
    return _result(
        [
            _compare(
                [column[some] for column in flat], _Asked(*row), threads[0].as_py(), is_stopped
            )
            for some, row in zip(of_scopes, rows, strict=True)
        ]
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of one scope, as it came."""

    incomplete: Any
    on_bad_vectors: Any
    permutations: Any
    seed: Any
    depth: Any
    scope: str | None
    columns: dict[str, Any]

    def names(self) -> UnitNames:
        """Give the names of its columns."""
        unit, acquisition, embedding = (
            given(self.columns[name], name) for name in ("unit", "acquisition", "embedding")
        )
        where = "" if self.scope is None else f"scope {self.scope!r}"
        return UnitNames(unit, acquisition, embedding, where)


def _compare(
    columns: list[pa.Array], asked: _Asked, threads: int, is_stopped: IsStopped
) -> Consistency:
    vectors, unit, acquisition = columns
    names = asked.names()
    permutations, seed, depth = checked_options(
        given(asked.permutations, "permutations"), given(asked.seed, "seed"), asked.depth or None
    )
    try:
        matrix = as_matrix(vectors, names.embedding)
    except CohortError as error:
        raise CohortError(f"{names.prefix}{error}") from error
    pooled = pool_rows(
        matrix,
        unit,
        acquisition,
        names,
        given(asked.incomplete, "incomplete"),
        given(asked.on_bad_vectors, "on_bad_vectors"),
    )
    if asked.depth != 0:
        check_complete(pooled.n_complete, names.prefix)
    if asked.depth:
        check_depth(depth, pooled.n_complete, "k", names.prefix)
    return compare_units(
        pooled,
        pooled.unit_row + 1,
        pooled.acquisition_row + 1,
        (permutations, seed, 0 if asked.depth == 0 else depth),
        threads,
        where=names.prefix,
        is_stopped=is_stopped,
    )


def _result(found: list[Consistency]) -> pa.StructArray:
    """Put each table of all scopes into one list per scope."""
    lists = {name: _lists([getattr(one, name) for one in found]) for name in TABLES}
    return pa.StructArray.from_arrays(list(lists.values()), names=list(lists))


def _lists(frames: list[pl.DataFrame]) -> pa.LargeListArray:
    lengths = [len(frame) for frame in frames]
    rows = pl.concat(frames).to_struct().to_arrow()
    return pa.LargeListArray.from_arrays(pa.array([0, *accumulate(lengths)], pa.int64()), rows)
