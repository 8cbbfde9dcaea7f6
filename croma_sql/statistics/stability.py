"""How far the ranks of encoders hold, in differences and under draws of groups."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError, listed
from croma_sql.statistics.contests import Contest, check_apart, contests, n_left_out, share
from croma_sql.statistics.frames import as_names, read_columns
from croma_sql.statistics.intervals import check_names, defined
from croma_sql.statistics.jackknife import Weights, degrees_of_freedom, interval_of
from croma_sql.statistics.leaving_out import Counts, LeftOut, without_each
from croma_sql.statistics.resampling import Float, checked_plan, resample
from croma_sql.statistics.rows import codes, columns_at, read_rows
from croma_sql.statistics.simultaneous import compare_all
from croma_sql.statistics.summaries import parse

RESULT = (
    "statistic", "estimate", "lo", "hi", "interval_reason", "rank", "rank_lo", "rank_hi",
    "mean_rank", "best_probability", "win_probability", "draws", "n_left_out",
)  # fmt: skip


def rank_stability(
    frame: Any,
    *,
    between: str = "encoder",
    by: str | Sequence[str] = (),
    controls: str | None = None,
    value: str = "margin",
    group: str = "group_id",
    subset: str | None = None,
    paired_by: str | Sequence[str] | None = None,
    statistics: str | Sequence[str] = ("croma",),
    draws: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
) -> pl.DataFrame:
    """Rank encoders, and say how far the ranks hold when groups are drawn again.

    Every draw ranks all encoders on the same groups, so what moves all of them alike leaves the
    ranks as they are. Rank 1 is best; encoders with equal values share the better rank.

    Parameters
    ----------
    controls : column name, optional
        Boolean, the same for all rows of an encoder; NULL counts as false. Encoders for which it is
        true are shown with their estimates, but neither ranked nor counted in the ranks of others.
    level : float
        Of the intervals, and at which all ranges of ranks hold at once.
    frame, between, by, value, group, subset, paired_by, statistics
        As in `differences`.
    draws, seed, threads
        As in `croma_sql.bootstrap`.

    Returns
    -------
    polars.DataFrame
        The columns of ``by``; ``statistic``; ``between``'s column; ``estimate``, ``lo``, ``hi`` and
        ``interval_reason``, as in `croma_sql.intervals`; ``rank``, by estimate; ``rank_lo``,
        ``rank_hi``, ranks that no difference speaks against: 1 and how many are better, and how
        many are ranked less those that are worse, where all `differences` hold at once. From the
        draws of groups, which are too sure where groups are few or unequal: ``mean_rank``;
        ``best_probability``, the share in which nobody is better; ``win_probability``, the mean
        over the others of the share in which it is strictly better; ``draws``, in how many it was
        defined. ``n_left_out``, as in `differences`. Best estimate first. Ranks are NULL for
        controls, and where there is nothing to rank. An encoder with fewer than five groups has a
        rank by estimate but no part in the draws: what is made of them is NULL for it, and the
        ranks of others in the draws pass it over.

    Raises
    ------
    StatisticsError
        As `differences`; also where ``controls`` is not boolean or differs within an encoder.

    Notes
    -----
    Without undefined draws and ties the shares of draws are those of `paired_rank_stability` of the
    package ``croma`` with the same seed.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "encoder": ["a"] * 5 + ["b"] * 5,
    ...     "group_id": [1, 2, 3, 4, 5] * 2,
    ...     "margin": [0.1, 0.2, 0.3, 0.4, 0.5, 0.3, 0.4, 0.5, 0.6, 0.7],
    ... })
    >>> rank_stability(frame).select("encoder", "rank", "mean_rank", "win_probability").rows()
    [('b', 1, 1.0, 1.0), ('a', 2, 2.0, 0.0)]
    """
    by = as_names(by)
    check_names([*by, between], RESULT)
    check_apart(by, between)
    asked = parse(statistics, subsets=subset is not None)
    plan = checked_plan(draws, level, seed, threads)
    units = [] if paired_by is None else as_names(paired_by)
    named = [between, value, group, *(name for name in (subset, controls) if name is not None)]
    read = read_columns(frame, [*by, *named, *units])
    rows = read_rows(
        read, by=by, between=between, value=value, group=group, subset=subset, paired_by=paired_by
    )
    ranked = ~_controls(read, [*by, between], controls, len(rows.levels))
    found, (estimate, change, n) = resample(rows, asked, plan), without_each(rows, asked)
    both = zip(
        contests(rows, by, asked, estimate, found.drawn),
        contests(rows, by, asked, estimate, change),
        strict=True,
    )
    parts = [
        _shares(drawn, ranked[drawn.place])
        | _ranges(changed, ranked[changed.place], n[changed.place], plan.level)
        for drawn, changed in both
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    place = columns.pop("place")
    reasons = pl.Series(columns.pop("interval_reason").tolist(), dtype=pl.String)
    whole = [pl.col(name).cast(pl.Int64) for name in ("rank", "rank_lo", "rank_hi")]
    return (
        pl.DataFrame(
            {
                **columns_at(rows.levels.select(by), place),
                "statistic": columns.pop("statistic"),
                between: rows.levels[between].gather(place),
                **columns,
                "interval_reason": reasons,
                "n_left_out": n_left_out(rows, place),
            },
            nan_to_null=True,
        )
        .select(*by, "statistic", between, *RESULT[1:])
        .with_columns(whole)
    )


def _shares(contest: Contest, ranked: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Ranks by estimate, and in how many draws of groups they hold."""
    drawn = contest.goodness(contest.values[ranked])
    rank = _rank(drawn)
    of_ranked = {
        "rank": _rank(contest.goodness(contest.estimate[ranked])),
        "mean_rank": share(np.nan_to_num(rank), defined(rank)),
        "best_probability": share(rank == 1, defined(rank)),
        "win_probability": _wins(drawn),
    }
    return {
        "statistic": np.full(len(contest.place), contest.statistic.name),
        "place": contest.place,
        "estimate": contest.estimate,
        **{name: _among(ranked, values) for name, values in of_ranked.items()},
        "draws": defined(contest.values),
    }


