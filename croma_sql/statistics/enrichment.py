"""Which values of the samples' attributes are over-represented among the worst margins."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError, listed
from croma_sql.statistics.attributes import Attribute, read_attributes
from croma_sql.statistics.blocks import Block, beside, blocks, sum_cells
from croma_sql.statistics.contrasts import Float, Part, false_discovery_rate, intraclass_correlation
from croma_sql.statistics.frames import as_names, read_columns
from croma_sql.statistics.intervals import check_names
from croma_sql.statistics.odds import compare
from croma_sql.statistics.options import fraction, whole_number
from croma_sql.statistics.rows import read_rows

RESULT: dict[str, Any] = {
    "tail": pl.String,
    "threshold": pl.Float64,
    "attribute": pl.String,
    "value": pl.String,
    "n": pl.Int64,
    "n_undefined": pl.Int64,
    "n_groups": pl.Int64,
    "n_tail": pl.Int64,
    "share": pl.Float64,
    "odds_ratio": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "p": pl.Float64,
    "q": pl.Float64,
}
NAMED = {"nonpositive": math.nan, "worst_decile": 0.10}


@dataclass(frozen=True, slots=True)
class _Tail:
    """Margins at or below 0, or below a quantile: a fraction, NaN for 0."""

    name: str
    fraction: float

    def threshold(self, margins: Float) -> float:
        """Largest margin of the tail, as `ltm` in ``sql/macros`` takes it."""
        if math.isnan(self.fraction):
            return 0.0
        return float(np.sort(margins)[math.floor(self.fraction * (len(margins) - 1))])


def enrichment(
    frame: Any,
    attributes: str | Sequence[str],
    *,
    by: str | Sequence[str] = (),
    value: str = "margin",
    group: str = "group_id",
    tails: str | float | Sequence[str | float] = ("nonpositive", "worst_decile"),
    bins: int = 5,
    min_size: int = 20,
    level: float = 0.95,
) -> pl.DataFrame:
    r"""How over-represented each value of each attribute is among the worst margins.

    The odds of a row of being in the tail, for the rows with the value against all others. Rows of
    one group (slide, patient) are not independent: p-value and interval take every group as one
    observation, whose rows may be correlated in any way (`croma_sql.statistics.contrasts`). The
    score of a value that lives in K groups is then at most about sqrt(K) standard deviations: one
    in 7 of 100 slides, all of whose rows are in the tail, has p = 0.004, and cannot have less.
    `croma_sql.subgroups` compares means, where a few groups of many can be a discovery. Where the
    rows of a value, or all others, are alone in their groups, and the rest hardly share any, p is
    twice the smaller tail of Fisher's exact test (of counts divided by the design effect), and the
    interval is the score's.

    Parameters
    ----------
    frame : polars, pandas or Arrow frame, or DuckDB relation
        One row per sample (and encoder, benchmark, subset), with a margin: ``FROM margins``.
    attributes : names of columns
        Text, numbers, booleans, dates or times. A column of more than ``2 * bins`` different
        numbers or times is cut at its quantiles into ``bins`` intervals. NULL is a value.
    by : names of columns, optional
        Rows are compared within each combination, such as ``("benchmark", "encoder")``.
    value, group : names of columns
        The margin, in which lower is worse and NULL undefined, and the independence unit.
    tails : 'nonpositive', 'worst_decile', or any fraction
        Margins <= 0, as in F(0); or margins <= their 0.1-quantile, or another one, as in LTM.
    bins : int, default 5
    min_size : int, default 20
        Values with fewer defined margins are left out.
    level : float, default 0.95
        Of the interval.

    Returns
    -------
    polars.DataFrame
        ``*by``, ``tail``, ``threshold`` (the largest margin of the tail), ``attribute``, ``value``
        (text; NULL for missing cells), ``n`` (defined margins), ``n_undefined``, ``n_groups`` (that
        hold any of the n), ``n_tail``, ``share`` = n_tail / n, ``odds_ratio``, ``lo``, ``hi``,
        ``p`` (two-sided), ``q`` (Benjamini and Hochberg, over all rows of the same ``by`` and
        ``tail``). Within each ``by`` and ``tail``, the highest ``lo`` first: what is certain to be
        worst. A level of ``by`` without a defined margin has no rows.

        Where a count of the four is 0, half is added to each for ``odds_ratio``. The interval
        reaches from the smallest to the largest odds ratio that the score test does not reject.
        It may hold 1 at a p just below 1 - level: where p is Fisher's, and in few groups, where
        ratios between may be rejected. ``hi`` is NULL, and ``lo`` 0, where
        there is no limit: a value in fewer than four groups has none at 95 %, for it cannot be
        told from these groups. ``odds_ratio`` to ``q`` are NULL where nothing is compared: all
        rows have the value, or all or none are in the tail.

    Raises
    ------
    StatisticsError
        A missing column (the message lists those there are), a row without group, a margin that is
        no number, an unknown tail, sizes that make no sense.

    References
    ----------
    C. Grisi et al., "Beyond Counts", 2026, for F(0) and LTM; K.-Y. Liang and S. L. Zeger,
    "Longitudinal data analysis using generalized linear models", 1986, and D. D. Boos, "On
    generalized score tests", 1992, for the test; Y. Benjamini and Y. Hochberg, 1995, for q.

    Examples
    --------
    >>> margins = [-0.2, -0.1, 0.3, 0.4, 0.1, 0.2, 0.5, -0.3]
    >>> frame = pl.DataFrame({"margin": margins, "scanner": [*"aaaabbbb"], "group_id": range(8)})
    >>> found = enrichment(frame, "scanner", tails="nonpositive", min_size=1)
    >>> found.select("value", "n", "n_tail", "share", "odds_ratio").row(0)  # (2 / 2) / (1 / 3)
    ('a', 4, 2, 0.5, 3.0)
    """
    by, attributes, wanted = as_names(by), as_names(attributes), _read_tails(tails)
    check_names(by, list(RESULT))
    bins, min_size = whole_number("bins", bins, least=2), whole_number("min_size", min_size)
    z = float(scipy.special.ndtri((1 + fraction("level", level, like=0.95)) / 2))
    read = read_columns(frame, [*by, value, group, *attributes])
    rows = read_rows(read, by=by, value=value, group=group, subset=None)
    told = read_attributes(read, attributes, bins)
    levels = rows.levels.select(by)
    tables = [
        beside(levels, block.level, table)
        for block in blocks(rows)
        for table in _tables(block, told, wanted, min_size, z)
    ]
    return pl.concat([pl.DataFrame(schema={**levels.schema, **RESULT}), *tables])


def _read_tails(given: Any) -> list[_Tail]:
    one = isinstance(given, str) or not isinstance(given, Iterable)
    tails = [_read_tail(name) for name in dict.fromkeys([given] if one else list(given))]
    for tail in tails:
        if sum(tail.name == other.name for other in tails) > 1:
            raise StatisticsError(
                f"two tails are called {tail.name!r}; give fractions that differ in six digits"
            )
    return tails


def _read_tail(name: Any) -> _Tail:
    if isinstance(name, str) and name in NAMED:
        return _Tail(name, NAMED[name])
    if isinstance(name, float | np.floating) and 0 < name < 1:
        return _Tail(f"worst_{name:g}", float(name))
    raise StatisticsError(
        f"tail {name!r} is not known; expected {listed(NAMED)} or a fraction between 0 and 1"
    )


def _tables(
    block: Block, attributes: list[Attribute], tails: list[_Tail], min_size: int, z: float
) -> Iterator[pl.DataFrame]:
    """One table per tail of one block."""
    all_rows = np.zeros((1, len(block.margin)), np.int32)
    codes = [attribute.code[block.row] for attribute in attributes]
    told = _values(attributes, block.undefined)
    for tail in tails:
        threshold = tail.threshold(block.margin)
        y = (block.margin <= threshold).astype(np.float64)
        found = [
            sum_cells(block.starts, y, code, len(attribute.values), all_rows)
            for code, attribute in zip(codes, attributes, strict=True)
        ]
        own = np.concatenate([cells.own for cells in found])
        cross = np.concatenate([cells.cross[0] for cells in found])
        large = own[:, 0] >= min_size
        whole = sum_cells(block.starts, y, all_rows[0], 1, all_rows[:0]).own[0]
        part = Part.of(own[large], cross[large], whole)
        alike = intraclass_correlation(y, block.starts)
        yield _table(tail.name, threshold, told.filter(large), part, alike, z)


def _values(attributes: list[Attribute], undefined: NDArray[np.intp]) -> pl.DataFrame:
    """One row per value of each attribute, with the rows that have no margin."""
    tables = [
        pl.DataFrame(
            {
                "attribute": pl.Series([attribute.name] * len(attribute.values), dtype=pl.String),
                "value": pl.Series(attribute.values, dtype=pl.String),
                "n_undefined": np.bincount(
                    attribute.code[undefined], minlength=len(attribute.values)
                ),
            }
        )
        for attribute in attributes
    ]
    return pl.concat(tables)


def _table(
    tail: str, threshold: float, told: pl.DataFrame, part: Part, alike: float, z: float
) -> pl.DataFrame:
    odds = compare(part, alike, z)
    tested = ~np.isnan(odds.p)
    q = np.full(len(odds.p), np.nan)
    q[tested] = false_discovery_rate(odds.p[tested])
    table = told.with_columns(
        tail=pl.lit(tail),
        threshold=threshold,
        n=pl.Series(part.own.n),
        n_groups=pl.Series(part.own.groups),
        n_tail=pl.Series(part.own.y),
        share=pl.Series(part.own.y / part.own.n),
        odds_ratio=pl.Series(odds.ratio),
        lo=pl.Series(odds.lo),
        hi=pl.Series(odds.hi),
        p=pl.Series(odds.p),
        q=pl.Series(q),
    )
    whole = table.select(pl.col(name).cast(dtype) for name, dtype in RESULT.items())
    return whole.with_columns(pl.selectors.float().fill_nan(None)).sort(
        "lo", "odds_ratio", descending=True, nulls_last=True, maintain_order=True
    )
