"""Neighbours that a unit keeps under every acquisition."""

import numpy as np

from croma_sql.udfs.acquisitions.directions import apart
from croma_sql.udfs.compiled import kernel


@kernel()
def last_places(measured, first_row, u, slack, depth, last):
    """Raise ``last`` to the place of each neighbour under one more acquisition.

    Parameters
    ----------
    measured : (rows, N) distances of some units to all, from a matrix product
    first_row : number of the unit of the first row
    u : (N, d) directions
    slack : bound on |measured - exact|
    depth : places are 1 ... depth, by (exact distance, number of unit); further ones depth + 1
    last : (rows, N) int32
    """
    place = np.empty(measured.shape[1], np.int32)
    for a in range(measured.shape[0]):
        place[:] = depth + 1
        order = _nearest(measured[a], first_row + a, u, slack, depth)
        for k in range(order.shape[0]):
            place[order[k]] = k + 1
        for q in range(place.shape[0]):
            last[a, q] = max(last[a, q], place[q])


@kernel()
def shared(last, depth, out, count):
    """Write, ascending, the places at which neighbours are shared by all; ``count`` of them."""
    for a in range(last.shape[0]):
        found = np.zeros(depth + 2, np.int64)
        for q in range(last.shape[1]):
            found[last[a, q]] += 1
        n = 0
        for place in range(1, depth + 1):
            for _ in range(found[place]):
                out[a, n] = place
                n += 1
        count[a] = n


@kernel()
def _nearest(line, p, u, slack, depth):
    """Give the ``depth`` nearest of a unit but itself, nearest first, ties by number."""
    reach = np.inf
    if depth < line.shape[0] - 1:
        without = np.delete(line, p)
        reach = np.partition(without, depth - 1)[depth - 1] + 2 * slack
    within = np.flatnonzero(line <= reach)
    within = within[within != p]
    measured = line[within]
    by_measure = np.argsort(measured, kind="mergesort")
    order, measured = within[by_measure], measured[by_measure]
    start = 0
    while start < min(depth, order.shape[0]):
        stop = start + 1
        while stop < order.shape[0] and measured[stop] - measured[stop - 1] <= 2 * slack:
            stop += 1
        if stop - start > 1:
            _settle(order[start:stop], p, u)
        start = stop
    return order[:depth]


@kernel()
def _settle(some, p, u):
    """Sort units by (exact distance, number)."""
    by_number = np.sort(some)
    exact = np.empty(some.shape[0])
    for k in range(some.shape[0]):
        exact[k] = apart(u[p], u[by_number[k]])
    some[:] = by_number[np.argsort(exact, kind="mergesort")]
