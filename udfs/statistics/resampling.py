"""Statistics of margins under many draws of groups, without ever making a resample.

A draw is how often it drew each group. Margins are sorted once per cell; the resampled multiset
is then the same list with weights, and one pass over them finds its order statistics exactly.

    value, group : (n,) float64 and int32, the margins of one cell after the other, sorted within,
        and their groups
    bounds : (cells + 1,) where each cell begins
    times : (draws, groups) int32, how often each draw drew each group
    out : (cells, statistics, draws) float64; NaN where a draw has no margin of a cell
"""

import numpy as np

from croma_sql.udfs.compiled import kernel

F0, MEAN, QUANTILE = 0, 1, 2  # as in croma_sql.statistics.summaries.Kind


@kernel()
def count_picks(picks, times):
    """Fill ``times`` from the groups that were picked, (draws, groups)."""
    times[:] = 0
    for draw in range(picks.shape[0]):
        for k in range(picks.shape[1]):
            times[draw, picks[draw, k]] += 1


@kernel()
def summarise(value, group, bounds, times, kinds, fractions, out, begin, end):
    """Compute every statistic of every cell in draws ``begin:end``."""
    for cell in range(bounds.shape[0] - 1):
        x = value[bounds[cell] : bounds[cell + 1]]
        g = group[bounds[cell] : bounds[cell + 1]]
        first_above = np.searchsorted(x, 0.0, side="right")
        for draw in range(begin, end):
            weight = times[draw]
            at_most_0 = _count(g[:first_above], weight)
            total = at_most_0 + _count(g[first_above:], weight)
            for s in range(kinds.shape[0]):
                if total == 0:
                    out[cell, s, draw] = np.nan
                elif kinds[s] == F0:
                    out[cell, s, draw] = at_most_0 / total
                elif kinds[s] == MEAN:
                    out[cell, s, draw] = _sum(x, g, weight) / total
                elif kinds[s] == QUANTILE:
                    out[cell, s, draw] = _quantile(x, g, weight, fractions[s] * (total - 1))
                else:
                    out[cell, s, draw] = _tail_mean(x, g, weight, fractions[s] * (total - 1))


@kernel()
def _count(g, weight):
    total = np.int64(0)
    for i in range(g.shape[0]):
        total += weight[g[i]]
    return total


@kernel()
def _sum(x, g, weight):
    total = 0.0
    for i in range(x.shape[0]):
        total += weight[g[i]] * x[i]
    return total


@kernel()
def _quantile(x, g, weight, position):
    """Interpolate between the neighbours of a position, from 0, in the weighted list."""
    below = np.int64(np.floor(position))
    i = -1
    seen = np.int64(0)
    while seen <= below:
        i += 1
        seen += weight[g[i]]
    low, share = x[i], position - below
    while share and seen <= below + 1:
        i += 1
        seen += weight[g[i]]
    if x[i] == low:
        return low
    return low * (1.0 - share) + x[i] * share


@kernel()
def _tail_mean(x, g, weight, position):
    """Mean of what is at or below a position, from 0, in the weighted list, with all ties."""
    below = np.int64(np.floor(position))
    i = -1
    seen = np.int64(0)
    total = 0.0
    while seen <= below:
        i += 1
        seen += weight[g[i]]
        total += weight[g[i]] * x[i]
    quantile = x[i]
    i += 1
    while i < x.shape[0] and x[i] == quantile:
        seen += weight[g[i]]
        total += weight[g[i]] * x[i]
        i += 1
    return total / seen


@kernel()
def median_over_cells(values, starts, out, begin, end):
    """Median over the cells of each level, (cells, draws) to (levels, draws), where defined."""
    room = np.empty(values.shape[0])
    for level in range(starts.shape[0] - 1):
        for draw in range(begin, end):
            n = 0
            for cell in range(starts[level], starts[level + 1]):
                if not np.isnan(values[cell, draw]):
                    room[n] = values[cell, draw]
                    n += 1
            defined = np.sort(room[:n])
            out[level, draw] = np.nan if n == 0 else (defined[(n - 1) // 2] + defined[n // 2]) / 2
