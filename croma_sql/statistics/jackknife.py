"""Standard error, degrees of freedom and interval of a statistic, from leaving out groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from croma_sql.statistics.frames import as_names
from croma_sql.statistics.intervals import check_names
from croma_sql.statistics.leaving_out import Counts, LeftOut, leave_out, standard_error
from croma_sql.statistics.options import fraction
from croma_sql.statistics.resampling import FEWEST_UNITS, Float
from croma_sql.statistics.rows import columns_at, read_rows
from croma_sql.statistics.summaries import Kind, Statistic, parse

LEAST_DF = 1.1
TOO_FEW = "too few groups"
ONE_CARRIES_IT = "one group has most rows"
NO_SPREAD = "groups do not differ"
SUBSET_OF_ONE = "a subset has one group"
ALL_ALIKE = "f0 is 0 or 1"
ONE_REACHES_0 = "one group alone is on one side of 0"
AN_EXTREME = "an extreme has none"
RESULT = (
    "statistic", "estimate", "lo", "hi", "interval_reason", "n", "n_undefined", "n_groups", "df",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds, or NaN and why there are none."""

    lo: float
    hi: float
    reason: str | None = None


class Weights:
    """Shares of the groups in a weighted mean of them, for its degrees of freedom."""

    def __init__(self, n: Counts) -> None:
        self.w = n / max(int(n.sum()), 1)
        with np.errstate(divide="ignore"):
            self.c = self.w / (1 - self.w)

    @cached_property
    def trace(self) -> float:
        """Of A = M Mᵀ, M = diag(c) - c wᵀ, which makes left-out changes of the groups' errors."""
        c, w = self.c, self.w
        return float(c @ c - 2 * (c**2 @ w) + (c @ c) * (w @ w))

    def overlap(self, other: "Weights") -> float:
        """Trace of A times the A of others, in the time of one pass over the groups."""
        p, a, b = self.c * other.c, self.w, other.w
        q, aa, bb, pa, pb, pp = p.sum(), a @ a, b @ b, p @ a, p @ b, p @ p
        beside = pp * (aa + bb) + 2 * pa * pb + q * q * aa * bb - 2 * q * (pa * bb + pb * aa)
        diagonal = 2 * (p @ (q * a * b - p * (a + b)))
        return float(pp + beside + diagonal)


def degrees_of_freedom(one: Weights, other: Weights | None = None) -> float:
    """Of Bell and McCaffrey, for a weighted mean of groups, or the difference of two.

    Examples
    --------
    >>> round(degrees_of_freedom(Weights(np.array([30, 30, 30, 30, 30]))), 6)
    4.0
    """
    with np.errstate(invalid="ignore"):
        if other is None:
            top, bottom = one.trace**2, one.overlap(one)
        else:
            top = (one.trace + other.trace) ** 2
            bottom = one.overlap(one) + other.overlap(other) + 2 * one.overlap(other)
        return top / bottom if bottom > 0 else np.nan


