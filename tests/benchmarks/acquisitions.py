"""Laps of consistency across acquisitions; see `ours` for what a lap is.

Rows are taken for units under ``acquisitions`` acquisitions, one acquisition after the other.
"""

from itertools import combinations
from typing import Any

import numpy as np
from inputs import Inputs
from ours import Found, Lap


def consistency(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Compare with `udfs.acquisitions.compare`; ``scope``: validate and pool too."""
    import croma_sql
    from croma_sql.udfs.acquisitions.compare import compare

    count, times, threads = options["acquisitions"], options["permutations"], options["threads"]
    units = _units(inputs, count)
    n = units.shape[1]
    names = np.tile(np.arange(n), count), np.repeat(np.arange(count), n)

    def compute() -> Any:
        if not options.get("scope"):
            return compare(units, n - 1, times, 0, threads)
        return croma_sql.consistency(inputs.vectors, *names, permutations=times, threads=threads)

    def describe(found: Any) -> Found:
        if options.get("scope"):
            return {}
        places = found.shared_at[1]
        return {
            "distance": found.distance,
            "rank": found.rank,
            "mantel_r": found.mantel_r,
            "intra": found.intra_distance,
            "iok": np.array([np.count_nonzero(places <= k) / k / n for k in range(1, n)]),
        }

    return compute, describe


def by_definition(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Write the five metrics down with numpy and scipy, as their definitions read."""
    from scipy.spatial.distance import cdist

    units = _units(inputs, options["acquisitions"])
    rng = np.random.default_rng(0)

    def compute() -> Any:
        count, n, _ = units.shape
        own = [cdist(one, one, "cosine") for one in units]
        distance, rank = np.zeros((count, count, n)), np.ones((count, count, n), int)
        mantel_r, mantel_p = np.eye(count), np.zeros((count, count))
        for a, b in combinations(range(count), 2):
            across = cdist(units[a], units[b], "cosine")
            for s, t, found in ((a, b, across), (b, a, across.T)):
                distance[s, t] = np.diag(found)
                rank[s, t] = (np.argsort(found, axis=1) == np.arange(n)[:, None]).argmax(axis=1) + 1
            r, p = _mantel(own[a], own[b], options["permutations"], rng)
            mantel_r[a, b] = mantel_r[b, a] = r
            mantel_p[a, b] = mantel_p[b, a] = p
        intra = np.stack([one.sum(axis=1) / (n - 1) for one in own])
        return distance, rank, mantel_r, mantel_p, intra, _iok(own)

    def describe(found: Any) -> Found:
        distance, rank, mantel_r, _, intra, iok = found
        return {
            "distance": distance,
            "rank": rank,
            "mantel_r": mantel_r,
            "intra": intra,
            "iok": iok,
        }

    return compute, describe


def _units(inputs: Inputs, count: int) -> Any:
    return inputs.vectors.astype(np.float64).reshape(count, -1, inputs.vectors.shape[1])


def _mantel(x: Any, y: Any, permutations: int, rng: np.random.Generator) -> tuple[float, float]:
    upper = np.triu_indices(len(x), 1)
    fixed = y[upper] - y[upper].mean()
    scale = np.sqrt((fixed @ fixed) * ((x[upper] - x[upper].mean()) ** 2).sum())

    def r(order: Any) -> float:
        return float(x[np.ix_(order, order)][upper] @ fixed / scale)

    found = r(np.arange(len(x)))
    as_high = sum(r(rng.permutation(len(x))) >= found for _ in range(permutations))
    return found, (1 + as_high) / (1 + permutations)


def _iok(own: list[Any]) -> Any:
    """Place of the last acquisition at which each neighbour comes in, counted up to every K."""
    n = len(own[0])
    places = []
    for one in own:
        alone = one + np.diag(np.full(n, np.inf))
        places.append(np.argsort(np.argsort(alone, axis=1), axis=1))
    last = np.max(places, axis=0)
    np.fill_diagonal(last, n)
    return np.array([np.count_nonzero(last < k) / k / n for k in range(1, n)])
