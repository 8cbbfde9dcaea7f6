"""Consistency over acquisitions: encoders, strata of units, and how far the metrics agree."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from croma_sql.errors import StatisticsError
from croma_sql.reports.each import each_benchmark
from croma_sql.reports.reading import query
from croma_sql.reports.units import METRICS, UNIT, groups, nothing_compared, read_units
from croma_sql.statistics import bootstrap, spearman
from croma_sql.statistics.frames import as_names, read_columns

RANKED = ("d_cos", "mr_1nn", "mantel_r", "intra_distance", "iok_10")
BOUNDS = tuple(f"{name}{end}" for name in METRICS for end in ("", "_lo", "_hi"))


def consistency_summary(
    warehouse: str | Path, *, benchmark: str | None = None, encoder: str | None = None
) -> pl.DataFrame:
    """Table of encoders: metrics of consistency, and whether they are due to collapse.

    Parameters
    ----------
    warehouse : path
    benchmark, encoder : str, optional
        Only this one; default all that have been compared. An encoder is checked for collapse
        against all others, whether they are asked for or not.

    Returns
    -------
    polars.DataFrame
        One row per benchmark and encoder: the view ``consistency_summary``, and ``relative_d_cos``,
        ``mean_distance``, ``effective_rank`` and ``collapse_reason`` of ``collapse_check``. Highest
        ``mr_1nn`` first, then highest ``mantel_r``; encoders with a ``collapse_reason`` last.

    Raises
    ------
    StatisticsError
        Nothing compared, or not under these names.
    """
    found = query(
        warehouse,
        "SELECT summary.*, relative_d_cos, mean_distance, effective_rank, collapse_reason "
        "FROM consistency_summary AS summary "
        "JOIN (SELECT benchmark, encoder, relative_d_cos, mean_distance, effective_rank, "
        "collapse_reason FROM collapse_check) USING (benchmark, encoder)",
        {"benchmark": benchmark, "encoder": encoder},
        "ORDER BY benchmark, collapse_reason IS NOT NULL, mr_1nn DESC, "
        "mantel_r DESC NULLS LAST, encoder",
    )
    if found.is_empty():
        raise StatisticsError(nothing_compared(warehouse, benchmark, encoder))
    return found


def consistency_strata(
    warehouse: str | Path,
    by: str | Sequence[str],
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    group: str = UNIT,
    draws: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Metrics of consistency by attributes of the units, with bootstrap intervals.

    Parameters
    ----------
    warehouse, benchmark, encoder : as in `consistency_summary`
    by : column name or names
        Of the view ``unit_consistency``: any attribute that has one value within a unit. NULL is a
        value.
    group, draws, seed : as in `compare_consistency`

    Returns
    -------
    polars.DataFrame
        One row per benchmark, encoder and stratum, the lowest ``mr_1nn`` first: ``n`` units;
        ``d_cos``, ``d_cos_lo``, ``d_cos_hi``, and so on for ``mr_1nn``, ``iok_10`` and
        ``profile_r``, which are means over units. The interval is NULL for a stratum of fewer than
        five groups.

    Raises
    ------
    StatisticsError
        As `consistency_summary`; a column that is not there, or that the result has as well.
    """
    given = as_names(by)
    both = [name for name in given if name in ("n", *BOUNDS)]
    if both:
        raise StatisticsError(
            f"the table of strata has a column {both[0]!r} of its own; group the view "
            "unit_consistency in SQL"
        )
    names = list(dict.fromkeys(["benchmark", "encoder", *given]))
    levels = [f"level {i}" for i in range(len(names))]  # an attribute may be called as a result is
    units = read_units(warehouse, benchmark, encoder)
    numbered = read_columns(units, names).rename(dict(zip(names, levels, strict=True)))
    rows = units.select("benchmark", *METRICS).hstack([groups(units, group), *numbered])
    sides = [
        each_benchmark(
            rows,
            lambda one, name=name: bootstrap(  # type: ignore[misc]
                one, by=levels, value=name, group="group", statistics="mean", draws=draws, seed=seed
            ),
        ).select(
            *(levels if name == METRICS[0] else []),
            *(["n"] if name == METRICS[0] else []),
            pl.col("estimate").alias(name),
            pl.col("lo").alias(f"{name}_lo"),
            pl.col("hi").alias(f"{name}_hi"),
        )
        for name in METRICS
    ]
    found = pl.concat(sides, how="horizontal").rename(dict(zip(levels, names, strict=True)))
    return found.sort("benchmark", "encoder", "mr_1nn", *given, nulls_last=True)


def consistency_agreement(
    warehouse: str | Path, *, benchmark: str | None = None, draws: int = 2000, seed: int = 0
) -> pl.DataFrame:
    """Spearman correlations of the five metrics of consistency over encoders, with intervals.

    Parameters
    ----------
    warehouse, benchmark : as in `consistency_summary`
    draws, seed : int
        Of the bootstrap, which draws encoders.

    Returns
    -------
    polars.DataFrame
        One row per benchmark and two metrics, as `croma_sql.spearman` gives it: ``x``, ``y``,
        ``rho``, ``lo``, ``hi``, ``p``, ``n``, ``draws``. Controls are left out. ``d_cos`` is taken
        with its sign turned, so that a positive ``rho`` means that two metrics prefer the same
        encoders, and left out of an encoder with a ``collapse_reason``, of which it says nothing;
        ``intra_distance`` as it is: where its ``rho`` with ``d_cos`` is low, those that move least
        are those that are most compact.

    Raises
    ------
    StatisticsError
        As `consistency_summary`.
    """
    found = query(
        warehouse,
        "SELECT * REPLACE (CASE WHEN collapse_reason IS NULL THEN -d_cos END AS d_cos) "
        "FROM consistency_summary "
        "JOIN (SELECT benchmark, encoder, collapse_reason FROM collapse_check) "
        "USING (benchmark, encoder) "
        "JOIN (SELECT encoder, is_control FROM encoders) USING (encoder)",
        {"benchmark": benchmark},
    )
    if found.is_empty():
        raise StatisticsError(nothing_compared(warehouse, benchmark, None))
    ranked = found.filter(~pl.col("is_control"))
    if ranked.is_empty():
        raise StatisticsError("every encoder is a control, and those are not ranked")
    return spearman(ranked, RANKED, by="benchmark", draws=draws, seed=seed)
