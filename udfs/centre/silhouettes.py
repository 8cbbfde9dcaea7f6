"""Cosine silhouettes of many samples, exact and without a pair of them.

With u = z/|z|, the cosine distance of two samples is |u_i - u_j|^2 / 2. So the mean distance from a
sample to a cluster follows from the mean of the cluster and its spread (`cluster_means`), in
O(n clusters d) instead of O(n^2 d). A matrix product tells which other clusters may be the nearest,
all within what rounding can do to it; these are measured, so that no bit depends on the product.
"""

import math

import numpy as np

from croma_sql.udfs import exact
from croma_sql.udfs.centre import cluster_means
from croma_sql.udfs.neighbours.tiles import ROWS_PER_TASK, ranges
from croma_sql.udfs.scope import Codes, Float, Int, Scope, Stored
from croma_sql.udfs.threads import ForEach

CENTRE_ROWS = 4096
FEATURES_AT_ONCE = 256
DOTS_AT_ONCE = 2**20
ROUNDING = 2.0**-53


def silhouettes(scope: Scope, cluster: Codes, for_each: ForEach) -> Float:
    """Cosine silhouette of every row of a scope.

    Parameters
    ----------
    scope : what it says of labels, confounders and groups does not matter
    cluster : (n,) codes from 0
    for_each : see `croma_sql.udfs.threads.cores`

    Returns
    -------
    (n,) float64 in [-1, 1]
        0 for the only member of a cluster, and where all that is compared lies at one place; NaN
        for rows that are not usable, and everywhere where these have less than two clusters. Sums
        are over rows in the order of their ranks, so the last bit depends neither on threads nor on
        the order of rows.

    References
    ----------
    P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis", 1987.

    Examples
    --------
    >>> import croma_sql
    >>> from croma_sql.udfs.threads import one_by_one
    >>> z = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]
    >>> scope = croma_sql.cohort.build_scope(z, [0, 0, 1, 1], [0, 1, 0, 1], [1, 2, 3, 4])
    >>> silhouettes(scope, np.array([0, 0, 1, 1]), one_by_one).round(6).tolist()  # 1 - 0.2 / 0.7
    [0.714286, 0.090909, 0.714286, 0.090909]
    """
    order = np.argsort(scope.rank)
    order = order[scope.usable[order]]
    out = np.full(len(scope.row), np.nan)
    size = np.bincount(cluster[order])
    if np.count_nonzero(size) < 2:
        return out
    stored, place = scope.vectors.take(scope.row)
    vectors = (stored, place, scope.vectors.square[scope.row])
    centre = np.zeros(scope.vectors.d)
    some = order[:: max(1, len(order) // CENTRE_ROWS)]
    exact.unit_sums(*vectors, some, centre)
    centre /= len(some)
    mean = _means(vectors, order, cluster, centre, size, for_each)
    gap = np.empty(len(out))
    tasks = [order[rows.start : rows.stop] for rows in ranges(len(order))]
    for_each(lambda rows: cluster_means.own_gaps(*vectors, rows, cluster, centre, mean, gap), tasks)
    spread = _spread(gap, order, cluster, size)
    square = np.einsum("cd,cd->c", mean, mean)
    lead = np.where(size > 0, square / 2 + spread, np.inf)
    longest = square.max() + spread.max()

    def compare(rows: Int) -> None:
        residual = np.empty((len(rows), scope.vectors.d))
        cluster_means.residuals(*vectors, rows, centre, residual)
        slack = _slack(np.einsum("id,id->i", residual, residual) + longest, scope.vectors.d)
        told = (mean, spread, size, lead, slack)
        cluster_means.silhouettes(residual, residual @ mean.T, rows, cluster, *told, out)

    n = min(ROWS_PER_TASK, max(1, DOTS_AT_ONCE // len(size)))
    for_each(compare, [order[rows.start : rows.stop] for rows in ranges(len(order), n)])
    return out


def _spread(gap: Float, order: Int, cluster: Codes, size: Int) -> Float:
    """Mean gap (clusters,) of the members of each cluster."""
    members = order[np.argsort(cluster[order], kind="stable")]
    parts = np.split(gap[members], np.cumsum(size)[:-1])
    return np.array([math.fsum(part) / max(1, len(part)) for part in parts])


def _slack(square: Float, d: int) -> Float:
    """Bound how much further than another a cluster may seem that is measured as nearer.

    Sums of d products, and what they are added to, err by d + 4 roundings of |r|^2 + |mean|^2 +
    spread (``square``) at most; so does what is measured, and both do for either cluster.
    """
    return np.asarray(8 * (d + 8) * ROUNDING * square + 4 * cluster_means.SAME)


def _means(
    vectors: tuple[Stored, Int, Float],
    order: Int,
    cluster: Codes,
    centre: Float,
    size: Int,
    for_each: ForEach,
) -> Float:
    """Mean residual of each cluster (clusters, d); a thread adds up a range of features."""
    total, low = np.zeros((2, len(size), len(centre)))

    def add(features: range) -> None:
        part = (features.start, features.stop)
        cluster_means.add_residuals(*vectors, order, cluster, centre, *part, total, low)

    for_each(add, ranges(len(centre), FEATURES_AT_ONCE))
    members = np.maximum(1, size)[:, None]
    total /= members
    low /= members
    total += low
    return total
