"""Units under one acquisition looked for under another, block by block."""

import threading
from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np

from croma_sql.udfs.acquisitions.directions import slack
from croma_sql.udfs.acquisitions.retrieval import look, own_distances
from croma_sql.udfs.scope import Float, Int
from croma_sql.udfs.tracker import Task

BLOCK = 512, 1024  # rows and columns of a product: a tenth of a second where d = 2,560


class Across:
    """How far units move, and whom they meet; complete once every task is done.

    Parameters
    ----------
    u : (S, N, d) directions
    r, half : (S, N, d) and (S, N), the same around a common centre, and |r|^2/2
    block : rows and columns of a product; the result does not depend on it

    Attributes
    ----------
    distance, rank, nearest : (S, S, N), see `acquisitions.Compared`
    """

    def __init__(self, u: Float, r: Float, half: Float, block: tuple[int, int] = BLOCK) -> None:
        count, n, _ = u.shape
        self._u, self._r, self._half, self._block = u, r, half, block
        self.distance: Float = np.zeros((count, count, n))
        self.rank: Int = np.ones((count, count, n), np.int64)
        self.nearest: Int = np.tile(np.arange(n), (count, count, 1))
        self._pairs = list(combinations(range(count), 2))
        for a, b in self._pairs:
            own_distances(u[a], u[b], self.distance[a, b])
            self.distance[b, a] = self.distance[a, b]
        self._best = self.distance.copy()
        self._merging = threading.Lock()

    def tasks(self) -> Iterator[Task]:
        """Yield what there is to do."""
        n = self._r.shape[1]
        rows, cols = self._block
        for a, b in self._pairs:
            for row in range(0, n, rows):
                for col in range(0, n, cols):
                    pairs = min(rows, n - row) * min(cols, n - col)
                    yield partial(self._look, a, b, row, col), pairs

    def _look(self, a: int, b: int, row: int, col: int) -> None:
        u, r, half = self._u, self._r, self._half
        rows, cols = slice(row, row + self._block[0]), slice(col, col + self._block[1])
        own = self.distance[a, b]
        of_rows, of_cols = (
            (own[some].copy(), self.nearest[a, a, some].copy(), np.zeros(len(own[some]), np.int64))
            for some in (rows, cols)
        )
        bound = slack(half[a].max(), half[b].max(), r.shape[2])
        look(r[a, rows] @ r[b, cols].T, row, col, half[a], half[b], u[a], u[b], own, bound,
             *of_rows, *of_cols)  # fmt: skip
        self._merge((a, b, rows), *of_rows)
        self._merge((b, a, cols), *of_cols)

    def _merge(self, some: tuple[int, int, slice], near: Float, at: Int, ahead: Int) -> None:
        with self._merging:
            self.rank[some] += ahead
            best, nearest = self._best[some], self.nearest[some]
            is_better = (near < best) | ((near == best) & (at < nearest))
            best[is_better], nearest[is_better] = near[is_better], at[is_better]
