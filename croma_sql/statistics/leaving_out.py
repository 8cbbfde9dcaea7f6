"""Statistics of every level without one group at a time, exactly or to first order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.statistics.resampling import FEWEST_UNITS, Float, estimates
from croma_sql.statistics.rows import Codes, Rows
from croma_sql.statistics.summaries import Kind, Statistic

REACH = 2.0  # standard errors of F on each side of a quantile, over which its density is taken

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The statistics of one level, and how leaving out one group changes them.

    group, n : (groups,) codes of the groups with a defined value, and how many they have
    estimate : (statistics,)
    change : (statistics, groups) without the group, minus with all; NaN where it cannot be known
    """

    group: NDArray[np.integer]
    n: Counts
    estimate: Float
    change: Float


@dataclass(frozen=True, slots=True)
class _Cell:
    """Defined values in order; their groups, from 0; how many each group has."""

    value: Float
    group: NDArray[np.intp]
    n: Counts


def leave_out(rows: Rows, statistics: Sequence[Statistic]) -> Iterator[LeftOut]:
    """Leave out each group of each level, levels in order; none where there are too few."""
    estimate = estimates(rows, statistics)
    known = rows.where(~np.isnan(rows.value))
    names = ("level", "value", "group", "subset")
    ordered = pl.DataFrame({name: getattr(known, name) for name in names}).sort(names)
    level, value, group, subset = (ordered[name].to_numpy() for name in names)
    bounds = np.searchsorted(level, np.arange(len(rows.levels) + 1))
    for place, (begin, end) in enumerate(pairwise(bounds)):
        codes, at = np.unique(group[begin:end], return_inverse=True)
        n = np.bincount(at, minlength=len(codes))
        cell = _Cell(value[begin:end], at, n)
        change = np.full((len(statistics), len(codes)), np.nan)
        if len(codes) >= FEWEST_UNITS:
            for s, statistic in enumerate(statistics):
                change[s] = (
                    _of_subsets(cell, subset[begin:end], statistic, estimate[place, s])
                    if statistic.of_subsets
                    else _change(cell, statistic)
                )
        yield LeftOut(codes, n, estimate[place], change)


def without_each(rows: Rows, statistics: Sequence[Statistic]) -> tuple[Float, Float, Counts]:
    """Estimates, (levels, statistics), changes, with all groups last, and rows, (levels, groups).

    A group without a defined row of a level changes nothing there.
    """
    parts = list(leave_out(rows, statistics))
    n = np.zeros((len(parts), rows.n_groups), np.int64)
    change = np.zeros((len(parts), len(statistics), rows.n_groups))
    for level, part in enumerate(parts):
        n[level, part.group] = part.n
        change[level][:, part.group] = part.change
    estimate = np.array([part.estimate for part in parts]).reshape(len(parts), len(statistics))
    return estimate, change, n


def standard_error(change: Float) -> Float:
    """Of the cluster jackknife (CV3), over the last axis."""
    groups = np.count_nonzero(~np.isnan(change), axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        error: Float = np.sqrt((groups - 1) / groups * np.sum(change**2, axis=-1))
    return error


def _change(cell: _Cell, statistic: Statistic) -> Float:
    if statistic.kind == Kind.F0:
        return _of_mean(cell, (cell.value <= 0).astype(np.float64))
    if statistic.kind == Kind.MEAN:
        return _of_mean(cell, cell.value)
    if statistic.kind == Kind.QUANTILE:
        return _of_quantile(cell, statistic.fraction)
    return _of_tail(cell, statistic.fraction)


def _of_mean(cell: _Cell, y: Float) -> Float:
    total, rows = np.bincount(cell.group, weights=y, minlength=len(cell.n)), len(y)
    change: Float = (total.sum() - total) / (rows - cell.n) - total.sum() / rows
    return change


def _of_quantile(cell: _Cell, fraction: float) -> Float:
    """Change of F there, over the density (Woodruff): a quantile itself moves in jumps."""
    quantile = np.quantile(cell.value, fraction)
    below = (cell.value < quantile) + 0.5 * (cell.value == quantile)
    change = _of_mean(cell, below)
    reach = REACH * float(standard_error(change))
    low, high = max(fraction - reach, 0.0), min(fraction + reach, 1.0)
    if low == high:
        return np.zeros(len(cell.n))
    ends = np.quantile(cell.value, [low, high])
    return -change * float(ends[1] - ends[0]) / (high - low)


def _of_tail(cell: _Cell, fraction: float) -> Float:
    """Change of the mean of what is at or below the quantile, exactly, with all ties."""
    value, group, rows = cell.value, cell.group, len(cell.value)
    starts = np.concatenate([[0], np.cumsum(cell.n)])[:-1]
    own = np.empty(rows, np.int64)  # how many of its group are before a row
    by_group = np.argsort(group, kind="stable")
    own[by_group] = np.arange(rows) - np.repeat(starts, cell.n)
    at = np.floor(fraction * (rows - cell.n - 1)).astype(np.int64)  # among the others
    passed = np.bincount(group[np.arange(rows) - own <= at[group]], minlength=len(cell.n))
    end = np.searchsorted(value, value[at + passed], side="right")
    inside = np.arange(rows) < end[group]
    sums = np.concatenate([[0.0], np.cumsum(value)])[end]
    left = np.bincount(group[inside], weights=value[inside], minlength=len(cell.n))
    n_left = np.bincount(group[inside], minlength=len(cell.n))
    whole = np.searchsorted(value, value[int(np.floor(fraction * (rows - 1)))], side="right")
    change: Float = (sums - left) / (end - n_left) - value[:whole].mean()
    return change


def _of_subsets(cell: _Cell, subset: Codes, statistic: Statistic, estimate: float) -> Float:
    """Change of the median of the subsets' medians: each weighs as it is likely to be the middle.

    Subsets whose medians are further from the middle than their standard errors do not move it.
    """
    medians, changes = [], []
    for one in np.unique(subset):
        own = subset == one
        codes, at = np.unique(cell.group[own], return_inverse=True)
        if len(codes) < 2:
            return np.full(len(cell.n), np.nan)
        part = _Cell(cell.value[own], at, np.bincount(at))
        change = np.zeros(len(cell.n))
        change[codes] = _of_quantile(part, statistic.fraction)
        medians.append(np.quantile(part.value, statistic.fraction))
        changes.append(change)
    away = (np.array(medians) - estimate) ** 2
    spread = np.mean(standard_error(np.array(changes)) ** 2)
    if spread == 0:
        return np.zeros(len(cell.n))
    weight = np.exp(-(away - away.min()) / (2 * spread))
    moved: Float = weight @ np.array(changes) / weight.sum()
    return moved
