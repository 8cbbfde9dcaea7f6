"""Differences between encoders or strata, and how stable their ranks are, under the same draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError, listed
from croma_sql.statistics.frames import as_names, read_columns
from croma_sql.statistics.intervals import check_names, defined, interval
from croma_sql.statistics.resampling import Float, Resampled, checked_plan, resample
from croma_sql.statistics.rows import Rows, codes, read_rows
from croma_sql.statistics.summaries import Statistic, parse

DIFFERENCES = (
    "statistic", "first", "second", "difference", "lo", "hi", "win_probability", "draws",
    "n_left_out",
)  # fmt: skip
RANKS = (
    "statistic", "estimate", "lo", "hi", "rank", "mean_rank", "rank_lo", "rank_hi",
    "best_probability", "win_probability", "draws", "n_left_out",
)  # fmt: skip
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _Contest:
    """Levels that are compared with each other by one statistic, best estimate first.

    place : (levels,) their rows in the frame of levels
    estimate, drawn : (levels,) and (levels, draws)
    """

    statistic: Statistic
    place: NDArray[np.intp]
    estimate: Float
    drawn: Float

    def goodness(self, values: Float) -> Float:
        """Turn values so that higher is better."""
        return -values if self.statistic.lower_is_better else values


def differences(
    frame: Any,
    *,
    between: str = "encoder",
    by: str | Sequence[str] = (),
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
    """Differences between every two encoders, or strata, with intervals, under the same draws.

    Every draw of groups, as in `croma_sql.bootstrap`, serves all levels of ``between``: what moves
    two encoders together cancels, and what is left is the difference between them. Levels may also
    be strata (scanners, classes) with rows of their own; groups that have rows in both then move
    both.

    Parameters
    ----------
    between : column name
        Its values are compared, within each level of ``by``.
    paired_by : column name or names, optional
        What tells the samples of a level apart, as ``"sample_id"``, or ``["sample_id", "subset"]``
        where a sample is in several subsets. Only samples with a defined value at every level of
        ``between`` then take part. By default all defined values do.
    frame, by, value, group, subset, statistics, draws, level, seed, threads
        As in `croma_sql.bootstrap`.

    Returns
    -------
    polars.DataFrame
        The columns of ``by``; ``statistic``; ``first`` and ``second``, each two values of
        ``between`` once, the better estimate first; ``difference``, first minus second; ``lo``,
        ``hi``, its percentile interval; ``win_probability``, the share of draws in which ``first``
        is strictly better (lower for f0, higher for all others); ``draws``, in how many draws both
        were defined; ``n_left_out``, how many samples ``paired_by`` left out of the level of
        ``by``, NULL without it.

    Raises
    ------
    StatisticsError
        As `croma_sql.bootstrap`; also where ``paired_by`` does not tell samples apart, and where
        no level of ``by`` has two values of ``between``.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "encoder": ["a", "a", "a", "b", "b", "b"],
    ...     "group_id": [1, 2, 3, 1, 2, 3],
    ...     "margin": [0.1, 0.2, 0.3, 0.3, 0.4, 0.5],
    ... })
    >>> differences(frame).select("first", "second", "difference", "lo", "hi", "win_probability")
    shape: (1, 6)
    ┌───────┬────────┬────────────┬─────┬─────┬─────────────────┐
    │ first ┆ second ┆ difference ┆ lo  ┆ hi  ┆ win_probability │
    │ ---   ┆ ---    ┆ ---        ┆ --- ┆ --- ┆ ---             │
    │ str   ┆ str    ┆ f64        ┆ f64 ┆ f64 ┆ f64             │
    ╞═══════╪════════╪════════════╪═════╪═════╪═════════════════╡
    │ b     ┆ a      ┆ 0.2        ┆ 0.2 ┆ 0.2 ┆ 1.0             │
    └───────┴────────┴────────────┴─────┴─────┴─────────────────┘
    """
    by = _blocks(by, between, DIFFERENCES)
    asked = parse(statistics, subsets=subset is not None)
    plan = checked_plan(draws, level, seed, threads)
    rows = read_rows(
        frame, by=by, between=between, value=value, group=group, subset=subset, paired_by=paired_by
    )
    found = resample(rows, asked, plan)
    pairs = [
        pair
        for contest in _contests(rows, by, asked, found)
        for pair in _pairs(contest, plan.level)
    ]
    if not pairs:
        raise StatisticsError(
            f"there is nothing to compare: {between!r} has fewer than two values"
            + (f" at every level of {listed(by)}" if by else "")
        )
    columns = {name: np.concatenate([pair[name] for pair in pairs]) for name in pairs[0]}
    first, second = columns.pop("first"), columns.pop("second")
    return pl.DataFrame(
        {
            **_at(rows.levels.select(by), first),
            "statistic": columns.pop("statistic"),
            "first": rows.levels[between].gather(first),
            "second": rows.levels[between].gather(second),
            **columns,
            "n_left_out": _left_out(rows, first),
        },
        nan_to_null=True,
    )


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
    frame, between, by, value, group, subset, paired_by, statistics, draws, level, seed, threads
        As in `differences`.

    Returns
    -------
    polars.DataFrame
        The columns of ``by``; ``statistic``; ``between``'s column; ``estimate``, ``lo``, ``hi``, as
        in `croma_sql.bootstrap`; ``rank``, by estimate; ``mean_rank`` over the draws; ``rank_lo``,
        ``rank_hi``, its percentile interval, rounded down to whole ranks; ``best_probability``, the
        share of draws in which nobody is better; ``win_probability``, the mean over the others of
        the share of draws in which it is strictly better (`differences` has them one by one);
        ``draws``, in how many draws it was defined; ``n_left_out``, as in `differences`. Best
        estimate first. Ranks are NULL for controls, and where there is nothing to rank.

    Raises
    ------
    StatisticsError
        As `differences`; also where ``controls`` is not boolean or differs within an encoder.

    Notes
    -----
    Without undefined draws and ties the numbers are those of `paired_rank_stability` of the package
    ``croma`` with the same seed.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "encoder": ["a", "a", "a", "b", "b", "b"],
    ...     "group_id": [1, 2, 3, 1, 2, 3],
    ...     "margin": [0.1, 0.2, 0.3, 0.3, 0.4, 0.5],
    ... })
    >>> rank_stability(frame).select("encoder", "rank", "mean_rank", "win_probability").rows()
    [('b', 1, 1.0, 1.0), ('a', 2, 2.0, 0.0)]
    """
    by = _blocks(by, between, RANKS)
    asked = parse(statistics, subsets=subset is not None)
    plan = checked_plan(draws, level, seed, threads)
    units = [] if paired_by is None else as_names(paired_by)
    named = [between, value, group, *(name for name in (subset, controls) if name is not None)]
    read = read_columns(frame, [*by, *named, *units])
    rows = read_rows(
        read, by=by, between=between, value=value, group=group, subset=subset, paired_by=paired_by
    )
    ranked = ~_controls(read, [*by, between], controls, len(rows.levels))
    parts = [
        _ranks(contest, ranked[contest.place], plan.level)
        for contest in _contests(rows, by, asked, resample(rows, asked, plan))
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    place = columns.pop("place")
    whole = [pl.col(name).cast(pl.Int64) for name in ("rank", "rank_lo", "rank_hi")]
    return pl.DataFrame(
        {
            **_at(rows.levels.select(by), place),
            "statistic": columns.pop("statistic"),
            between: rows.levels[between].gather(place),
            **columns,
            "n_left_out": _left_out(rows, place),
        },
        nan_to_null=True,
    ).with_columns(whole)


def _blocks(by: str | Sequence[str], between: str, result: Sequence[str]) -> list[str]:
    names = as_names(by)
    check_names([*names, between] if result is RANKS else names, result)
    if between in names:
        raise StatisticsError(
            f"column {between!r} is both what is compared and a level of by; leave it out of one"
        )
    return names


def _contests(
    rows: Rows, by: Sequence[str], asked: Sequence[Statistic], found: Resampled
) -> Iterator[_Contest]:
    block = codes(rows.levels, by)[1]
    for places in np.split(np.arange(len(block)), np.flatnonzero(np.diff(block)) + 1):
        for s, statistic in enumerate(asked):
            estimate = found.estimate[places, s]
            best_first = np.argsort(
                estimate if statistic.lower_is_better else -estimate, kind="stable"
            )
            place = places[best_first]
            yield _Contest(statistic, place, estimate[best_first], found.drawn[place, s])


def _pairs(contest: _Contest, level: float) -> Iterator[Columns]:
    """Compare each level with all behind it."""
    for i in range(len(contest.place) - 1):
        n = len(contest.place) - i - 1
        difference = contest.drawn[i] - contest.drawn[i + 1 :]
        draws = defined(difference)
        lo, hi = interval(difference, level)
        yield {
            "statistic": np.full(n, contest.statistic.name),
            "first": np.full(n, contest.place[i]),
            "second": contest.place[i + 1 :],
            "difference": contest.estimate[i] - contest.estimate[i + 1 :],
            "lo": lo,
            "hi": hi,
            "win_probability": _share(contest.goodness(difference) > 0, draws),
            "draws": draws,
        }


def _ranks(contest: _Contest, ranked: NDArray[np.bool_], level: float) -> Columns:
    n = len(contest.place)
    columns = {"statistic": np.full(n, contest.statistic.name), "place": contest.place}
    columns["estimate"] = contest.estimate
    columns["lo"], columns["hi"] = interval(contest.drawn, level)
    drawn = contest.goodness(contest.drawn[ranked])
    rank = _rank(drawn)
    rank_lo, rank_hi = interval(rank, level)
    of_ranked = {
        "rank": _rank(contest.goodness(contest.estimate[ranked])),
        "mean_rank": _share(np.nan_to_num(rank), defined(rank)),
        "rank_lo": np.floor(rank_lo),
        "rank_hi": np.floor(rank_hi),
        "best_probability": _share(rank == 1, defined(rank)),
        "win_probability": _wins(drawn),
    }
    for name, values in of_ranked.items():
        columns[name] = np.full(n, np.nan)
        columns[name][ranked] = values
    columns["draws"] = defined(contest.drawn)
    return columns


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
        wins[i] = _share(ahead > 0, defined(ahead))
    np.fill_diagonal(wins, np.nan)
    return _share(np.nan_to_num(wins), defined(wins))


def _share(hits: NDArray[Any], of: NDArray[np.int64]) -> Float:
    """Sum over the last axis, divided; NaN where there is nothing to divide by."""
    with np.errstate(invalid="ignore"):
        share: Float = hits.sum(axis=-1) / of
    return share


def _at(levels: pl.DataFrame, place: NDArray[np.intp]) -> dict[str, pl.Series]:
    return {column.name: column.gather(place) for column in levels}


def _left_out(rows: Rows, place: NDArray[np.intp]) -> pl.Series:
    if rows.n_left_out is None:
        return pl.Series([None] * len(place), dtype=pl.Int64)
    return pl.Series(rows.n_left_out[place], dtype=pl.Int64)


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
