"""Which levels are compared with each other, and by what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError
from croma_sql.statistics.resampling import Float, Resampled
from croma_sql.statistics.rows import Rows, codes
from croma_sql.statistics.summaries import Statistic


@dataclass(frozen=True, slots=True)
class Contest:
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


def check_apart(by: Sequence[str], between: str) -> None:
    """Refuse to compare levels within themselves, or by what is no column.

    Raises
    ------
    StatisticsError
    """
    if not isinstance(between, str):
        raise StatisticsError(f"between is {between!r}; it is the name of one column")
    if between in by:
        raise StatisticsError(
            f"column {between!r} is both what is compared and a level of by; leave it out of by"
        )


def contests(
    rows: Rows, by: Sequence[str], asked: Sequence[Statistic], found: Resampled
) -> Iterator[Contest]:
    """Compare by each statistic what lies in one level of ``by``."""
    block = codes(rows.levels, by)[1]
    for places in np.split(np.arange(len(block)), np.flatnonzero(np.diff(block)) + 1):
        for s, statistic in enumerate(asked):
            estimate = found.estimate[places, s]
            best_first = np.argsort(
                estimate if statistic.lower_is_better else -estimate, kind="stable"
            )
            place = places[best_first]
            yield Contest(statistic, place, estimate[best_first], found.drawn[place, s])


def share(hits: NDArray[Any], of: NDArray[np.int64]) -> Float:
    """Sum over the last axis, divided; NaN where there is nothing to divide by."""
    with np.errstate(invalid="ignore"):
        share: Float = hits.sum(axis=-1) / of
    return share


def n_left_out(rows: Rows, place: NDArray[np.intp]) -> pl.Series:
    """How many units were not paired in the block of each of these levels; NULL without pairs."""
    if rows.n_left_out is None:
        return pl.Series([None] * len(place), dtype=pl.Int64)
    return pl.Series(rows.n_left_out[place], dtype=pl.Int64)
