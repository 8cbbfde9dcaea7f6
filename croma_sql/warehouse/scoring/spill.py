"""Vectors in a file of their own, read as the search needs them."""

import os
import tempfile
import threading
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from croma_sql.errors import WarehouseError
from croma_sql.udfs.scope import Float, Int, Stored


class Spilled:
    """Vectors on disk, row after row, in a file without a name: it goes when the process does.

    Parquet cannot be read row by row, so vectors larger than the memory allowed are written once
    more, uncompressed and in the order of the search, whose blocks are then one read each.

    d, itemsize, square : see `croma_sql.udfs.scope.Vectors`
    """

    def __init__(self, folder: Path, n: int, d: int, dtype: np.dtype[np.floating]) -> None:
        self.d, self.itemsize = d, dtype.itemsize
        self.square: Float = np.zeros(n)
        self._dtype = np.dtype(np.uint16) if dtype == np.float16 else dtype
        self._rooms = threading.local()
        self._folder = folder
        try:
            self._file: BinaryIO = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - see __exit__
        except OSError as error:
            raise WarehouseError(self._cannot("set aside", error)) from error
        self._row_bytes = d * self._dtype.itemsize

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, rows: Int, stored: Stored, square: Float) -> None:
        """Put vectors into their rows."""
        self.square[rows] = square
        order = np.argsort(rows)
        ordered = np.ascontiguousarray(stored[order])
        try:
            for start, stop in _runs(rows[order], gap=0):
                place = int(rows[order[start]]) * self._row_bytes
                _write_all(self._file.fileno(), ordered[start:stop].data.cast("B"), place)
        except OSError as error:
            raise WarehouseError(self._cannot("set aside", error)) from error

    def take(self, rows: Int) -> tuple[Stored, Int]:
        """Read rows; those close together in one go, with what lies between.

        The matrix is this thread's own, which its next ``take`` fills anew.
        """
        order = np.argsort(rows)
        ascending = rows[order]
        runs = _runs(ascending, gap=max(1, GAP // self._row_bytes))
        lengths = [int(ascending[stop - 1] - ascending[start]) + 1 for start, stop in runs]
        matrix = self._room_for(sum(lengths))
        place = np.empty(len(rows), np.int64)
        at = 0
        for (start, stop), length in zip(runs, lengths, strict=True):
            first = int(ascending[start])
            buffer = matrix[at : at + length].data.cast("B")
            try:
                _read_all(self._file.fileno(), buffer, first * self._row_bytes)
            except OSError as error:
                raise WarehouseError(self._cannot("read back", error)) from error
            place[order[start:stop]] = ascending[start:stop] - first + at
            at += length
        return matrix, place

    def _cannot(self, what: str, error: OSError) -> str:
        needed = 1 + len(self.square) * self.d * self.itemsize // 10**6
        return (
            f"vectors cannot be {what} in {self._folder}: {error.strerror or error}. Within this "
            f"memory they need {needed} MB of disk there; give more memory, or make room"
        )

    def _room_for(self, rows: int) -> Stored:
        """Memory of this thread, used again and again: malloc would keep a good deal beside it."""
        room = getattr(self._rooms, "room", None)
        if room is None or len(room) < rows:
            room = self._rooms.room = np.empty((rows, self.d), self._dtype)
        return room[:rows]


GAP = 16 << 10  # bytes that are read and thrown away rather than skipped


def _runs(ascending: Int, gap: int) -> list[tuple[int, int]]:
    """Ranges of entries whose neighbours are at most ``gap`` rows apart."""
    breaks: NDArray[np.int64] = 1 + np.flatnonzero(np.diff(ascending) > gap + 1)
    bounds = [0, *breaks.tolist(), len(ascending)]
    return list(pairwise(bounds)) if len(ascending) else []


def _write_all(file: int, data: memoryview, at: int) -> None:
    while data:
        written = os.pwrite(file, data, at)
        data, at = data[written:], at + written


def _read_all(file: int, buffer: memoryview, at: int) -> None:
    while buffer:
        read = os.preadv(file, [buffer], at)
        if not read:
            raise OSError("vectors that were set aside have been cut short")
        buffer, at = buffer[read:], at + read
