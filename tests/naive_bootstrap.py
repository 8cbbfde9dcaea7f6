"""Slow, obvious resampling: draw groups, pool their rows, compute. Shares no code with ours."""

import statistics
from itertools import combinations

import naive
import numpy as np

FEWEST_GROUPS = 5  # that make an interval


def defined(value):
    return value is not None and not np.isnan(value)


def pooled(rows, groups, picks):
    """Rows of the picked groups, as often as they were picked."""
    return [row for pick in picks for row in rows if row["group"] == groups[pick]]


def statistic(name, rows, *, subsets):
    """One statistic of rows, dicts with subset and value; None where undefined."""
    values = [row["value"] for row in rows if defined(row["value"])]
    if not values:
        return None
    if name == "croma" and subsets:
        of_subset = {}
        for row in rows:
            if defined(row["value"]):
                of_subset.setdefault(row["subset"], []).append(row["value"])
        return statistics.median(map(statistics.median, of_subset.values()))
    if name in ("croma", "pooled_median"):
        return statistics.median(values)
    if name == "f0":
        return naive.f0(values)
    if name == "mean":
        return statistics.fmean(values)
    if name.startswith("q"):
        return float(np.quantile(values, float(name[1:]) / 100))
    return naive.ltm(values, float(name.removeprefix("ltm")) / 100)


def all_picks(groups, draws, seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, len(groups), len(groups)) for _ in range(draws)]


def drawn(names, rows, levels, *, draws, seed, subsets):
    """{(level, name): [statistic in each draw]}, for rows with a level too."""
    groups = sorted({row["group"] for row in rows})
    found = {(level, name): [] for level in levels for name in names}
    for picks in all_picks(groups, draws, seed):
        together = pooled(rows, groups, picks)
        for level in levels:
            own = [row for row in together if row["level"] == level]
            for name in names:
                found[level, name].append(statistic(name, own, subsets=subsets))
    return found


def interval(values, level=0.95):
    values = [value for value in values if value is not None]
    if not values:
        return None, None
    tail = 50 * (1 - level)
    return tuple(np.percentile(values, [tail, 100 - tail]).tolist())


def differences(estimates, draws, *, lower_is_better):
    """(first, second, difference, lo, hi, win, draws), for {level: value}, {level: values}."""
    sign = -1 if lower_is_better else 1
    by_name = sorted(estimates, key=lambda level: (level is None, level))
    best_first = sorted(
        by_name, key=lambda level: (np.isnan(estimates[level]), -sign * estimates[level])
    )
    found = []
    for first, second in combinations(best_first, 2):
        both = [
            (a, b)
            for a, b in zip(draws[first], draws[second], strict=True)
            if a is not None and b is not None
        ]
        lo, hi = interval([a - b for a, b in both])
        wins = sum(sign * a > sign * b for a, b in both)
        win = wins / len(both) if both else None
        difference = estimates[first] - estimates[second]
        difference = None if np.isnan(difference) else difference
        found.append((first, second, difference, lo, hi, win, len(both)))
    return found
