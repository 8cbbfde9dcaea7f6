"""Encoders, and strata of samples, with intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from croma_sql.cohort import checked_m
from croma_sql.errors import StatisticsError
from croma_sql.reports.each import each_benchmark, subset_column
from croma_sql.reports.reading import PUBLISHED_M, nothing, query, read_margins
from croma_sql.statistics import bootstrap
from croma_sql.statistics.frames import read_columns

STATISTICS = ("croma", "f0", "ltm10")
COUNTS = ("n", "n_undefined", "n_groups")
BOUNDS = tuple(f"{name}{end}" for name in STATISTICS for end in ("", "_lo", "_hi"))
Protocol = Literal["median_k", "k_star"]


def summary(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    m: int = PUBLISHED_M,
    protocol: Protocol = "median_k",
    intervals: bool = False,
    draws: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Table of encoders: median margin, tail, and where scored with k, RI, MaRI and accuracies.

    Parameters
    ----------
    warehouse, benchmark, encoder, m : as in `read_margins`
    protocol : {'median_k', 'k_star'}
        At which k fixed-k metrics are read: the lower median over encoders (controls left out), or
        each encoder's own. An encoder that is left out here still counts in the median.
    intervals : bool
        Add cluster-bootstrap intervals of croma, f0 and ltm10 (`croma_sql.bootstrap`).
    draws, seed : int
        Of the bootstrap.

    Returns
    -------
    polars.DataFrame
        One row per benchmark and encoder, best ``croma`` first: the view
        ``encoder_panel_at(m, protocol)``, and ``croma_lo``, ``croma_hi``, ... where asked for.

    Raises
    ------
    StatisticsError
        As `read_margins`.
    """
    asked = {
        "m": checked_m(m), "protocol": protocol, "benchmark": benchmark, "encoder": encoder,
    }  # fmt: skip
    panel = query(
        warehouse,
        "FROM encoder_panel_at($m, protocol := $protocol)",
        asked,
        "ORDER BY benchmark, croma DESC NULLS LAST, encoder",
    )
    if panel.is_empty():
        raise StatisticsError(nothing(warehouse, benchmark, encoder))
    if not intervals:
        return panel
    frame = read_margins(warehouse, benchmark=benchmark, encoder=encoder, m=m)
    bounds = _bootstrap(frame, ["benchmark", "encoder"], draws, seed)
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
    draws: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Margins by attributes of the samples, with cluster-bootstrap intervals.

    Parameters
    ----------
    warehouse, benchmark, encoder, m : as in `read_margins`
    by : column name or names
        Of the view ``margins``: ``label``, ``confounder`` or any attribute. NULL is a value.
    draws, seed : int
        Of the bootstrap.

    Returns
    -------
    polars.DataFrame
        One row per benchmark, encoder and stratum, the worst ``croma`` first: ``n``,
        ``n_undefined``, ``n_groups``; ``croma``, ``croma_lo``, ``croma_hi``, and so on for ``f0``
        and ``ltm10``.

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
            "rename it in the frame that read_margins gives and ask bootstrap"
        )
    levels = list(dict.fromkeys(["benchmark", "encoder", *given]))
    frame = read_margins(warehouse, benchmark=benchmark, encoder=encoder, m=m)
    found = _bootstrap(frame, levels, draws, seed)
    return found.sort("benchmark", "encoder", "croma", *given, nulls_last=True)


def _bootstrap(frame: pl.DataFrame, by: list[str], draws: int, seed: int) -> pl.DataFrame:
    """Bootstrap the levels of ``by``, one row each.

    They are called by number meanwhile: an attribute may go by the name of a column of the result.
    """
    levels = [f"level {i}" for i in range(len(by))]
    numbered = read_columns(frame, by).rename(dict(zip(by, levels, strict=True)))
    rows = frame.select("benchmark", "subset", "group_id", "margin").hstack(numbered)
    found = each_benchmark(
        rows,
        lambda one: bootstrap(
            one, by=levels, subset=subset_column(one), statistics=STATISTICS, draws=draws, seed=seed
        ),
    )
    return _side_by_side(found, levels).rename(dict(zip(levels, by, strict=True)))


def _side_by_side(found: pl.DataFrame, levels: list[str]) -> pl.DataFrame:
    """One row per level, from one per level and statistic."""
    wide = found.select(*levels, *COUNTS).unique(maintain_order=True)
    for name in STATISTICS:
        ends = {"estimate": name, "lo": f"{name}_lo", "hi": f"{name}_hi"}
        of_one = found.filter(pl.col("statistic") == name).select(
            *levels, *(pl.col(end).alias(column) for end, column in ends.items())
        )
        wide = wide.join(of_one, on=levels, nulls_equal=True, maintain_order="left")
    return wide
