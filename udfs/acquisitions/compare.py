"""The same units under several acquisitions: what stays where it was, and what moves.

Units are numbered in the order that breaks ties between equal distances. Matrix products of blocks
propose who is near; where two distances are within the bound on their rounding, `apart` decides.
Blocks depend on the shape alone, so results do not depend on the number of threads.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from croma_sql.udfs.acquisitions.across import Across
from croma_sql.udfs.acquisitions.directions import directions
from croma_sql.udfs.acquisitions.shuffles import p_values
from croma_sql.udfs.acquisitions.spread import Spread, centre, cost, distances_to_others
from croma_sql.udfs.acquisitions.within import Within
from croma_sql.udfs.scope import Codes, Float, Int
from croma_sql.udfs.threads import IsStopped, cores, never
from croma_sql.udfs.tracker import OnProgress, Task, Tracker

WORTH_SPREADING = 1 << 26  # multiplications; below, a pool of threads costs more than it saves
PERMUTED = 20  # multiplications of a product that take as long as one of permuted distances


@dataclass(frozen=True, slots=True)
class Compared:
    """What `compare` gives for N units under S acquisitions; NaN where undefined.

    distance : (S, S, N) float64, [a, b, p] between unit p under a and itself under b
    rank : (S, S, N) int64, 1-based, of unit p among all units under b by distance from p under a
    nearest : (S, S, N) int64, number of the first of that order
    profile_r : (S, S, N) float64, Pearson r of p's distances to all others under a and under b
    mantel_r : (S, S) float64, Pearson r of the distances of all pairs of units under a and under b
    mantel_p : (S, S) float64, share of permutations with a correlation at least as high
    intra_distance : (S, N) float64, mean distance to the other units under the same acquisition
    median_distance : (S, N) float64, median of these
    shared_at : (offsets (N + 1,) int64, values int32); values of unit p, ascending: the j-th is the
        smallest K at which j neighbours are among the K nearest under every acquisition
    mean_distance : (S + 1,) float64, of all pairs of vectors; last: all acquisitions together
    effective_rank : (S + 1,) float64
    """

    distance: Float
    rank: Int
    nearest: Int
    profile_r: Float
    mantel_r: Float
    mantel_p: Float
    intra_distance: Float
    median_distance: Float
    shared_at: tuple[Int, Codes]
    mean_distance: Float
    effective_rank: Float


def compare(
    units: Float,
    depth: int,
    permutations: int,
    seed: int,
    threads: int,
    is_stopped: IsStopped = never,
    on_progress: OnProgress | None = None,
) -> Compared:
    """Measure how far units keep their places from one acquisition to another.

    Parameters
    ----------
    units : (S, N, d) float64, S and N at least 2
        Vectors with a direction; units in the order that breaks ties.
    depth : int
        Neighbours per unit that may be shared, 0 to N - 1.
    permutations : int
        For ``mantel_p``, one-sided, the same for every pair of acquisitions; 0: none. With them
        S matrices N x N are held.
    seed : int
        Of the permutations.
    threads : int
    is_stopped : callable, optional
        Asked often; once it says so, KeyboardInterrupt is raised.
    on_progress : callable, optional
        Gets a `Progress` as blocks are done, in the calling thread.

    Returns
    -------
    Compared

    Examples
    --------
    >>> import numpy as np
    >>> found = compare(np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.8, 0.6], [0.6, 0.8]]]), 1, 0, 0, 1)
    >>> found.distance[0, 1].round(12).tolist(), found.rank[0, 1].tolist()
    ([0.2, 0.2], [1, 1])
    """
    count, n, d = units.shape
    if count * (count + 1) * n * n * d < WORTH_SPREADING:
        threads = 1
    pairs = count * (count - 1) // 2
    shuffle = pairs * n * n // 2 * PERMUTED // d
    shuffles = (permutations + 1) * shuffle if permutations else 0
    spreads = cost(count * n, d) + count * cost(n, d)
    tracker = Tracker(on_progress, (pairs + count) * n * n + spreads + shuffles)
    with cores(threads, is_stopped) as for_each:

        def do(tasks: Iterable[Task]) -> None:
            for_each(lambda task: task[0](), list(tasks), lambda task: tracker.on_work(task[1], 0))

        u, half = np.empty((count, n, d)), np.empty((count, n))
        for s in range(count):
            directions(units[s], u[s])
        r = u.copy()
        centre(r.reshape(-1, d), half.reshape(-1))
        across = Across(u, r, half)
        together = Spread(r.reshape(-1, d), half.reshape(-1))
        do([*together.products(), *across.tasks()])
        for s in range(count):
            centre(r[s], half[s])
        intra = np.stack([distances_to_others(r[s], half[s]) for s in range(count)])
        within = Within(u, r, half, intra, depth, keep=permutations > 0)
        apart = [Spread(r[s], half[s]) for s in range(count)]
        do([together.values(), *chain.from_iterable(one.products() for one in apart)])
        do([*within.tasks(), *(one.values() for one in apart)])
        profile_r, mantel_r, scale = within.correlations()
        mantel_p = np.full((count, count), np.nan)
        if permutations:
            mantel_p = p_values(within.centred, scale, permutations, seed, do, shuffle)
    return Compared(
        across.distance,
        across.rank,
        across.nearest,
        profile_r,
        mantel_r,
        mantel_p,
        intra,
        within.median_distance,
        within.shared_at(),
        np.array([one.mean_distance for one in (*apart, together)]),
        np.array([one.effective_rank for one in (*apart, together)]),
    )
