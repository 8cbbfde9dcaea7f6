"""Compiled loops of the typed-neighbour search: serial, `nogil`, over a range of rows.

They know nothing of files, frames or connections and validate nothing: `croma_sql.cohort` has
done that. Nothing here uses numba's threading layer, which aborts the process when two DuckDB
threads enter it at once; `search` spreads ranges of rows over a thread pool instead.

Shapes: ``n`` samples, ``d`` features, ``m`` neighbours asked for, ``w`` candidates kept per type
while searching (``w > m``). ``stored`` is the (n, d) matrix as it came in: float32, float64, or
the uint16 bits of float16, which numba has no type for.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

ROUNDING = 2.0**-24  # of float32
HALF_VALUES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
LANES = 16
CHUNK = 64


def kernel(**flags: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile lazily and release the GIL; cache on disk where there is a place to write."""

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return njit(nogil=True, cache=True, **flags)(function)
        except RuntimeError:  # read-only installation and no writable home: nowhere to cache
            return njit(nogil=True, **flags)(function)

    return compile_it


def _widen(value):
    raise NotImplementedError("compiled code only")


@overload(_widen, inline="always")
def _widen_overload(value):
    if isinstance(value, types.Integer):
        return lambda value: np.float64(HALF_VALUES[value])
    return lambda value: np.float64(value)


@kernel()
def dot(x, y):
    """Inner product in float64.

    The order of additions is written out (16 running sums, then their sum), so that the last bit
    depends neither on the processor nor on which of two samples comes first.
    """
    sums = np.zeros(LANES)
    whole = x.shape[0] - x.shape[0] % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            sums[lane] += _widen(x[start + lane]) * _widen(y[start + lane])
    for k in range(whole, x.shape[0]):
        sums[k - whole] += _widen(x[k]) * _widen(y[k])
    total = 0.0
    for lane in range(LANES):
        total += sums[lane]
    return total


@kernel()
def squared_norms(stored, out, start, stop):
    """Write |z|^2 of the rows ``start:stop``; NaN or inf where a value is not finite."""
    for i in range(start, stop):
        out[i] = dot(stored[i], stored[i])


@kernel()
def unit_sums(stored, square, rows, total):
    """Add the unit vectors of ``rows`` to ``total`` (d,)."""
    for i in rows:
        norm = np.sqrt(square[i])
        for k in range(total.shape[0]):
            total[k] += _widen(stored[i, k]) / norm


@kernel()
def residuals(stored, square, order, centre, residual, half, start, stop):
    """Write r = z/|z| - centre in float32 and |r|^2/2 for the positions ``start:stop``.

    Since d_ij = |r_i - r_j|^2 / 2 for any centre, the search may work on r. Where vectors crowd
    in one direction, r is short, and float32 separates what it could not on z/|z|.
    """
    for position in range(start, stop):
        i = order[position]
        norm = np.sqrt(square[i])
        length = 0.0
        for k in range(centre.shape[0]):
            value = _widen(stored[i, k]) / norm - centre[k]
            residual[position, k] = value
            length += value * value
        half[position] = 0.5 * length


@kernel(inline="always")
def distance(stored, square, i, j):
    """Cosine distance of two stored rows in float64; exactly 0 for equal rows, never negative."""
    return max(0.0, 1.0 - dot(stored[i], stored[j]) / np.sqrt(square[i] * square[j]))


@kernel(inline="always")
def slack(radius, other_radius, d):
    """Bound on |float32 distance - float64 distance| for residuals of at most these lengths.

    With u = 2^-24: a float32 inner product of length d, summed in any order, is off by at most
    d u / (1 - d u) |r_i||r_j|; rounding r and |r|^2/2 to float32 and the two subtractions add the
    small multiples of u below (Higham, Accuracy and Stability of Numerical Algorithms, 3.1). The
    last term covers the float64 distance itself.
    """
    gamma = (d + 8) * ROUNDING / (1 - (d + 8) * ROUNDING)
    squares = radius * radius + other_radius * other_radius
    return gamma * radius * other_radius + 4 * ROUNDING * squares + 8 * (d + 16) * 2.0**-53


@kernel(inline="always")
def _keep(score, index, floor, row, value, candidate):
    """Put a candidate into the row's descending list, dropping its last entry."""
    slot = score.shape[1] - 1
    while slot > 0 and score[row, slot - 1] < value:
        score[row, slot] = score[row, slot - 1]
        index[row, slot] = index[row, slot - 1]
        slot -= 1
    score[row, slot] = value
    index[row, slot] = candidate
    floor[row] = score[row, score.shape[1] - 1]


