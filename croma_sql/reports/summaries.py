"""Encoders, and strata of samples, with intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from croma_sql.cohort import checked_m
from croma_sql.errors import StatisticsError
from croma_sql.reports.attributes import check_attributes
from croma_sql.reports.each import each_benchmark, subset_column
from croma_sql.reports.reading import PUBLISHED_M, nothing, query, read_margins
from croma_sql.statistics import intervals as intervals_of
from croma_sql.statistics.frames import read_columns
from croma_sql.warehouse.scoring.schemas import EDGES

STATISTICS = ("croma", "f0", "ltm10")
COUNTS = ("n", "n_undefined", "n_groups")
ENDS = {"estimate": "", "lo": "_lo", "hi": "_hi", "interval_reason": "_interval_reason"}
BOUNDS = tuple(f"{name}{end}" for name in STATISTICS for end in ENDS.values())
Protocol = Literal["median_k", "k_star"]


def summary(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    m: int = PUBLISHED_M,
    protocol: Protocol = "median_k",
    include_harmonised: bool = False,
    intervals: bool = False,
    strict: bool = False,
) -> pl.DataFrame:
    """Table of encoders: median margin, tail, and where scored with k, RI, MaRI and accuracies.

    Parameters
    ----------
    warehouse, benchmark, encoder, m, strict : as in `read_margins`
    protocol : {'median_k', 'k_star'}
        At which k fixed-k metrics are read: the lower median over encoders (controls and harmonised
        encoders left out), or each encoder's own. An encoder that is not asked for counts in the
        median all the same.
    include_harmonised : bool
        Let harmonised encoders count in that median, beside those that they were made from.
    intervals : bool
        Add intervals of croma, f0 and ltm10 that allow for groups (`croma_sql.intervals`).

    Returns
    -------
    polars.DataFrame
        One row per benchmark and encoder, best ``croma`` first: the view
        ``encoder_panel_at(m, protocol)``, in which ``is_harmonised`` marks encoders that
        `croma_sql.harmonise` made, and with intervals ``croma_lo``, ``croma_hi``,
        ``croma_interval_reason``, ...

    Raises
    ------
    StatisticsError
        As `read_margins`.
    """
    asked = {
        "m": checked_m(m),
        "protocol": protocol,
        "include_harmonised": include_harmonised,
        "benchmark": benchmark,
        "encoder": encoder,
    }
    panel = query(
        warehouse,
        "FROM encoder_panel_at("
        "$m, protocol := $protocol, include_harmonised := $include_harmonised)",
        asked,
        "ORDER BY benchmark, croma DESC NULLS LAST, encoder",
        of=EDGES,
        strict=strict,
    )
    if panel.is_empty():
        raise StatisticsError(nothing(warehouse, benchmark, encoder))
    if not intervals:
        return panel
    of_margins = {name: asked[name] for name in ("m", "benchmark", "encoder")}
    frame = query(warehouse, "FROM margins_at($m)", of_margins)
    bounds = _intervals(frame, ["benchmark", "encoder"])
    return panel.join(
        bounds.drop(*COUNTS, *STATISTICS),
        on=["benchmark", "encoder"],
        maintain_order="left",
    )


def strata(
    warehouse: str | Path,
    by: str | Sequence[str],
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    m: int = PUBLISHED_M,
    strict: bool = False,
) -> pl.DataFrame:
    """Margins by attributes of the samples, with intervals (`croma_sql.intervals`).

    Parameters
    ----------
    warehouse, benchmark, encoder, m, strict : as in `read_margins`
    by : column name or names
        Of the view ``margins``: ``label``, ``confounder`` or any attribute. NULL is a value.

    Returns
    -------
    polars.DataFrame
        One row per benchmark, encoder and stratum, the worst ``croma`` first: ``n``,
        ``n_undefined``, ``n_groups``; ``croma``, ``croma_lo``, ``croma_hi``,
        ``croma_interval_reason``, and so on for ``f0`` and ``ltm10``.

    Raises
    ------
    StatisticsError
        As `read_margins`; a column that is not there.
    """
    given = [by] if isinstance(by, str) else list(by)
    both = [name for name in given if name in (*COUNTS, *BOUNDS)]
    if both:
        raise StatisticsError(
            f"the table of strata has a column {both[0]!r} of its own; stratify by it in SQL, or "
            "rename it in the frame that read_margins gives and call intervals"
        )
    levels = list(dict.fromkeys(["benchmark", "encoder", *given]))
    frame = read_margins(warehouse, benchmark=benchmark, encoder=encoder, m=m, strict=strict)
    check_attributes(given, frame.columns, "--by")
    found = _intervals(frame, levels)
    return found.sort("benchmark", "encoder", "croma", *given, nulls_last=True)


def _intervals(frame: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Statistics of the levels of ``by``, one row each.

    They are called by number meanwhile: an attribute may go by the name of a column of the result.
    """
    levels = [f"level {i}" for i in range(len(by))]
    numbered = read_columns(frame, by).rename(dict(zip(by, levels, strict=True)))
    rows = frame.select("benchmark", "subset", "group_id", "margin").hstack(numbered)
    found = each_benchmark(
        rows,
        lambda one: intervals_of(one, by=levels, subset=subset_column(one), statistics=STATISTICS),
    )
    return _side_by_side(found, levels).rename(dict(zip(levels, by, strict=True)))


def _side_by_side(found: pl.DataFrame, levels: list[str]) -> pl.DataFrame:
    """One row per level, from one per level and statistic."""
    wide = found.select(*levels, *COUNTS).unique(maintain_order=True)
    for name in STATISTICS:
        of_one = found.filter(pl.col("statistic") == name).select(
            *levels, *(pl.col(column).alias(f"{name}{end}") for column, end in ENDS.items())
        )
        wide = wide.join(of_one, on=levels, nulls_equal=True, maintain_order="left")
    return wide
