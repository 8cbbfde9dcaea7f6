"""How far vectors spread, and along how many directions."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations_with_replacement
from math import isqrt

import numpy as np

from croma_sql.udfs.acquisitions.directions import SAME, halves
from croma_sql.udfs.scope import Float
from croma_sql.udfs.tracker import Task

BLOCK = 1 << 31  # multiplications of a block of products: about a tenth of a second
SLOW = 4  # multiplications of a product that take as long as one of singular values
FLAT = 1e-6  # singular values below this share of the largest are taken for rounding


def centre(directions: Float, half: Float) -> None:
    """Subtract from directions (n, d) their mean, in place; write |r|^2/2 of each to ``half``.

    All 0 where the directions coincide.
    """
    directions -= directions.mean(axis=0)
    halves(directions, half)
    if half.max() < SAME:
        directions[:] = half[:] = 0.0


def distances_to_others(r: Float, half: Float) -> Float:
    """Mean cosine distance of each direction to all others, without measuring pairs; (n,)."""
    n, total = len(r), r.sum(axis=0)
    means: Float = (n * half + half.sum() - r @ total) / (n - 1)
    return means


class Spread:
    """How far a set of vectors spreads, and along how many directions.

    First every task of `products` is to be done, in any order, then that of `values`, which is one
    call of LAPACK that nothing can stop: seconds where there are thousands of vectors and features.

    Parameters
    ----------
    r, half : (n, d) and (n,), from `centre`; read by `products`

    Attributes
    ----------
    mean_distance : float, mean cosine distance of all pairs
    effective_rank : float, exponential of the entropy of the normalised singular values; NaN where
        all vectors coincide

    References
    ----------
    O. Roy, M. Vetterli, "The effective rank: a measure of effective dimensionality", EUSIPCO 2007.
    """

    def __init__(self, r: Float, half: Float) -> None:
        self.mean_distance = float(distances_to_others(r, half).mean())
        self.effective_rank = np.nan
        self._d = r.shape[1]
        self._rows = r if len(r) <= self._d else r.T
        self._gram: Float = np.empty((len(self._rows), len(self._rows)))

    def products(self) -> Iterator[Task]:
        """Yield what there is to do for the inner products of vectors, or of features."""
        side = _side(*self._rows.shape)
        pairs = side * side * self._rows.shape[1] // self._d
        blocks = [slice(start, start + side) for start in range(0, len(self._rows), side)]
        for first, second in combinations_with_replacement(blocks, 2):
            yield partial(self._multiply, first, second), pairs

    def _multiply(self, first: slice, second: slice) -> None:
        self._gram[second, first] = self._rows[second] @ self._rows[first].T

    def values(self) -> Task:
        """Give what there is to do for the effective rank."""
        return self._measure, SLOW * len(self._rows) ** 3 // self._d

    def _measure(self) -> None:
        squares = np.linalg.eigvalsh(self._gram, "L")
        self._gram = np.empty((0, 0))
        if squares[-1] > 0:
            values = np.sqrt(squares[squares > FLAT**2 * squares[-1]])
            share = values / values.sum()
            self.effective_rank = float(np.exp(-(share * np.log(share)).sum()))


def cost(n: int, d: int) -> int:
    """Distances that take as long as all tasks of a set of n vectors."""
    small = min(n, d)
    side = _side(small, max(n, d))
    blocks = -(-small // side)
    return blocks * (blocks + 1) // 2 * (side * side * max(n, d) // d) + SLOW * small**3 // d


def _side(rows: int, length: int) -> int:
    return min(rows, max(1, isqrt(BLOCK // length)))
