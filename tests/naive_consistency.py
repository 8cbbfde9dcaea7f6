"""Consistency across acquisitions, written out pair by pair, from the definitions.

Shares no code with the package: distances are scipy's or made in extended precision, correlations
numpy's, and neighbours those of Python's sort.
"""

from itertools import combinations

import numpy as np
from scipy.spatial.distance import cdist


def distances(x, y):
    """Cosine distances in extended precision; what is equal is equal."""
    x, y = (np.asarray(z, np.longdouble) for z in (x, y))
    x, y = (z / np.sqrt((z * z).sum(axis=1, keepdims=True)) for z in (x, y))
    return np.array([[((p - q) ** 2).sum() / 2 for q in y] for p in x])


def ordered(row, digits=15):
    """Numbers by (distance, number)."""
    return sorted(range(len(row)), key=lambda q: (round(float(row[q]), digits), q))


def retrieval(units, a, b):
    """Rank of each unit itself among those under b, and the nearest of them."""
    orders = [ordered(row) for row in distances(units[a], units[b])]
    return [order.index(p) + 1 for p, order in enumerate(orders)], [order[0] for order in orders]


def d_cos(units, a, b):
    return np.mean(
        [cdist(p[None], q[None], "cosine")[0, 0] for p, q in zip(units[a], units[b], strict=True)]
    )


def pairwise(units, s):
    found = distances(units[s], units[s])
    return [found[p, q] for p, q in combinations(range(len(found)), 2)]


def correlation(x, y):
    """Pearson's r; NaN where one side does not vary."""
    x, y = (np.asarray(z, np.longdouble) for z in (x, y))
    x, y = x - x.mean(), y - y.mean()
    if len(x) < 2 or max(abs(x)) < 1e-15 or max(abs(y)) < 1e-15:
        return np.nan
    return float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))


def mantel(units, a, b):
    return correlation(pairwise(units, a), pairwise(units, b))


def profile(units, a, b, p):
    rows = (np.delete(distances(units[s], units[s])[p], p) for s in (a, b))
    return correlation(*rows)


def intra_distance(units, s, p):
    return float(np.delete(distances(units[s], units[s])[p], p).mean())


def median_distance(units, s, p):
    return float(np.median(np.delete(distances(units[s], units[s])[p], p)))


def iok(units, p, k):
    """Share of the k nearest of a unit that are the same under every acquisition."""
    kept = []
    for one in units:
        order = [q for q in ordered(distances(one, one)[p]) if q != p]
        kept.append(set(order[:k]))
    return len(set.intersection(*kept)) / k


def mean_distance(vectors):
    found = distances(vectors, vectors)
    return float(np.mean([found[p, q] for p, q in combinations(range(len(found)), 2)]))


def effective_rank(vectors):
    u = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    values = np.linalg.svd(u - u.mean(axis=0), compute_uv=False)
    share = values[values > 1e-6 * values.max()] / values.sum()
    return float(np.exp(-(share * np.log(share)).sum()))
