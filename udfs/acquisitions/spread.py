"""How far vectors spread, and along how many directions."""

import numpy as np

from croma_sql.udfs.acquisitions.directions import SAME, halves
from croma_sql.udfs.scope import Float
from croma_sql.udfs.tracker import Task

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
    """How far sets of vectors spread, and along how many directions.

    Attributes
    ----------
    mean_distance : (sets,) float64, mean cosine distance of all pairs
    effective_rank : (sets,) float64, NaN where all vectors of a set coincide
    """

    def __init__(self, sets: int) -> None:
        self.mean_distance: Float = np.empty(sets)
        self.effective_rank: Float = np.empty(sets)

    def task(self, place: int, r: Float, half: Float) -> Task:
        """Give what there is to do for one set; ``r`` (n, d) and ``half`` are from `centre`."""

        def measure() -> None:
            self.mean_distance[place] = distances_to_others(r, half).mean()
            self.effective_rank[place] = _effective_rank(r)

        return measure, 0


def _effective_rank(r: Float) -> float:
    """Exponential of the entropy of the normalised singular values; NaN where all are 0.

    Parameters
    ----------
    r : (n, d) from `centre`

    References
    ----------
    O. Roy, M. Vetterli, "The effective rank: a measure of effective dimensionality", EUSIPCO 2007.
    """
    gram = r @ r.T if len(r) <= r.shape[1] else r.T @ r
    squares = np.linalg.eigvalsh(gram)
    values = np.sqrt(squares[squares > FLAT**2 * squares[-1]]) if squares[-1] > 0 else squares[:0]
    if not len(values):
        return np.nan
    share = values / values.sum()
    return float(np.exp(-(share * np.log(share)).sum()))
