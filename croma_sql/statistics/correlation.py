"""Spearman correlations between columns, over encoders."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs

from croma_sql.errors import StatisticsError, listed
from croma_sql.statistics.frames import as_names, as_numbers, read_columns, whole
from croma_sql.statistics.intervals import check_names, defined, interval
from croma_sql.statistics.resampling import FEWEST_UNITS, Float, Plan, checked_plan
from croma_sql.statistics.rows import codes, columns_at

RESULT = ("x", "y", "rho", "lo", "hi", "p", "n", "draws")
FEWEST = 3  # rows that make a correlation
PICKS = 1 << 20  # of rows, held at once
Pair = tuple[int, int]


def spearman(
    frame: Any,
    columns: Sequence[str] | None = None,
    *,
    by: str | Sequence[str] = (),
    draws: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> pl.DataFrame:
    """Spearman rank correlation of every two columns, with bootstrap intervals.

    A row is an encoder: the question is how alike two measures, benchmarks or settings rank them.
    Rows are drawn with replacement; with few encoders the interval is as wide as it should be.

    Parameters
    ----------
    frame : polars, pandas or Arrow frame, DuckDB relation, or mapping of columns
    columns : column names, optional
        Default: all columns of numbers.
    by : column name or names, optional
        Each level by itself.
    draws, level, seed
        As in `croma_sql.bootstrap`.

    Returns
    -------
    polars.DataFrame
        The columns of ``by``; ``x``, ``y``, each two columns once; ``rho``; ``lo``, ``hi``, its
        percentile interval; ``p``, two-sided, of no correlation, by the t approximation of
        `scipy.stats.spearmanr`; ``n``, rows in which both columns are defined; ``draws``, in how
        many draws both varied. NULL where fewer than 3 rows are defined or a column does not vary;
        the interval, of no draw, also of 3 or 4 rows, which would hold the truth too seldom.

    Raises
    ------
    StatisticsError
        Columns that are not there or hold no finite numbers, fewer than two of them, a plan that
        makes no interval.

    Notes
    -----
    The numbers are those of `bootstrap_spearman` of the package ``croma`` with the same seed.

    Examples
    --------
    >>> frame = {"croma": [0.1, 0.2, 0.3, 0.4], "ri": [0.5, 0.7, 0.6, 0.9]}
    >>> spearman(frame).select("x", "y", pl.col("rho").round(6), "n").row(0)
    ('croma', 'ri', 0.8, 4)
    """
    by = as_names(by)
    check_names(by, RESULT)
    plan = checked_plan(draws, level, seed, None)
    read = whole(frame) if columns is None else read_columns(frame, [*by, *as_names(columns)])
    names = _columns(read, columns, by)
    levels, level_of_row = codes(read, by)
    numbers = [as_numbers(read[name]).fill_null(np.nan).to_numpy() for name in names]
    values = np.column_stack(numbers)
    pairs = list(combinations(range(len(names)), 2))
    shape = (len(levels), len(pairs))
    rho, p, n = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    drawn = np.full((*shape, plan.draws), np.nan)
    for i in range(len(levels)):
        for rows, some in _alike(values[level_of_row == i], pairs).values():
            n[i, some] = len(rows)
            if len(rows) >= FEWEST_UNITS:
                drawn[i, some] = _drawn(rows, [pairs[j] for j in some], plan)
            if len(rows) >= FEWEST:
                for j in some:
                    rho[i, j], p[i, j] = _spearman(*rows[:, pairs[j]].T)
    lo, hi = interval(drawn, plan.level)
    return pl.DataFrame(
        {
            **columns_at(levels.select(by), np.repeat(np.arange(len(levels)), len(pairs))),
            "x": [names[x] for x, _ in pairs] * len(levels),
            "y": [names[y] for _, y in pairs] * len(levels),
            "rho": rho.ravel(),
            "lo": lo.ravel(),
            "hi": hi.ravel(),
            "p": p.ravel(),
            "n": n.ravel(),
            "draws": defined(drawn).ravel(),
        },
        nan_to_null=True,
    )


def _columns(read: pl.DataFrame, asked: Sequence[str] | None, by: list[str]) -> list[str]:
    names = read.select(cs.numeric()).columns if asked is None else as_names(asked)
    names = [name for name in names if name not in by]
    if len(names) < 2:
        raise StatisticsError(
            f"a correlation takes two columns of numbers; there is only {listed(names)}"
            if names
            else "a correlation takes two columns of numbers; there is none"
        )
    return names


def _alike(values: Float, pairs: list[Pair]) -> dict[bytes, tuple[Float, list[int]]]:
    """Pairs by the rows in which both are defined, since those share their draws."""
    there = ~np.isnan(values)
    both: dict[bytes, list[int]] = defaultdict(list)
    for j, pair in enumerate(pairs):
        both[there[:, pair].all(axis=1).tobytes()].append(j)
    return {rows: (values[np.frombuffer(rows, bool)], some) for rows, some in both.items()}


def _drawn(rows: Float, pairs: list[Pair], plan: Plan) -> Float:
    """Correlation of each pair in each draw, (pairs, draws); NaN where one does not vary."""
    rng = np.random.default_rng(plan.seed)
    out = np.empty((len(pairs), plan.draws))
    together = max(1, PICKS // len(rows))
    for start in range(0, plan.draws, together):
        shape = (min(together, plan.draws - start), len(rows))
        picks = rng.integers(0, len(rows), shape)
        unit = {
            column: _unit_ranks(rows[picks, column]) for column in {c for p in pairs for c in p}
        }
        for j, (x, y) in enumerate(pairs):
            out[j, start : start + len(picks)] = np.einsum("dn,dn->d", unit[x], unit[y])
    return np.clip(out, -1, 1)  # which rounding may leave


def _unit_ranks(drawn: Float) -> Float:
    """Ranks of each row, centred and of length 1, so that a product of two is their correlation."""
    from scipy.stats import rankdata  # imported late, as in `stability`

    ranks = rankdata(drawn, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    length = np.linalg.norm(ranks, axis=1, keepdims=True)
    length[length == 0] = np.nan
    unit: Float = ranks / length
    return unit


def _spearman(x: Float, y: Float) -> tuple[float, float]:
    from scipy.stats import spearmanr

    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan
    found = spearmanr(x, y)
    return found.statistic, found.pvalue
