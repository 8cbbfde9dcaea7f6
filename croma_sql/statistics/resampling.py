"""Statistics of every level under the same draws of groups."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.statistics.options import fraction, whole_number
from croma_sql.statistics.rows import Codes, Rows
from croma_sql.statistics.summaries import Statistic
from croma_sql.udfs.statistics import resampling as kernels
from croma_sql.udfs.threads import ForEach, available_cores, cores

FEWEST_UNITS = 5  # that make an interval: those of fewer hold the truth far too seldom
MOST_DRAWS = 1_000_000
LARGEST_SEED = 2**63 - 1
PICKS = 1 << 21  # of groups, held at once
PER_TASK = 1 << 25  # margins that are looked at, a few hundredths of a second

Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Plan:
    """How to resample."""

    draws: int
    level: float
    seed: int
    threads: int


@dataclass(frozen=True, slots=True)
class Resampled:
    """Statistics as they are and as they are drawn; NaN where undefined.

    estimate : (levels, statistics)
    drawn : (levels, statistics, draws); NaN for levels of too few groups, whose
        uncertainty cannot be known
    """

    estimate: Float
    drawn: Float


@dataclass(frozen=True, slots=True)
class _Cells:
    """Defined margins of each cell, sorted, as the kernels take them."""

    value: Float
    group: Codes
    bounds: NDArray[np.int64]


def checked_plan(draws: Any, level: Any, seed: Any, threads: Any) -> Plan:
    """Refuse a plan that makes no interval.

    Raises
    ------
    StatisticsError
    """
    return Plan(
        whole_number("draws", draws, most=MOST_DRAWS),
        fraction("level", level, like=0.95),
        whole_number("seed", seed, least=0, most=LARGEST_SEED),
        available_cores() if threads is None else whole_number("threads", threads),
    )


def resample(rows: Rows, statistics: Sequence[Statistic], plan: Plan) -> Resampled:
    """Compute every statistic of every level, as it is and in every draw of groups.

    Holds 8 bytes per level, statistic and draw, and a few numbers per row.
    """
    shape = (len(rows.levels), len(statistics))
    estimate, drawn = np.full((*shape, 1), np.nan), np.full((*shape, plan.draws), np.nan)
    parts = _parts(rows, statistics)

    def summarise(times: Codes, out: Float) -> None:
        for which, summaries in parts:
            out[:, which] = summaries(times, for_each)

    with cores(plan.threads) as for_each:
        summarise(np.ones((1, rows.n_groups), np.int32), estimate)
        for start, times in _draws(rows.n_groups, plan):
            summarise(times, drawn[..., start : start + len(times)])
    drawn[rows.counts()["n_groups"] < FEWEST_UNITS] = np.nan
    return Resampled(estimate[..., 0], drawn)


def _parts(
    rows: Rows, statistics: Sequence[Statistic]
) -> list[tuple[NDArray[np.intp], Callable[[Codes, ForEach], Float]]]:
    """Which statistics are computed together, and how: over levels, or over their subsets."""
    known, n_levels = rows.where(~np.isnan(rows.value)), len(rows.levels)
    headline = np.array([statistic.of_subsets for statistic in statistics])
    parts: list[tuple[NDArray[np.intp], Callable[[Codes, ForEach], Float]]] = []
    if headline.any():
        cells, starts = _cells_of_subsets(known, n_levels)
        one = next(statistic for statistic in statistics if statistic.of_subsets)
        parts.append((np.flatnonzero(headline), partial(_over_subsets, cells, starts, one)))
    if not headline.all():
        cells = _cells(known, known.level, n_levels)
        pooled = [statistic for statistic in statistics if not statistic.of_subsets]
        parts.append((np.flatnonzero(~headline), partial(_summaries, cells, pooled)))
    return parts


def _draws(n_groups: int, plan: Plan) -> Iterator[tuple[int, Codes]]:
    """How often each draw drew each group, (some draws, groups), and which draw is the first."""
    rng = np.random.default_rng(plan.seed)
    together = max(1, PICKS // max(n_groups, 1))
    for start in range(0, plan.draws if n_groups else 0, together):
        shape = (min(together, plan.draws - start), n_groups)
        times = np.empty(shape, np.int32)
        kernels.count_picks(rng.integers(0, n_groups, shape), times)
        yield start, times


def _cells(known: Rows, cell: NDArray[np.integer], n_cells: int) -> _Cells:
    """Sort by cell, margin and group, so that no last bit depends on the order of rows."""
    frame = pl.DataFrame({"cell": cell, "value": known.value, "group": known.group})
    ordered = frame.sort("cell", "value", "group")
    bounds = np.concatenate([[0], np.bincount(cell, minlength=n_cells).cumsum()])
    return _Cells(ordered["value"].to_numpy(), ordered["group"].to_numpy(), bounds)


def _cells_of_subsets(known: Rows, n_levels: int) -> tuple[_Cells, NDArray[np.int64]]:
    """One cell per level and subset that it has, and where the cells of each level begin."""
    n_subsets = int(known.subset.max(initial=0)) + 1
    pairs = known.level.astype(np.int64) * n_subsets + known.subset
    distinct, cell = np.unique(pairs, return_inverse=True)
    starts = np.searchsorted(distinct // n_subsets, np.arange(n_levels + 1))
    return _cells(known, cell, len(distinct)), starts


def _summaries(
    cells: _Cells, statistics: Sequence[Statistic], times: Codes, for_each: ForEach
) -> Float:
    kinds = np.array([statistic.kind for statistic in statistics], np.int64)
    fractions = np.array([statistic.fraction for statistic in statistics])
    draws = times.shape[0]
    out = np.empty((len(cells.bounds) - 1, len(statistics), draws))
    for_each(
        lambda some: kernels.summarise(
            cells.value, cells.group, cells.bounds, times, kinds, fractions, out, *some
        ),
        _ranges(draws, PER_TASK // max(len(cells.value) * len(statistics), 1)),
    )
    return out


def _over_subsets(
    cells: _Cells,
    starts: NDArray[np.int64],
    statistic: Statistic,
    times: Codes,
    for_each: ForEach,
) -> Float:
    each = _summaries(cells, [statistic], times, for_each)[:, 0]
    out = np.empty((len(starts) - 1, 1, times.shape[0]))
    for_each(
        lambda some: kernels.median_over_cells(each, starts, out[:, 0], *some),
        _ranges(times.shape[0], PER_TASK // max(len(each), 1)),
    )
    return out


def _ranges(n: int, together: int) -> list[tuple[int, int]]:
    step = max(1, min(together, -(-n // available_cores())))
    return [(start, min(start + step, n)) for start in range(0, n, step)]
