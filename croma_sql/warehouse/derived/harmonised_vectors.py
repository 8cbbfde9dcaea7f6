"""Vectors on their way from an encoder to its harmonised one, some rows at a time."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from croma_sql.errors import HarmonisationError, listed
from croma_sql.harmonisation.design import ROWS_AT_ONCE, Float, Int
from croma_sql.harmonisation.scaling import Fitted
from croma_sql.vectors import Matrix, in_memory, with_direction
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.embedding_files import read_shape, read_vectors
from croma_sql.warehouse.derived.harmonised import KEY, SAMPLE, Origin
from croma_sql.warehouse.parquet import WRITING, metadata, read_footer, read_metadata
from croma_sql.warehouse.scoring.vectors import shape_of

NOTHING_LEFT = 1e-12  # of the length before


class Stream:
    """The vectors of a source, read as often as is asked, and how far that is.

    ids : samples that have a vector which is not NULL, in the order of the files
    largest : (d,) the largest absolute value of every feature, in these
    """

    def __init__(
        self, source: Origin, passes: int, on_progress: Callable[[float], None] | None
    ) -> None:
        self._source = source
        self._d = shape_of(source.files).d
        self._on_progress = on_progress
        self._all = (passes + 1) * sum(read_footer(path).num_rows for path in source.files)
        self._done = 0
        members = source.rows.column(SAMPLE)
        self.largest = np.zeros(self._d)
        found = [pa.array([], pa.string())]
        for path in source.files:
            for ids, matrix in self._read(path):
                there = pc.and_(pa.array(~np.isnan(matrix[:, 0])), pc.is_in(ids, members))
                found.append(ids.filter(there))
                some = np.abs(matrix[np.asarray(there)]).max(axis=0, initial=0.0)
                np.maximum(self.largest, some, out=self.largest)
        self.ids: pa.Array = pa.concat_arrays(found)

    def blocks(self) -> Iterator[tuple[Int, Float]]:
        """Places in ``ids`` and vectors, in blocks that do not depend on how files are cut."""
        rows, vectors = np.empty(0, np.int64), np.empty((0, self._d))
        for path in self._source.files:
            for ids, matrix in self._read(path):
                place, there = self._places(ids)
                rows = np.concatenate([rows, place])
                vectors = np.concatenate([vectors, matrix[there].astype(np.float64)])
                while len(rows) >= ROWS_AT_ONCE:
                    yield rows[:ROWS_AT_ONCE], vectors[:ROWS_AT_ONCE]
                    rows, vectors = rows[ROWS_AT_ONCE:], vectors[ROWS_AT_ONCE:]
        if len(rows):
            yield rows, vectors

    def write(self, file: BinaryIO, paths: Sequence[Path], fitted: Fitted) -> None:
        """Write the harmonised vectors of the files of one dataset into one."""
        kind = pa.list_(pa.float32(), self._d)
        schema = pa.schema({SAMPLE: pa.string(), "embedding": kind})
        members = self._source.rows.column(SAMPLE)
        dropped, nulls = [sample for path in paths for sample in read_shape(path).dropped], 0
        with pq.ParquetWriter(
            file, schema, use_dictionary=False, write_statistics=[SAMPLE], **WRITING
        ) as writer:
            for ids, matrix in chain.from_iterable(map(self._read, paths)):
                takes_part = pc.is_in(ids, members)
                dropped += ids.filter(pc.invert(takes_part)).to_pylist()
                place, there = self._places(ids)
                vectors = np.zeros((len(ids), self._d), np.float32)
                with np.errstate(over="ignore"):
                    vectors[there] = fitted.apply(place, matrix[there].astype(np.float64))
                _check_directions(vectors[there], matrix[there], ids.filter(pa.array(there)))
                column = pa.FixedSizeListArray.from_arrays(
                    pa.array(vectors.reshape(-1)), type=kind, mask=pa.array(~there)
                )
                table = pa.table([ids, column], schema=schema).filter(takes_part)
                nulls += table.column("embedding").null_count
                writer.write_table(table)
            about = {"format": layout.FORMAT, "dropped": dropped, "n_null": nulls}
            writer.add_key_value_metadata(metadata(about | {KEY: self._source.about}))

    def _places(self, ids: pa.Array) -> tuple[Int, NDArray[np.bool_]]:
        index = pc.index_in(ids, self.ids)
        return index.drop_null().to_numpy().astype(np.int64), np.asarray(pc.is_valid(index))

    def _read(self, path: Path) -> Iterator[tuple[pa.Array, Matrix]]:
        for ids, matrix in read_vectors(path):
            yield ids.cast(pa.string()), matrix
            self._done += len(ids)
            if self._on_progress is not None:
                self._on_progress(min(1.0, self._done / self._all))


def n_null(path: Path) -> int:
    """How many harmonised vectors of a file are NULL, because their source is."""
    found = read_metadata(path).get("n_null", 0)
    return found if isinstance(found, int) else 0


def _check_directions(vectors: Matrix, before: Matrix, ids: pa.Array) -> None:
    """Refuse what is not finite, or so near zero that its direction is one of rounding."""
    square = in_memory(vectors).square
    lost = ~with_direction(square) | (square <= NOTHING_LEFT**2 * in_memory(before).square)
    if lost.any():
        raise HarmonisationError(
            f"harmonising leaves {lost.sum()} vectors without a direction, zero or beyond what "
            f"float32 holds: {listed(ids.filter(pa.array(lost)).to_pylist())}. Take another method"
        )
