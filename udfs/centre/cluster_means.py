"""Sums over clusters of unit vectors, and how far a vector lies from the members of each.

All vectors are residuals, r = z/|z| - centre, in float64. Where they crowd in one direction, r is
short, and so is its rounding. Shapes and ``stored``, ``place`` as in `croma_sql.udfs.exact`.
"""

import numpy as np

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import half_gap, widen

SAME = 2.0**-99  # half a squared length that rounding two equal unit vectors can leave


@kernel()
def add_residuals(stored, place, square, samples, cluster, centre, first, last, total, low):
    """Add features ``first:last`` of the residuals of ``samples`` to the sums of their clusters.

    ``total + low`` (clusters, d) holds twice the precision (two-sum; Knuth, The Art of Computer
    Programming 2, 4.2.2), so that the mean of equal vectors is that vector.
    """
    for p in samples:
        scale = 1.0 / np.sqrt(square[p])
        z = stored[place[p]]
        sums, lows = total[cluster[p]], low[cluster[p]]
        for k in range(first, last):
            value = widen(z[k]) * scale - centre[k]
            before = sums[k]
            after = before + value
            added = after - before
            lows[k] += (before - (after - added)) + (value - added)
            sums[k] = after


@kernel()
def _residual(z, scale, centre, out):
    for k in range(centre.shape[0]):
        out[k] = widen(z[k]) * scale - centre[k]


@kernel()
def _half_gap(x, y):
    """|x - y|^2 / 2; 0 for equal vectors."""
    gap = half_gap(x, y)
    return gap if gap > SAME else 0.0


@kernel()
def own_gaps(stored, place, square, samples, cluster, centre, mean, out):
    """Write half the squared distance of ``samples`` to the mean of their own cluster (n,)."""
    residual = np.empty(centre.shape[0])
    for p in samples:
        _residual(stored[place[p]], 1.0 / np.sqrt(square[p]), centre, residual)
        out[p] = _half_gap(residual, mean[cluster[p]])


@kernel()
def residuals(stored, place, square, samples, centre, out):
    """Write the residuals of ``samples`` (len(samples), d)."""
    for i in range(samples.shape[0]):
        p = samples[i]
        _residual(stored[place[p]], 1.0 / np.sqrt(square[p]), centre, out[i])


@kernel()
def silhouettes(residual, dot, samples, cluster, mean, spread, size, lead, slack, out):
    """Write the silhouettes of ``samples`` (n,), 0 for the only member of a cluster.

    The mean distance from i to the members of a cluster is |r_i - mean|^2 / 2 + spread, where
    ``spread`` (clusters,) is the mean of the first term over the members themselves.

    Of another cluster, the lowest counts. ``lead - dot``, the same but for |r_i|^2 / 2 and for
    rounding, tells which may be it: those within ``slack`` of the lowest.

    residual : (len(samples), d); dot : (len(samples), clusters), their inner products with ``mean``
    lead : (clusters,) |mean|^2 / 2 + spread; infinite for a cluster without members
    slack : (len(samples),)
    """
    for i in range(samples.shape[0]):
        p = samples[i]
        own = cluster[p]
        if size[own] == 1:
            out[p] = 0.0
            continue
        lowest = np.inf
        for c in range(mean.shape[0]):
            if c != own:
                lowest = min(lowest, lead[c] - dot[i, c])
        nearest = np.inf
        for c in range(mean.shape[0]):
            if c != own and lead[c] - dot[i, c] <= lowest + slack[i]:
                nearest = min(nearest, _half_gap(residual[i], mean[c]) + spread[c])
        inside = _half_gap(residual[i], mean[own]) + spread[own]
        inside *= size[own] / (size[own] - 1)  # the sample itself is at distance 0
        larger = max(inside, nearest)
        out[p] = (nearest - inside) / larger if larger > 0 else 0.0
