"""Sums over clusters of unit vectors, and how far a vector lies from the members of each.

All vectors are residuals, r = z/|z| - centre, in float64. Where they crowd in one direction, r is
short, and so is its rounding. Shapes and ``stored``, ``place`` as in `croma_sql.udfs.exact`;
``same`` is half a squared length that rounding equal residuals can leave.
"""

import numpy as np

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import half_gap
from croma_sql.udfs.residuals import residual
from croma_sql.udfs.twofold import sum_of


@kernel()
def add_residuals(stored, place, square, samples, cluster, centre, first, last, total, low):
    """Add features ``first:last`` of the residuals of ``samples`` to the sums of their clusters.

    ``total + low`` (clusters, d) holds twice the precision, so that the mean of equal vectors is
    that vector.
    """
    r = np.empty(last - first)
    for p in samples:
        residual(stored[place[p], first:last], square[p], centre[first:last], r)
        sums, lows = total[cluster[p]], low[cluster[p]]
        for k in range(first, last):
            sums[k], rest = sum_of(sums[k], r[k - first])
            lows[k] += rest


@kernel()
def _half_gap(x, y, same):
    """|x - y|^2 / 2; 0 for equal vectors."""
    gap = half_gap(x, y)
    return gap if gap > same else 0.0


@kernel()
def own_gaps(stored, place, square, samples, cluster, centre, mean, same, out):
    """Write half the squared distance of ``samples`` to the mean of their own cluster (n,)."""
    r = np.empty(centre.shape[0])
    for p in samples:
        residual(stored[place[p]], square[p], centre, r)
        out[p] = _half_gap(r, mean[cluster[p]], same)


@kernel()
def silhouettes(r, dot, samples, cluster, mean, spread, size, lead, same, slack, out):
    """Write the silhouettes of ``samples`` (n,), 0 for the only member of a cluster.

    The mean distance from i to the members of a cluster is |r_i - mean|^2 / 2 + spread, where
    ``spread`` (clusters,) is the mean of the first term over the members themselves.

    Of another cluster, the lowest counts. ``lead - dot``, the same but for |r_i|^2 / 2 and for
    rounding, tells which may be it: those within ``slack`` of the lowest.

    r : (len(samples), d); dot : (len(samples), clusters), their inner products with ``mean``
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
                nearest = min(nearest, _half_gap(r[i], mean[c], same) + spread[c])
        inside = _half_gap(r[i], mean[own], same) + spread[own]
        inside *= size[own] / (size[own] - 1)  # the sample itself is at distance 0
        larger = max(inside, nearest)
        out[p] = (nearest - inside) / larger if larger > 0 else 0.0
