"""Differences between encoders, or strata, under the same draws of groups."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError, listed
from croma_sql.statistics.contests import Contest, check_apart, contests, n_left_out, share
from croma_sql.statistics.frames import as_names
from croma_sql.statistics.intervals import check_names, defined, interval
from croma_sql.statistics.resampling import checked_plan, resample
from croma_sql.statistics.rows import columns_at, read_rows
from croma_sql.statistics.summaries import parse

RESULT = (
    "statistic", "first", "second", "difference", "lo", "hi", "win_probability", "draws",
    "n_left_out",
)  # fmt: skip


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
        Its values are compared, within each level of ``by``. NULL is one of them, and NaN is NULL.
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
        ``by``, NULL without it. Where either has fewer than five groups, interval and
        ``win_probability`` are NULL, of no draw; those of few groups hold the truth less often than
        they say, as in `croma_sql.bootstrap`.

    Raises
    ------
    StatisticsError
        As `croma_sql.bootstrap`; also where ``paired_by`` names nothing or does not tell samples
        apart, and where no level of ``by`` has two values of ``between``.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "encoder": ["a"] * 5 + ["b"] * 5,
    ...     "group_id": [1, 2, 3, 4, 5] * 2,
    ...     "margin": [0.1, 0.2, 0.3, 0.4, 0.5, 0.3, 0.4, 0.5, 0.6, 0.7],
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
    by = as_names(by)
    check_names(by, RESULT)
    check_apart(by, between)
    asked = parse(statistics, subsets=subset is not None)
    plan = checked_plan(draws, level, seed, threads)
    rows = read_rows(
        frame, by=by, between=between, value=value, group=group, subset=subset, paired_by=paired_by
    )
    found = resample(rows, asked, plan)
    pairs = [
        pair for contest in contests(rows, by, asked, found) for pair in _pairs(contest, plan.level)
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
            **columns_at(rows.levels.select(by), first),
            "statistic": columns.pop("statistic"),
            "first": rows.levels[between].gather(first),
            "second": rows.levels[between].gather(second),
            **columns,
            "n_left_out": n_left_out(rows, first),
        },
        nan_to_null=True,
    )


def _pairs(contest: Contest, level: float) -> Iterator[dict[str, NDArray[Any]]]:
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
            "win_probability": share(contest.goodness(difference) > 0, draws),
            "draws": draws,
        }
