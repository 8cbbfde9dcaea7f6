"""Permutation test of the correlation of distances."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from croma_sql.udfs.acquisitions.mantel import crossed
from croma_sql.udfs.scope import Float
from croma_sql.udfs.tracker import Task

EQUAL = 1e-12  # correlations this near each other are equal
GATHERED = 1 << 25  # distances gathered and multiplied in a task: about a tenth of a second


def p_values(
    centred: Float,
    scale: Float,
    permutations: int,
    seed: int,
    do: Callable[[Iterable[Task]], None],
    cost: int,
) -> Float:
    """Share of permutations of units, itself among them, with a correlation at least as high.

    Parameters
    ----------
    centred : (S, N, N), see `mantel`
    scale : (S, S), what sums of products are divided by to give correlations
    permutations : at least 1; the same for every pair
    do : gets what there is to do
    cost : distances that take as long as one permutation

    Returns
    -------
    (S, S) float64, symmetric; NaN where the correlation is undefined, 0 on the diagonal
    """
    count, n, _ = centred.shape
    orders = np.tile(np.arange(n, dtype=np.int32), (permutations + 1, 1))
    np.random.default_rng(seed).permuted(orders[1:], axis=1, out=orders[1:])
    sums = np.zeros((permutations + 1, count, count))
    step = max(1, GATHERED // (count * count * n * n // 4 + 1))
    ranges = ((first, min(first + step, len(orders))) for first in range(0, len(orders), step))
    do(
        (partial(crossed, centred, orders, sums, first, stop), (stop - first) * cost)
        for first, stop in ranges
    )
    as_high = sums[1:] >= sums[0] - EQUAL * scale
    p = (1 + as_high.sum(axis=0)) / (1 + permutations)
    upper = np.triu(np.where(np.isnan(scale), np.nan, p), 1)
    return upper + upper.T
