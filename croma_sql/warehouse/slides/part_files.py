"""Write a part, or find that a run which was interrupted has done so.

Beside a part lies what is known of its samples, until they are among those of the dataset. It is
written last, with a checksum of the part: together they are what a later run can rely on.
"""

import json
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.errors import CromaSqlError
from croma_sql.vectors import Matrix, OnBadVectors
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.embedding_files import checksum
from croma_sql.warehouse.data.schemas import put_together
from croma_sql.warehouse.data.sources import Record
from croma_sql.warehouse.parquet import (
    METADATA_KEY,
    read_metadata,
    read_table,
    write_batches,
)
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.slides.parts import Part, Piece
from croma_sql.warehouse.slides.pieces import Chunk, described, read_kept, read_source

ROW_GROUP_BYTES = 1 << 23
READ_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True)
class Writing:
    """How parts are written, and where.

    path_of : file of a part, by its name
    rooms : where threads put the vectors of one part after the other
    """

    path_of: Callable[[str], Path]
    prefix: str
    on_bad_vectors: OnBadVectors
    rooms: "Rooms"

    def is_written(self, part: Part) -> bool:
        """Tell whether a part is there, and what lies beside it."""
        path = self.path_of(part.name)
        return path.exists() and layout.tiles_path(path).exists()


def written(
    part: Part,
    how: Writing,
    on_piece: Callable[[Piece], None],
    is_stopped: Callable[[], bool],
) -> list[Record]:
    """Write a part, or find it written.

    Parameters
    ----------
    part, how
    on_piece : called when a piece has been read
    is_stopped : asked before each piece whether to stop

    Returns
    -------
    list of Record
        What is known of its pieces now.

    Raises
    ------
    SourceError, WarehouseError
        See `croma_sql.warehouse.slides.pieces`; or the part cannot be written.
    KeyboardInterrupt
        It was to stop.
    """
    path = how.path_of(part.name)
    there = _found(part, path) if how.is_written(part) else None
    if there is not None:
        for piece in part.pieces:
            on_piece(piece)
        return there

    def chunks() -> Iterator[tuple[Record, Chunk]]:
        for piece in part.pieces:
            if is_stopped():
                raise KeyboardInterrupt
            yield piece.record, _read(piece, how)
            on_piece(piece)

    first = part.pieces[0].record
    rows = sum(piece.record.n for piece in part.pieces)
    return _write(part, path, chunks(), how.rooms.matrix(rows, first.d, first.dtype))


class Rooms(threading.local):
    """Memory of each thread, to be filled again and again: memory that is new is slow."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def matrix(self, rows: int, d: int, dtype: str) -> Matrix:
        """Get a matrix, which this thread's next one will overwrite."""
        size = rows * d * np.dtype(dtype).itemsize
        if len(self._bytes) < size:
            self._bytes = np.empty(size, np.uint8)
        return self._bytes[:size].view(dtype).reshape(rows, d)


def _write(
    part: Part, path: Path, chunks: Iterable[tuple[Record, Chunk]], matrix: Matrix
) -> list[Record]:
    null = np.zeros(len(matrix), bool)
    ids: list[pa.Array] = []
    samples: list[pa.Table] = []
    records: list[Record] = []
    about: list[dict[str, Any]] = []
    end = 0
    for expected, chunk in chunks:
        start, end = end, end + len(chunk.ids)
        matrix[start:end], null[start:end] = chunk.vectors, chunk.null
        ids.append(chunk.ids)
        if chunk.samples is not None:
            samples.append(chunk.samples)
        record = replace(
            expected,
            part=part.name,
            part_row=start,
            n_dropped=len(chunk.dropped),
            n_null=int(chunk.null.sum()),
            checksum=checksum(matrix[start:end], chunk.null),
        )
        records.append(record)
        about.append(described(record, chunk.dropped))
    told = {
        "format": layout.FORMAT,
        "dropped": [sample for piece in about for sample in piece["dropped"]],
        "pieces": about,
    }
    whole = _publish(path, pa.concat_arrays(ids), matrix[:end], null[:end], told)
    beside = put_together(samples).combine_chunks().to_reader()
    write_batches(layout.tiles_path(path), beside, {"checksum": whole})
    return records


def _read(piece: Piece, how: Writing) -> Chunk:
    if piece.source is not None:
        return read_source(piece.record, piece.source, how.prefix, how.on_bad_vectors)
    return read_kept(piece.record, how.path_of(str(piece.record.part)))


def _publish(
    path: Path,
    ids: pa.Array,
    matrix: Matrix,
    null: NDArray[np.bool_],
    about: dict[str, Any],
) -> int:
    """Write a part; give the checksum of the file.

    By Polars, which takes a fifth of the time that Arrow takes for float16.
    """
    column = pa.FixedSizeListArray.from_arrays(
        pa.array(matrix.reshape(-1)), matrix.shape[1], mask=pa.array(null) if null.any() else None
    )
    frame = pl.DataFrame(pa.table({"sample_id": ids, "embedding": column}))
    with publishing(path) as file:
        summed = _Summed(file)
        try:
            frame.write_parquet(
                cast(BinaryIO, summed),
                compression="lz4",
                statistics=False,
                row_group_size=max(1, ROW_GROUP_BYTES // (matrix.itemsize * matrix.shape[1])),
                metadata={METADATA_KEY.decode(): json.dumps(about, sort_keys=True)},
            )
        except pl.exceptions.PolarsError as error:
            raise summed.failure or OSError(str(error)) from error
    return summed.checksum


class _Summed:
    """A file that sums what is written to it, and remembers why that failed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.checksum = 0
        self.failure: OSError | None = None

    def write(self, data: bytes) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        try:
            return self._file.write(data)
        except OSError as error:
            self.failure = error
            raise

    def flush(self) -> None:
        self._file.flush()


def _found(part: Part, path: Path) -> list[Record] | None:
    """Find what an earlier run has written of a part; None where that is nothing, or damaged."""
    beside = layout.tiles_path(path)
    try:
        told, pieces = read_metadata(beside), read_metadata(path)["pieces"]
        rows = sum(piece.record.n for piece in part.pieces if piece.source is not None)
        if told["checksum"] != _sum_of(path) or len(read_table(beside)) != rows:
            return None
        return [
            replace(
                piece.record,
                part=part.name,
                part_row=about["part_row"],
                n_dropped=len(about["dropped"]),
                n_null=about["n_null"],
                checksum=about["checksum"],
            )
            for piece, about in zip(part.pieces, pieces, strict=True)
        ]
    except (CromaSqlError, OSError, KeyError, TypeError, ValueError):
        return None


def _sum_of(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while some := file.read(READ_AT_ONCE):
            found = zlib.crc32(some, found)
    return found
