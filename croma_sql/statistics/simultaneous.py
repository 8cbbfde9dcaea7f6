"""Differences between all levels of a contest at once, so that all intervals hold together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from croma_sql.statistics.contests import Contest
from croma_sql.statistics.jackknife import Weights, degrees_of_freedom, refusal
from croma_sql.statistics.leaving_out import Counts, standard_error
from croma_sql.statistics.resampling import Float
from croma_sql.statistics.studentised_range import critical, tail


@dataclass(frozen=True, slots=True)
class Pairs:
    """Every two levels of a contest; NaN where there is no interval, and why.

    first, second : (pairs,) which levels of the contest, the better estimate first
    difference, lo, hi, p : (pairs,)
    n_groups : (pairs,) with a defined row of either
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    difference: Float
    lo: Float
    hi: Float
    p: Float
    reason: list[str | None]
    n_groups: Counts


def compare_all(contest: Contest, n: Counts, level: float) -> Pairs:
    """Compare every two levels, after Games and Howell.

    Parameters
    ----------
    contest : of which ``values`` are the changes without each group, (levels, groups)
    n : (levels, groups), rows of each group at each level of the contest
    """
    n_levels = len(contest.place)
    first, second = np.triu_indices(n_levels, 1)
    lo, hi, p = (np.full(len(first), np.nan) for _ in range(3))
    reasons: list[str | None] = []
    weights = [Weights(row) for row in n]
    least = (n > 0).sum(axis=1)
    n_groups = np.array([np.count_nonzero(n[i] + n[j]) for i, j in zip(first, second, strict=True)])
    difference = contest.estimate[first] - contest.estimate[second]
    error, df = np.full(len(first), np.nan), np.full(len(first), np.nan)
    alike = [np.array_equal(n[0], row) for row in n]
    of_all = degrees_of_freedom(weights[0]) if n_levels else np.nan
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        same = alike[i] and alike[j]
        df[k] = of_all if same else degrees_of_freedom(weights[i], weights[j])
        either = (n[i] + n[j]) > 0
        change = (contest.values[i] - contest.values[j])[either]
        reasons.append(refusal(int(min(least[i], least[j])), change, float(df[k])))
        if reasons[-1] is None:
            error[k] = standard_error(change)
    for one in np.unique(df[~np.isnan(error)]):
        own = np.flatnonzero((df == one) & ~np.isnan(error))
        reach = critical(level, n_levels, float(one)) / np.sqrt(2) * error[own]
        lo[own], hi[own] = difference[own] - reach, difference[own] + reach
        p[own] = tail(np.abs(difference[own]) / error[own] * np.sqrt(2), n_levels, float(one))
    return Pairs(first, second, difference, lo, hi, p, reasons, n_groups)
