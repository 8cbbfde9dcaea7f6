"""The worst subgroups over all combinations of a few attributes: where to look first.

Why not sliceline
-----------------
`sliceline` (0.3.0 on PyPI, an implementation of Sagadeeva and Boehm, "SliceLine", SIGMOD 2021) was
tried, on 20,000 margins with a fragile 3 % that two of eight attributes define, and does not fit:

- It ranks by ``a (mean error in slice / mean error - 1) - (1 - a) (rows / rows in slice - 1)``. The
  size enters linearly, so at the default a = 0.6 a slice of 3 % must have more than twenty times
  the mean error: it found nothing. At a = 0.95 to 0.98 the planted slice came first for the error
  ``margin <= 0`` but not for the margin itself, at a = 0.99 a meaningless refinement of it could.
- It knows no groups, so that 500 tiles of one slide weigh as much as 500 slides, and gives neither
  a p-value nor a false discovery rate: it always has a first place.
- Errors have to be at least 0, and lists hold nested slices that say the same.

Its pruning needs that score, and it needs scikit-learn. It took 1.5 to 3.5 s, where sums over all
combinations that are large enough take 0.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from croma_sql.statistics.attributes import (
    Attribute,
    attribute_names,
    check_capitals,
    read_attributes,
)
from croma_sql.statistics.blocks import Block, beside, blocks
from croma_sql.statistics.contrasts import Common
from croma_sql.statistics.frames import as_names, read_columns, whole
from croma_sql.statistics.intervals import check_names
from croma_sql.statistics.options import whole_number
from croma_sql.statistics.rows import read_rows
from croma_sql.statistics.slices import find_slices
from croma_sql.statistics.worst import rank

RESULT: dict[str, Any] = {
    "rank": pl.Int64,
    "subgroup": pl.String,
    "attributes": pl.List(pl.String),
    "values": pl.List(pl.String),
    "n": pl.Int64,
    "n_undefined": pl.Int64,
    "n_groups": pl.Int64,
    "croma": pl.Float64,
    "f0": pl.Float64,
    "mean": pl.Float64,
    "deficit": pl.Float64,
    "score": pl.Float64,
    "p": pl.Float64,
    "q": pl.Float64,
}
TOLD = ("subgroup", "attributes", "values", "n", "n_undefined", "croma", "f0", "mean")
MOST = 3  # conditions that a reader takes in
LEAST_SHARE = 0.005  # of the rows, if nobody says how large a subgroup is


def subgroups(
    frame: Any,
    attributes: str | Sequence[str] | None = None,
    *,
    by: str | Sequence[str] = (),
    value: str = "margin",
    group: str = "group_id",
    max_attributes: int = 3,
    min_size: int | None = None,
    min_groups: int = 5,
    bins: int = 5,
    top: int = 20,
) -> pl.DataFrame:
    r"""Rank the subgroups whose margins are lowest, over all combinations of attribute values.

    Every combination of up to ``max_attributes`` values that at least ``min_size`` rows of
    ``min_groups`` groups share is compared with the whole. Two things keep chance from the first
    places:

    - ``score`` is the deficit after empirical Bayes shrinkage towards the whole
      (`croma_sql.statistics.shrinkage`). How far it shrinks depends on groups, not rows: fifty
      tiles of one slide say little more than one.
    - A refinement is listed only if its rows are lower than the others of each slice that it
      refines, in a test at 1 % for all refinements of that slice together. One that covers the
      same rows as a simpler subgroup is not looked at: the simpler one stands for both.

    Parameters
    ----------
    frame : polars, pandas or Arrow frame, or DuckDB relation
        One row per sample (and encoder, benchmark, subset), with a margin: ``FROM margins``.
    attributes : names of columns, optional
        As in `croma_sql.enrichment`: numbers are binned, NULL is a value. By default every column
        that is not one of margins, groups, ``by`` or an id; ``label`` and ``confounder`` come
        last, so that where one of them says the same as an attribute, the attribute is named.
    by : names of columns, optional
        Subgroups are sought within each combination, such as ``("benchmark", "encoder")``.
    value, group : names of columns
        The margin, in which lower is worse and NULL undefined, and the independence unit.
    max_attributes : 1, 2 or 3
    min_size : int, optional
        Rows with a margin that a subgroup has. Default: half a per cent of them, at least 20.
    min_groups : int, default 5
        Groups that hold any of them: a subgroup of fewer cannot be told from these groups.
    bins : int, default 5
    top : int, default 20
        How many are listed, of each ``by``.

    Returns
    -------
    polars.DataFrame
        ``*by``, ``rank`` (1 is worst), ``subgroup`` (a condition that SQL understands),
        ``attributes`` and ``values`` (lists), ``n`` (defined margins), ``n_undefined``,
        ``n_groups``, ``croma`` (the median), ``f0``, ``mean``, ``deficit`` (mean of all rows minus
        ``mean``), ``score``, ``p`` and ``q``.

        ``p`` is one-sided: the subgroup is not lower than the rest, or, if it refines others, not
        lower than the rest of one of them. Rows of a group may be correlated in any way; means of
        groups vary as much inside as outside, or the p of a subgroup of a few groups is too small
        (`croma_sql.statistics.contrasts`). ``q`` is Benjamini and Hochberg's, over all subgroups
        of the same ``by`` that were compared, not only those listed. Only subgroups below the
        whole are listed, however uncertain: those with a high ``q`` may be chance. A level of
        ``by`` without a defined margin has no rows.

    Raises
    ------
    StatisticsError
        A missing column (the message lists those there are), a row without group, a margin that is
        no number, numbers that make no sense, an attribute and another column whose names differ
        by capitals only.

    References
    ----------
    S. Sagadeeva and M. Boehm, "SliceLine", 2021, and Y. Chung et al., "Slice Finder", 2019, for the
    question; the module says why not with them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> slide = np.arange(4000) // 50
    >>> zone, pen = rng.choice(["border", "inside"], 4000), rng.integers(2, size=4000) == 1
    >>> margin = 0.3 + 0.2 * rng.standard_normal(4000) - 0.4 * ((slide % 5 == 0) & pen)
    >>> frame = pl.DataFrame(
    ...     {"group_id": slide, "scanner": slide % 5, "zone": zone, "pen": pen, "margin": margin}
    ... )
    >>> subgroups(frame, top=1).select("rank", "subgroup", "n", "n_groups").row(0)
    (1, 'scanner = 0 AND pen = true', 391, 16)
    """
    by = as_names(by)
    check_names(by, list(RESULT))
    options = _Options(
        whole_number("max_attributes", max_attributes, most=MOST),
        None if min_size is None else whole_number("min_size", min_size),
        whole_number("min_groups", min_groups),
        whole_number("top", top),
    )
    bins = whole_number("bins", bins, least=2)
    others = [*by, value, group]
    if attributes is None:
        read = whole(frame)
        names = attribute_names(read, others)
    else:
        names = as_names(attributes)
        read = read_columns(frame, [*others, *names])
    check_capitals(names, _column_names(frame))
    rows = read_rows(read, by=by, value=value, group=group, subset=None)
    told = read_attributes(read, names, bins)
    levels = rows.levels.select(by)
    tables = [beside(levels, block.level, _worst(block, told, options)) for block in blocks(rows)]
    return pl.concat([pl.DataFrame(schema={**levels.schema, **RESULT}), *tables])


def _column_names(frame: Any) -> list[str]:
    if isinstance(frame, pl.LazyFrame):
        return frame.collect_schema().names()
    return list(map(str, getattr(frame, "column_names", getattr(frame, "columns", frame))))


@dataclass(frozen=True, slots=True)
class _Options:
    max_attributes: int
    min_size: int | None
    min_groups: int
    top: int

    def least(self, n: int) -> int:
        return max(20, math.ceil(LEAST_SHARE * n)) if self.min_size is None else self.min_size


def _worst(block: Block, attributes: list[Attribute], options: _Options) -> pl.DataFrame:
    """Table of the worst subgroups of one block."""
    slices = find_slices(
        block.starts,
        block.margin - block.margin.mean(),
        [attribute.code[block.row] for attribute in attributes],
        most=options.max_attributes,
        min_size=options.least(len(block.row)),
        min_groups=options.min_groups,
    )
    ranked = rank(slices, Common.of(block.margin, block.starts))
    told = [
        _tell(block, [(attributes[place], code) for place, code in ranked.slices.conditions(which)])
        for which in range(min(options.top, len(ranked.slices)))
    ]
    estimates = {
        name: getattr(ranked, name)[: len(told)] for name in ("deficit", "score", "p", "q")
    }
    table = pl.DataFrame(told, schema={name: RESULT[name] for name in TOLD}).with_columns(
        rank=pl.int_range(1, len(told) + 1, dtype=pl.Int64),
        n_groups=pl.Series(ranked.slices.own[: len(told), 1]).cast(pl.Int64),
        **{name: pl.Series(values) for name, values in estimates.items()},
    )
    return table.select(*RESULT)


def _tell(block: Block, conditions: list[tuple[Attribute, int]]) -> dict[str, Any]:
    """Describe a subgroup, and its margins."""
    inside = np.ones(len(block.row), bool)
    undefined = np.ones(len(block.undefined), bool)
    for attribute, code in conditions:
        inside &= attribute.code[block.row] == code
        undefined &= attribute.code[block.undefined] == code
    margin = block.margin[inside]
    return {
        "subgroup": " AND ".join(attribute.conditions[code] for attribute, code in conditions),
        "attributes": [attribute.name for attribute, _ in conditions],
        "values": [attribute.values[code] for attribute, code in conditions],
        "n": len(margin),
        "n_undefined": int(undefined.sum()),
        "croma": float(np.median(margin)),
        "f0": float((margin <= 0).mean()),
        "mean": float(margin.mean()),
    }