@kernel()
def keep_best(product, rows, cols, half, group, score, index, floor):
    """Offer one block of inner products to the lists of its rows and of its columns.

    Parameters
    ----------
    product : (len(rows), len(cols)) float32
        r_i . r_j of positions that are neighbours of one type, in both directions.
    score, index : (n, w)
        Per position the best ``-d`` so far in descending order, and whose; ``-inf`` and -1 where
        not yet filled.
    floor : (n,) float32
        The last entry of each list. 64 products at once are held against it, and only a chunk
        with a hit is looked at one by one.
    """
    floor_of_col = floor[cols]
    half_of_col = half[cols]
    n_cols = cols.shape[0]
    for a in range(rows.shape[0]):
        i = rows[a]
        half_i = half[i]
        line = product[a]
        for start in range(0, n_cols, CHUNK):
            stop = min(start + CHUNK, n_cols)
            floor_i = floor[i]
            hit = 0
            for b in range(start, stop):
                value = line[b] - half_of_col[b] - half_i
                hit |= np.int32(value > floor_i) | np.int32(value > floor_of_col[b])
            if hit == 0:
                continue
            for b in range(start, stop):
                value = line[b] - half_of_col[b] - half_i
                j = cols[b]
                if (value > floor[i] or value > floor_of_col[b]) and group[i] != group[j]:
                    if value > floor[i]:
                        _keep(score, index, floor, i, value, j)
                    if value > floor_of_col[b]:
                        _keep(score, index, floor, j, value, i)
                        floor_of_col[b] = floor[j]


@kernel(inline="always")
def _insert_exact(best, who, rank, d, j, m):
    """Insert (d, j) into lists that ascend by (distance, rank); drop what falls off the end."""
    if d > best[m - 1] or (d == best[m - 1] and rank[j] > rank[who[m - 1]]):
        return
    slot = m - 1
    while slot > 0 and (
        d < best[slot - 1] or (d == best[slot - 1] and rank[j] < rank[who[slot - 1]])
    ):
        best[slot] = best[slot - 1]
        who[slot] = who[slot - 1]
        slot -= 1
    best[slot] = d
    who[slot] = j


@kernel()
def rerank(stored, square, order, rank, score, index, radius, longest,
           best, who, proven, start, stop):  # fmt: skip
    """Order the kept candidates by exact distance and say for which rows that is the true set.

    A candidate that was not kept has a float32 distance of at least ``-floor``, hence an exact one
    of at least ``-floor - slack``. If the m-th exact distance t is below that, nothing was missed.
    The slack grows with the other's radius, but only the near matter: |r_i - r_j| is at least the
    difference of their lengths, so whoever is longer than |r_i| + sqrt(2 t) is farther than t. One
    outlier then costs nothing. (The margins on that reach are far above rounding.)

    Parameters
    ----------
    score, index : (n, w), of one type
    radius : (n,) float64, |r|; longest : the largest of them
    best : (n, m) float64, inf on entry; who : (n, m) int, -1 on entry
        Distances in ascending order, ties by ``rank``, and positions.
    proven : (n,) bool
    """
    m = best.shape[1]
    last = score.shape[1] - 1
    for p in range(start, stop):
        for slot in range(last + 1):
            q = index[p, slot]
            if q < 0:
                break
            d = distance(stored, square, order[p], order[q])
            _insert_exact(best[p], who[p], rank, d, q, m)
        farthest = best[p, m - 1]
        reach = min(longest, 1.001 * (radius[p] + np.sqrt(2.0 * farthest)) + 1e-5)
        bound = slack(radius[p], reach, stored.shape[1])
        proven[p] = index[p, last] < 0 or farthest < -np.float64(score[p, last]) - bound


@kernel()
def search_exactly(product, rows, start, half, label, confounder, group, same_label,
                   stored, square, order, rank, radius, best, who):  # fmt: skip
    """Offer every eligible column of one block whose float32 distance could still matter.

    ``rows`` are the positions left unproven by `rerank`; columns are ``start, start + 1, ...``.
    ``best`` and ``who`` hold what is known already and end as the true nearest set.
    """
    m = best.shape[1]
    d = stored.shape[1]
    for a in range(rows.shape[0]):
        p = rows[a]
        for b in range(product.shape[1]):
            q = start + b
            measured = half[p] + half[q] - product[a, b]
            if measured > best[p, m - 1] + slack(radius[p], radius[q], d):
                continue
            if group[p] == group[q] or (label[p] == label[q]) != same_label:
                continue
            if (confounder[p] == confounder[q]) == same_label or _holds(who[p], q):
                continue
            exact = distance(stored, square, order[p], order[q])
            _insert_exact(best[p], who[p], rank, exact, q, m)


@kernel(inline="always")
def _holds(who, q):
    for slot in range(who.shape[0]):  # noqa: SIM110 - compiled code
        if who[slot] == q:
            return True
    return False
