"""Bring a scope into the order of the search, and its vectors into the form that is multiplied."""

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs import exact
from croma_sql.udfs.neighbours.tiles import ranges
from croma_sql.udfs.scope import Codes, Float, InMemory, Int, Scope, Stored, Vectors
from croma_sql.udfs.threads import ForEach

CENTRE_ROWS = 4096
ROWS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Arranged:
    """A scope sorted by (label, confounder) cell, then rank; arrays are indexed by position.

    vectors, row : as in the scope
    order : (n,) int64, row of the scope at each position; only usable rows have one
    square : (n,) float64, |z|^2
    rank, label, confounder, group : (n,), those of the scope
    centre : (d,) float64; residuals are z/|z| - centre
    half : (n,) float32, |residual|^2 / 2
    radius : (n,) float64, at least |residual|
    """

    vectors: Vectors
    row: Int
    order: Int
    square: Float
    rank: Int
    label: Codes
    confounder: Codes
    group: Codes
    centre: Float
    half: NDArray[np.float32]
    radius: Float

    def near(self, *positions: NDArray[np.integer]) -> tuple[Stored, Int]:
        """Bring vectors of positions into memory: a matrix, and the row of each position in it."""
        if isinstance(self.vectors, InMemory):
            return self.vectors.stored, self.row
        needed = np.unique(np.concatenate([some.ravel() for some in positions]))
        stored, rows = self.vectors.take(self.row[needed])
        place = np.empty(len(self.row), np.int64)
        place[needed] = rows
        return stored, place


def arrange(scope: Scope, for_each: ForEach) -> Arranged:
    """Sort, measure and centre the usable rows of a scope."""
    order = np.lexsort((scope.rank, scope.confounder, scope.label))
    order = order[scope.usable[order]]
    n, d = len(order), scope.vectors.d
    row = scope.row[order]
    half = np.empty(n, np.float32)
    arranged = Arranged(
        vectors=scope.vectors,
        row=row,
        order=order,
        square=scope.vectors.square[row],
        rank=scope.rank[order],
        label=scope.label[order],
        confounder=scope.confounder[order],
        group=scope.group[order],
        centre=np.zeros(d),
        half=half,
        radius=np.empty(n),
    )
    # Any centre is right; a sample of rows gives one that is good enough to shorten the residuals.
    sample = np.arange(0, n, max(1, n // CENTRE_ROWS))
    exact.unit_sums(*arranged.near(sample), arranged.square, sample, arranged.centre)
    arranged.centre[:] /= max(1, len(sample))

    def measure(rows: range) -> None:
        positions = np.arange(rows.start, rows.stop)
        near = arranged.near(positions)
        exact.half_squares(*near, arranged.square, positions, arranged.centre, half)

    for_each(measure, ranges(n))
    arranged.radius[:] = np.sqrt(2.0 * half.astype(np.float64)) * (1 + 4 * exact.ROUNDING)
    return arranged


class Residuals:
    """Residuals of positions in float32: all made once, or each time anew where memory is short.

    Made anew they cost about a twentieth of the product they go into.
    """

    def __init__(self, arranged: Arranged, for_each: ForEach, keep: bool) -> None:
        self._arranged = arranged
        self._scratch = threading.local()
        self._all: NDArray[np.float32] | None = None
        if keep:
            self._all = np.empty((len(arranged.row), arranged.vectors.d), np.float32)
            for_each(self._make_some, ranges(len(arranged.row)))

    def product(self, rows: Int, cols: Int) -> NDArray[np.float32]:
        """r_rows . r_cols, in this thread's own memory, which its next product takes again."""
        left, right = self._of(rows, "left"), self._of(cols, "right")
        out = self._room("product", len(rows), len(cols))
        np.matmul(left, right.T, out=out)
        return out

    def _of(self, positions: Int, name: str) -> NDArray[np.float32]:
        if self._all is None:
            return self._make(positions, self._room(name, len(positions), self._arranged.vectors.d))
        first, last = positions[0], positions[-1]
        if last - first + 1 == len(positions):  # a view, where they are contiguous
            return self._all[first : last + 1]
        return self._all[positions]

    def _make_some(self, rows: range) -> None:
        assert self._all is not None
        self._make(np.arange(rows.start, rows.stop), self._all[rows.start : rows.stop])

    def _make(self, positions: Int, out: NDArray[np.float32]) -> NDArray[np.float32]:
        arranged = self._arranged
        near = arranged.near(positions)
        exact.residuals(*near, arranged.square, positions, arranged.centre, out)
        return out

    def _room(self, name: str, rows: int, cols: int) -> NDArray[np.float32]:
        room = getattr(self._scratch, name, None)
        if room is None or len(room) < rows * cols:
            room = np.empty(rows * cols, np.float32)
            setattr(self._scratch, name, room)
        return room[: rows * cols].reshape(rows, cols)
