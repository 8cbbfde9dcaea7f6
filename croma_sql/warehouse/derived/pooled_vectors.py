"""Vectors on their way into the group that they are in, and the one vector of each group out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from croma_sql.errors import WarehouseError, listed
from croma_sql.udfs.acquisitions.pooling import Maxima, Pool
from croma_sql.udfs.scope import Float, Int
from croma_sql.vectors import Matrix, in_memory, with_direction
from croma_sql.warehouse.data.embedding_files import ROWS_AT_ONCE, read_vectors
from croma_sql.warehouse.derived.groups import NOWHERE, SAMPLE, Groups
from croma_sql.warehouse.derived.pooled import How
from croma_sql.warehouse.parquet import WRITING, metadata, read_footer
from croma_sql.warehouse.scoring.vectors import Shape

NOTHING_LEFT = 1e-12  # of a mean of vectors of length 1: what rounding leaves where they cancel


@dataclass(frozen=True, slots=True)
class Pooled:
    """One vector per group.

    read : those of some groups, float64; NaN where `count` is 0
    count : of every group, the vectors that went in
    n_null : vectors passed over as they are NULL
    """

    read: Callable[[slice], Float]
    count: Int
    n_null: int


def pooled(
    files: list[Path],
    groups: Groups,
    d: int,
    how: How,
    on_progress: Callable[[float], None] | None,
) -> Pooled:
    """Read every vector once, and hold a sum or a maximum for each group."""
    add, read, count = _kept(len(groups.table), d, how)
    total = sum(read_footer(path).num_rows for path in files)
    done = n_null = 0
    for path in files:
        for ids, matrix in read_vectors(path):
            place = groups.places(ids)
            is_null = np.isnan(matrix[:, 0])  # a vector that is not NULL is finite
            n_null += int(np.count_nonzero(is_null & (place != NOWHERE)))
            place[is_null] = NOWHERE
            add(matrix, place)
            done += len(ids)
            if on_progress is not None:
                on_progress(done / total)
    pa.default_memory_pool().release_unused()
    return Pooled(read, count, n_null)


def write(
    file: BinaryIO, groups: Groups, vectors: Pooled, shape: Shape, how: How, about: dict[str, Any]
) -> None:
    """Write the vectors of groups that have one.

    Raises
    ------
    WarehouseError
        A vector without a direction.
    """
    kind = pa.list_(pa.from_numpy_dtype(shape.dtype), shape.d)
    schema = pa.schema({SAMPLE: pa.string(), "embedding": kind})
    ids = groups.table.column(SAMPLE)
    lost: list[str] = []
    with pq.ParquetWriter(
        file, schema, use_dictionary=False, write_statistics=[SAMPLE], **WRITING
    ) as writer:
        for start in range(0, len(ids), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            there = vectors.count[some] > 0
            matrix = vectors.read(some)[there].astype(shape.dtype)
            some_ids = ids[some].filter(pa.array(there))
            lost += some_ids.filter(pa.array(_without_direction(matrix, how))).to_pylist()
            column = pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), type=kind)
            writer.write_table(pa.table([some_ids, column], schema=schema))
        if lost:
            raise WarehouseError(
                f"the {how} of {len(lost)} groups has no direction, as their vectors cancel or are "
                f"beyond what {shape.dtype} holds: {listed(lost)}. Pool by other attributes, or in "
                "another way with --how (Python: by=, how=)"
            )
        writer.add_key_value_metadata(metadata(about))


def _kept(
    n: int, d: int, how: How
) -> tuple[Callable[[Matrix, Int], None], Callable[[slice], Float], Int]:
    """Give what adds vectors, what reads those of groups, and the counts."""
    if how == "max":
        maxima = Maxima(n, d)
        return maxima.add, maxima.largest, maxima.count
    pool = Pool(n, d)

    def add_direction(matrix: Matrix, place: Int) -> None:
        measured = in_memory(matrix)
        pool.add(measured.stored, place, 1 / np.sqrt(measured.square))

    return pool.add if how == "mean" else add_direction, pool.means, pool.count


def _without_direction(matrix: Matrix, how: How) -> Any:
    square = in_memory(matrix).square
    nothing = NOTHING_LEFT if how == "mean-normalised" else 0.0
    return ~with_direction(square) | (square <= nothing**2)