def intervals(
    frame: Any,
    *,
    by: str | Sequence[str] = (),
    value: str = "margin",
    group: str = "group_id",
    subset: str | None = None,
    statistics: str | Sequence[str] = ("croma", "f0", "ltm10"),
    level: float = 0.95,
) -> pl.DataFrame:
    """Statistics of margins with intervals that allow for groups, for every level of ``by``.

    Samples of one group (slide, patient, place) resemble each other, so each group is left out in
    turn, and how much the statistic changes gives its standard error. Student's t has the degrees
    of freedom that the sizes of the groups are worth. Nothing is drawn.

    Parameters
    ----------
    frame, by, value, group, subset, statistics
        As in `croma_sql.bootstrap`.
    level : float
        Of the interval, between 0 and 1.

    Returns
    -------
    polars.DataFrame
        The columns of ``by``; ``statistic``; ``estimate``, as the macros of SQL give it; ``lo``,
        ``hi``; ``interval_reason``, why they are NULL: fewer than five groups, one group with most
        rows, groups that do not differ, a subset of one group, an f0 of 0 or 1 or that hangs on one
        group, a smallest or largest value; ``n``, rows; ``n_undefined``, those left out;
        ``n_groups`` with a defined row; ``df``, the degrees of freedom, NaN of fewer than two.

    Raises
    ------
    StatisticsError
        As `croma_sql.bootstrap`.

    Notes
    -----
    A median moves in jumps when a group is left out, so its change is that of the share below it,
    over the density of the values there. f0 has its interval on the logit scale. Tail means and
    means have the side widened to which the groups' changes are skewed.

    How often, in percent, 95 % intervals held the truth in 400 simulated cohorts with groups of
    unequal sizes (tanh-normal margins, and with a skewed normal's place taken by a gamma; Pareto
    sizes, shape 1.5, 10 to 1,000 rows; intraclass correlation 0.4), among the 89 to 97 % of cohorts
    with an interval, most others having one group with most rows:

    ======  =====  ====  =====  ==========  ==========  ===========
    groups  croma  f0    ltm10  croma skew  f0 skew     ltm10 skew
    ======  =====  ====  =====  ==========  ==========  ===========
    5       97     98    95     97          96          96
    6       97     98    95     97          97          96
    10      98     99    95     97          96          95
    20      97     99    97     98          97          96
    40      99     99    97     97          96          95
    ======  =====  ====  =====  ==========  ==========  ===========

    They hold it less often where margins fall with the size of a group (sizes of shape 1.2 up to
    3,000 rows, margins falling with its logarithm: croma 81 to 91 %, ltm10 71 to 83 %), and, of
    ltm10, where margins are skewed and groups are equal (88 to 92 %).

    References
    ----------
    R. M. Bell, D. F. McCaffrey, *Survey Methodology* 28, 2002; B. E. Hansen, *Jackknife standard
    errors for clustered regression*, 2022; J. G. MacKinnon, M. Ø. Nielsen, M. D. Webb, *Fast and
    reliable jackknife and bootstrap methods for cluster-robust inference*, 2023; R. S. Woodruff,
    *Journal of the American Statistical Association* 47, 1952.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "group_id": [1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
    ...     "margin": [0.1, 0.3, 0.2, 0.2, 0.1, 0.4, -0.1, 0.2, 0.4, 0.4],
    ... })
    >>> found = intervals(frame, statistics=["mean", "f0"])
    >>> found.select(pl.col("estimate", "lo", "hi").round(3), "interval_reason").rows()
    [(0.22, 0.049, 0.391, None), (0.1, None, None, 'one group alone is on one side of 0')]
    """
    by = as_names(by)
    check_names(by, RESULT)
    asked = parse(statistics, subsets=subset is not None)
    level = fraction("level", level, like=0.95)
    rows = read_rows(frame, by=by, value=value, group=group, subset=subset)
    parts = list(leave_out(rows, asked))
    dfs = [degrees_of_freedom(Weights(part.n)) for part in parts]
    found = [
        interval_of(statistic, part, s, df, level)
        for part, df in zip(parts, dfs, strict=True)
        for s, statistic in enumerate(asked)
    ]
    repeated = np.repeat(np.arange(len(parts)), len(asked))
    return pl.DataFrame(
        {
            **columns_at(rows.levels.select(by), repeated),
            "statistic": [statistic.name for statistic in asked] * len(parts),
            "estimate": np.array([part.estimate for part in parts]).ravel(),
            "lo": np.array([one.lo for one in found], np.float64),
            "hi": np.array([one.hi for one in found], np.float64),
            "interval_reason": pl.Series([one.reason for one in found], dtype=pl.String),
            **{name: count[repeated] for name, count in rows.counts().items()},
            "df": np.array(dfs, np.float64)[repeated],
        },
        nan_to_null=True,
    )


def interval_of(statistic: Statistic, part: LeftOut, s: int, df: float, level: float) -> Interval:
    """Interval of the statistic that is number ``s`` of a level."""
    from scipy.special import ndtri, stdtrit

    estimate, change = float(part.estimate[s]), part.change[s]
    reason = refusal(len(part.n), change, df) or _without(statistic, estimate, change)
    if reason is not None:
        return Interval(np.nan, np.nan, reason)
    upper = (1 + level) / 2
    t = float(stdtrit(df, upper))
    if statistic.kind == Kind.F0:
        logit, without = _logit(estimate), _logit(estimate + change)
        reach = t * float(standard_error(without - logit))
        return Interval(_share(logit - reach), _share(logit + reach))
    error = float(standard_error(change))
    if statistic.kind == Kind.QUANTILE:
        return Interval(estimate - t * error, estimate + t * error)
    skewness = np.clip(-np.sum(change**3) / error**3, -1, 1)
    lean = float(skewness * (2 * ndtri(upper) ** 2 + 1) / 6)
    return Interval(estimate - (t + max(-lean, 0)) * error, estimate + (t + max(lean, 0)) * error)


def refusal(n_groups: int, change: Float, df: float) -> str | None:
    """Why there is no interval of these changes; None where there is one."""
    if n_groups < FEWEST_UNITS:
        return TOO_FEW
    if np.isnan(change).any():
        return SUBSET_OF_ONE
    if not df >= LEAST_DF:
        return ONE_CARRIES_IT
    if np.ptp(change) <= 1e-12 * max(1.0, float(np.abs(change).max())):
        return NO_SPREAD
    return None


def _without(statistic: Statistic, estimate: float, change: Float) -> str | None:
    """Why a statistic of this kind has no interval."""
    if statistic.kind == Kind.QUANTILE and statistic.fraction in (0, 1):
        return AN_EXTREME
    if statistic.kind != Kind.F0:
        return None
    if estimate in (0, 1):
        return ALL_ALIKE
    without = estimate + change
    return ONE_REACHES_0 if (without < 1e-12).any() or (without > 1 - 1e-12).any() else None


def _logit(share: Any) -> Any:
    return np.log(share) - np.log1p(-share)


def _share(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))
