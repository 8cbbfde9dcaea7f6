"""Vectors of the rows that take part: into memory, or set aside on disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from croma_sql.errors import ScoringError
from croma_sql.udfs.scope import Int, Vectors
from croma_sql.vectors import in_memory
from croma_sql.warehouse.data.embedding_files import read_shape, read_vectors
from croma_sql.warehouse.scoring.memory import Size
from croma_sql.warehouse.scoring.plan import Work
from croma_sql.warehouse.scoring.spill import Spilled


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimension and precision that all vectors of an encoder fit."""

    d: int
    dtype: np.dtype[np.floating]


def shape_of(files: list[Path]) -> Shape:
    """Read the shape from the files.

    Raises
    ------
    ScoringError
        Files of different dimensions.
    """
    shapes = [read_shape(path) for path in files]
    if len({shape.d for shape in shapes}) > 1:
        found = ", ".join(f"{shape.d} in {path}" for shape, path in zip(shapes, files, strict=True))
        raise ScoringError(f"vectors differ in dimension: {found}. One encoder has one dimension")
    return Shape(shapes[0].d, np.result_type(*(np.dtype(shape.dtype) for shape in shapes)))


def size_of(work: Work, shape: Shape) -> Size:
    """How much there is to search."""
    vectors = pc.count_distinct(work.rows.column("sample_id")).as_py()
    return Size(len(work.rows), vectors, shape.d, shape.dtype.itemsize)


@contextmanager
def loaded(work: Work, shape: Shape, aside: Path | None) -> Iterator[tuple[Vectors, Int]]:
    """Read every vector once, and hold them as long as the block lasts.

    Parameters
    ----------
    aside : folder for vectors that are to stay on disk; None to hold them in memory

    Yields
    ------
    the vectors, NaN where NULL; and which of them is that of each row of ``work``
    """
    ids = work.rows.column("sample_id").unique()
    place = _places(work.rows, ids)
    row = place[pc.index_in(work.rows.column("sample_id"), ids).to_numpy()]
    if aside is None:
        matrix = np.empty((len(ids), shape.d), shape.dtype)
        for path in work.files:
            for some_ids, batch in read_vectors(path):
                there, wanted = _wanted(some_ids, ids, place)
                matrix[there] = batch[wanted]
        pa.default_memory_pool().release_unused()  # what reading took, beside the matrix
        yield in_memory(matrix), row
        return
    with Spilled(aside, len(ids), shape.d, shape.dtype) as spilled:
        for path in work.files:
            for some_ids, batch in read_vectors(path):
                there, wanted = _wanted(some_ids, ids, place)
                measured = in_memory(batch[wanted].astype(shape.dtype, copy=False))
                spilled.write(there, measured.stored, measured.square)
        pa.default_memory_pool().release_unused()
        yield spilled, row


def _wanted(some_ids: pa.Array, ids: pa.Array, place: Int) -> tuple[Int, NDArray[np.bool_]]:
    index = pc.index_in(some_ids, ids)
    return place[index.drop_null().to_numpy()], np.asarray(pc.is_valid(index))


def _places(rows: pa.Table, ids: pa.Array) -> Int:
    """Row of each vector, in the order in which the search will read them."""
    first = pc.index_in(ids, rows.column("sample_id"))
    label, confounder = (
        pc.dictionary_encode(rows.column(name).combine_chunks()).indices.take(first).to_numpy()
        for name in ("label", "confounder")
    )
    place = np.empty(len(ids), np.int64)
    place[np.lexsort((np.arange(len(ids)), confounder, label))] = np.arange(len(ids))
    return place
