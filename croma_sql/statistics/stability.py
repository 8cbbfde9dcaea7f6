"""How stable the ranks of encoders are when groups are drawn again."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError, listed
from croma_sql.statistics.contests import Contest, check_apart, contests, n_left_out, share
from croma_sql.statistics.frames import as_names, read_columns
from croma_sql.statistics.intervals import check_names, defined, interval
from croma_sql.statistics.resampling import Float, checked_plan, resample
from croma_sql.statistics.rows import codes, columns_at, read_rows
from croma_sql.statistics.summaries import parse

RESULT = (
    "statistic", "estimate", "lo", "hi", "rank", "mean_rank", "rank_lo", "rank_hi",
    "best_probability", "win_probability", "draws", "n_left_out",
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
        estimate first. Ranks are NULL for controls, and where there is nothing to rank. An encoder
        with fewer than five groups has a rank by estimate but no part in the draws: what is made of
        them is NULL for it, and the ranks of others in the draws pass it over.

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
    parts = [
        _ranks(contest, ranked[contest.place], plan.level)
        for contest in contests(rows, by, asked, resample(rows, asked, plan))
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    place = columns.pop("place")
    whole = [pl.col(name).cast(pl.Int64) for name in ("rank", "rank_lo", "rank_hi")]
    return pl.DataFrame(
        {
            **columns_at(rows.levels.select(by), place),
            "statistic": columns.pop("statistic"),
            between: rows.levels[between].gather(place),
            **columns,
            "n_left_out": n_left_out(rows, place),
        },
        nan_to_null=True,
    ).with_columns(whole)


def _ranks(contest: Contest, ranked: NDArray[np.bool_], level: float) -> dict[str, NDArray[Any]]:
    n = len(contest.place)
    columns = {"statistic": np.full(n, contest.statistic.name), "place": contest.place}
    columns["estimate"] = contest.estimate
    columns["lo"], columns["hi"] = interval(contest.drawn, level)
    drawn = contest.goodness(contest.drawn[ranked])
    rank = _rank(drawn)
    rank_lo, rank_hi = interval(rank, level)
    of_ranked = {
        "rank": _rank(contest.goodness(contest.estimate[ranked])),
        "mean_rank": share(np.nan_to_num(rank), defined(rank)),
        "rank_lo": np.floor(rank_lo),
        "rank_hi": np.floor(rank_hi),
        "best_probability": share(rank == 1, defined(rank)),
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