def _ranges(
    contest: Contest, ranked: NDArray[np.bool_], n: Counts, level: float
) -> dict[str, NDArray[Any]]:
    """Intervals, and ranks that no difference between two encoders speaks against."""
    bounds = [
        interval_of(
            contest.statistic,
            LeftOut(np.flatnonzero(row), row[row > 0], estimate[None], change[None, row > 0]),
            0,
            degrees_of_freedom(Weights(row)),
            level,
        )
        for row, estimate, change in zip(n, contest.estimate, contest.values, strict=True)
    ]
    own = replace(
        contest,
        place=contest.place[ranked],
        estimate=contest.estimate[ranked],
        values=contest.values[ranked],
    )
    pairs, n_ranked = compare_all(own, n[ranked], level), len(own.place)
    apart = (pairs.lo > 0) | (pairs.hi < 0)
    known = np.zeros(n_ranked, bool)
    for side in (pairs.first, pairs.second):
        known[side[~np.isnan(pairs.lo)]] = True
    lo = 1.0 + np.bincount(pairs.second[apart], minlength=n_ranked)
    hi = n_ranked - np.bincount(pairs.first[apart], minlength=n_ranked)
    return {
        "lo": np.array([one.lo for one in bounds], np.float64),
        "hi": np.array([one.hi for one in bounds], np.float64),
        "interval_reason": np.array([one.reason for one in bounds], object),
        "rank_lo": _among(ranked, np.where(known, lo, np.nan)),
        "rank_hi": _among(ranked, np.where(known, hi, np.nan)),
    }


def _among(ranked: NDArray[np.bool_], values: Float) -> Float:
    """Values of those that are ranked, among all; NaN for the others."""
    found = np.full(len(ranked), np.nan)
    found[ranked] = values
    return found


def _rank(goodness: Float) -> Float:
    """1 + how many are strictly better, over the first axis; NaN where undefined."""
    from scipy.stats import rankdata  # its import takes half a second, which others need not wait

    ranks: Float = rankdata(-goodness, method="min", axis=0, nan_policy="omit")
    return ranks


def _wins(goodness: Float) -> Float:
    """Mean over the others of the share of draws in which each is strictly better."""
    n = len(goodness)
    wins = np.full((n, n), np.nan)
    for i in range(n):
        ahead = goodness[i] - goodness
        wins[i] = share(ahead > 0, defined(ahead))
    np.fill_diagonal(wins, np.nan)
    return share(np.nan_to_num(wins), defined(wins))


def _controls(
    read: pl.DataFrame, keys: list[str], controls: str | None, n_levels: int
) -> NDArray[np.bool_]:
    """Which levels are controls."""
    if controls is None:
        return np.zeros(n_levels, bool)
    if read[controls].dtype not in (pl.Boolean, pl.Null):
        raise StatisticsError(
            f"column {controls!r} is of type {read[controls].dtype}; expected booleans"
        )
    levels, level = codes(read, keys)
    flag = read[controls].fill_null(value=False).cast(pl.Boolean).to_numpy()
    some = np.bincount(level[flag], minlength=n_levels)
    mixed = (some > 0) & (some < np.bincount(level, minlength=n_levels))
    if mixed.any():
        raise StatisticsError(
            f"column {controls!r} is true for some rows and not for others of "
            f"{listed(levels.filter(mixed)[keys[-1]])}; a control is one in all its rows"
        )
    return some > 0
