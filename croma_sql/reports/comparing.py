"""Encoders against each other, on the same samples."""

from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from croma_sql.cohort import checked_m
from croma_sql.errors import StatisticsError
from croma_sql.reports.each import each_benchmark, subset_column
from croma_sql.reports.reading import PUBLISHED_M, nothing, query, read_margins
from croma_sql.statistics import differences, rank_stability
from croma_sql.udfs.doors.duckdb_functions import register

OF_MARGINS = ("benchmark", "encoder", "subset", "sample_id", "group_id", "margin")


def compare(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    m: int = PUBLISHED_M,
    draws: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Rank encoders, say how far the ranks hold, and who is on the Pareto frontier.

    Parameters
    ----------
    warehouse, benchmark, m : as in `read_margins`
    draws, seed : int
        Of the paired bootstrap: every draw of groups ranks all encoders.

    Returns
    -------
    polars.DataFrame
        One row per benchmark and encoder, best first: ``n``, samples compared, those that have a
        margin under every encoder, and ``n_left_out``, the others; ``croma``, ``croma_lo``,
        ``croma_hi``; ``rank``, ``rank_lo``, ``rank_hi``; ``best_probability`` and
        ``win_probability`` (`croma_sql.rank_stability`); ``ltm10`` and ``on_frontier``, whether
        nobody is at least as good on croma and ltm10 and better on one. Controls are shown, never
        ranked.

    Raises
    ------
    StatisticsError
        As `read_margins`.
    """
    frame = read_margins(warehouse, benchmark=benchmark, m=m).select(*OF_MARGINS)
    controls = query(warehouse, "SELECT encoder, is_control FROM encoders", {})
    stable = each_benchmark(
        frame.join(controls, on="encoder"),
        lambda one: rank_stability(
            one,
            by="benchmark",
            controls="is_control",
            statistics=("croma", "ltm10"),
            draws=draws,
            seed=seed,
            **_samples(one),
        ),
    )
    of_croma, of_tail = (
        stable.filter(pl.col("statistic") == name).with_columns(pl.col("estimate").alias(name))
        for name in ("croma", "ltm10")
    )
    on = ["benchmark", "encoder"]
    ranked = of_croma.join(of_tail.select(*on, "ltm10"), on=on, maintain_order="left").join(
        controls, on="encoder", maintain_order="left"
    )
    return (
        ranked.join(_frontier(ranked), on=on, maintain_order="left")
        .join(_n_samples(frame), on="benchmark", maintain_order="left")
        .select(
            "benchmark",
            "encoder",
            "is_control",
            (pl.col("n_samples") - pl.col("n_left_out")).alias("n"),
            "n_left_out",
            "croma",
            pl.col("lo").alias("croma_lo"),
            pl.col("hi").alias("croma_hi"),
            "rank",
            "rank_lo",
            "rank_hi",
            "best_probability",
            "win_probability",
            "ltm10",
            "on_frontier",
        )
    )


def compare_pairs(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    m: int = PUBLISHED_M,
    draws: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Differences in median margin between every two encoders (`croma_sql.differences`).

    Parameters and samples as in `compare`. Controls are among the encoders.
    """
    frame = read_margins(warehouse, benchmark=benchmark, m=m).select(*OF_MARGINS)
    return each_benchmark(
        frame,
        lambda one: differences(one, by="benchmark", draws=draws, seed=seed, **_samples(one)),
    )


def compare_overall(warehouse: str | Path, *, m: int = PUBLISHED_M) -> pl.DataFrame:
    """Mean ranks over all benchmarks, and the frontier among them: the macro croma_mean_ranks.

    Parameters, controls and errors as in `compare`.
    """
    found = query(
        warehouse,
        "WITH results AS (SELECT summary.*, is_control FROM encoder_summary_at($m) AS summary "
        "JOIN encoders USING (encoder)) FROM croma_mean_ranks('results') "
        "ORDER BY mean_rank NULLS LAST, encoder",
        {"m": checked_m(m)},
    )
    if found.is_empty():
        raise StatisticsError(nothing(warehouse, None, None))
    return found


def _samples(frame: pl.DataFrame) -> dict[str, Any]:
    """Compare encoders on the same samples; one may lack vectors, or be scored on older rows."""
    subset = subset_column(frame)
    paired_by = ["sample_id"] if subset is None else ["sample_id", subset]
    return {"subset": subset, "paired_by": paired_by}


def _n_samples(frame: pl.DataFrame) -> pl.DataFrame:
    n = pl.struct("sample_id", "subset").n_unique().alias("n_samples")
    return frame.group_by("benchmark").agg(n)


def _frontier(ranked: pl.DataFrame) -> pl.DataFrame:
    """Tell who is on the frontier, among rows as the macro croma_frontier takes them."""
    rows = ranked.select("benchmark", "encoder", "croma", "ltm10", "is_control")
    with register(duckdb.connect()) as con:
        con.register("ranked", rows)
        found = con.sql("SELECT benchmark, encoder, on_frontier FROM croma_frontier('ranked')")
        return pl.DataFrame(found.pl())
