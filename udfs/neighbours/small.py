"""Many small scopes at once, without blocks (`pairs`).

A design of pairs makes hundreds of scopes of a few rows, where one matrix product costs less than
the call of it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs.neighbours import pairs
from croma_sql.udfs.scope import Edges, Int, Neighbours, Scope, Wanted
from croma_sql.udfs.threads import ForEach

PER_TASK = 1 << 27  # multiplications, a few hundredths of a second


def search_small(scopes: Sequence[Scope], wanted: Wanted, for_each: ForEach) -> list[Edges]:
    """Find the neighbours in every one of many scopes, whose vectors lie in one matrix."""
    vectors = scopes[0].vectors
    sizes = np.array([len(scope.row) for scope in scopes])
    bounds = np.concatenate([[0], sizes.cumsum()])
    row = np.concatenate([scope.row for scope in scopes])
    stored, place = vectors.take(row)
    columns = [
        np.concatenate([getattr(scope, name) for scope in scopes])
        for name in ("label", "confounder", "group", "rank", "usable")
    ]
    data = (bounds, stored, place, vectors.square[row], *columns)
    depths = [min(depth, int(sizes.max())) for depth in (wanted.m, wanted.m, wanted.k)]
    best = [np.full((len(row), depth), np.inf) for depth in depths]
    who = [np.full((len(row), depth), -1, np.int32) for depth in depths]
    first = np.zeros((2, len(row)), np.int64)

    def search(some: Int) -> None:
        of = (some[0], some[-1] + 1)
        pairs.search_pairs(*data, best[0], who[0], best[1], who[1], best[2], who[2], *of)
        if wanted.first_ranks:
            pairs.rank_pairs(*data, best[0], who[0], best[1], who[1], first[0], first[1], *of)

    cost = np.cumsum(sizes.astype(np.int64) ** 2 * vectors.d)
    tasks = np.split(np.arange(len(scopes)), 1 + np.flatnonzero(np.diff(cost // PER_TASK)))
    for_each(search, tasks)
    for distances, neighbours in zip(best, who, strict=True):
        distances[neighbours < 0] = np.nan
    return [
        _edges(scope, slice(start, stop), wanted, best, who, first)
        for scope, start, stop in zip(scopes, bounds[:-1], bounds[1:], strict=True)
    ]


def _edges(
    scope: Scope,
    rows: slice,
    wanted: Wanted,
    best: list[NDArray[np.float64]],
    who: list[NDArray[np.int32]],
    first: Int,
) -> Edges:
    n = len(scope.row)
    so, os, nearest = (
        Neighbours(neighbours[rows, : min(depth, n)], distances[rows, : min(depth, n)])
        for neighbours, distances, depth in zip(
            who, best, (wanted.m, wanted.m, wanted.k), strict=True
        )
    )
    return Edges(so, os, nearest, first[0, rows], first[1, rows], scope.usable, 0)
