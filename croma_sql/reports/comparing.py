"""Encoders against each other, on the same samples."""

from pathlib import Path
from typing import Any

import polars as pl

from croma_sql.cohort import checked_m
from croma_sql.connection import open_duckdb
from croma_sql.errors import StatisticsError
from croma_sql.reports.each import each_benchmark, subset_column
from croma_sql.reports.reading import MARGINS, PUBLISHED_M, nothing, query, read_margins
from croma_sql.statistics import differences, rank_stability
from croma_sql.udfs.doors.duckdb_functions import register

OF_MARGINS = ("benchmark", "encoder", "subset", "sample_id", "group_id", "margin")


def compare(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    m: int = PUBLISHED_M,
    include_harmonised: bool = False,
    draws: int = 2000,
    seed: int = 0,
    strict: bool = False,
) -> pl.DataFrame:
    """Rank encoders, say how far the ranks hold, and who is on the Pareto frontier.

    Parameters
    ----------
    warehouse, benchmark, m, strict : as in `read_margins`
    include_harmonised : bool
        Rank harmonised encoders too, beside those that they were made from.
    draws, seed : int
        Of the draws of groups, each of which ranks all encoders.

    Returns
    -------
    polars.DataFrame
        One row per benchmark and encoder, best first: ``n``, samples compared, those that have a
        margin under every encoder, and ``n_left_out``, the others; ``croma``,
        ``croma_lo``, ``croma_hi``, ``croma_interval_reason``; ``rank``, ``rank_lo``, ``rank_hi``;
        ``best_probability`` and ``win_probability``, shares of draws, too sure where groups are few
        or unequal (`croma_sql.rank_stability`); ``ltm10`` and ``on_frontier``, whether
        nobody is at least as good on croma and ltm10 and better on one. Controls are shown, never
        ranked, and so are harmonised encoders unless they are included.

    Raises
    ------
    StatisticsError
        As `read_margins`.
    """
    frame = read_margins(warehouse, benchmark=benchmark, m=m, strict=strict).select(*OF_MARGINS)
    marks = _marks(warehouse, include_harmonised)
    stable = each_benchmark(
        frame.join(marks, on="encoder"),
        lambda one: rank_stability(
            one,
            by="benchmark",
            controls="is_unranked",
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
        marks, on="encoder", maintain_order="left"
    )
    return (
        ranked.join(_frontier(ranked), on=on, maintain_order="left")
        .join(_n_samples(frame), on="benchmark", maintain_order="left")
        .select(
            "benchmark",
            "encoder",
            "is_control",
            "is_harmonised",
            (pl.col("n_samples") - pl.col("n_left_out")).alias("n"),
            "n_left_out",
            "croma",
            pl.col("lo").alias("croma_lo"),
            pl.col("hi").alias("croma_hi"),
            pl.col("interval_reason").alias("croma_interval_reason"),
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
    include_harmonised: bool = False,
    strict: bool = False,
) -> pl.DataFrame:
    """Differences in median margin between every two encoders (`croma_sql.differences`).

    Intervals and p are adjusted over all pairs of a benchmark. Parameters and samples as in
    `compare`. Controls are among the encoders; harmonised ones are
    where they are included.
    """
    frame = read_margins(warehouse, benchmark=benchmark, m=m, strict=strict).select(*OF_MARGINS)
    if not include_harmonised:
        marks = _marks(warehouse, include_harmonised)
        frame = frame.join(marks.filter("is_harmonised"), on="encoder", how="anti")
    return each_benchmark(
        frame,
        lambda one: differences(one, by="benchmark", **_samples(one)),
    )


def compare_overall(
    warehouse: str | Path,
    *,
    m: int = PUBLISHED_M,
    include_harmonised: bool = False,
    strict: bool = False,
) -> pl.DataFrame:
    """Mean ranks over all benchmarks, and the frontier among them: encoder_mean_ranks_at.

    Parameters, controls and errors as in `compare`.
    """
    found = query(
        warehouse,
        "SELECT encoder, is_control, is_harmonised, n_benchmarks, croma_rank, ltm10_rank, "
        "mean_rank, on_frontier "
        "FROM encoder_mean_ranks_at($m, include_harmonised := $include_harmonised) "
        "ORDER BY mean_rank NULLS LAST, encoder",
        {"m": checked_m(m), "include_harmonised": include_harmonised},
        of=MARGINS,
        strict=strict,
    )
    if found.is_empty():
        raise StatisticsError(nothing(warehouse, None, None))
    return found


def _marks(warehouse: str | Path, include_harmonised: bool) -> pl.DataFrame:
    """Tell which encoders are controls, which are harmonised, and which are not to be ranked."""
    return query(
        warehouse,
        "SELECT encoder, is_control, is_harmonised, "
        "is_control OR (is_harmonised AND NOT $include_harmonised) AS is_unranked FROM encoders",
        {"include_harmonised": include_harmonised},
    )


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
    rows = ranked.select("benchmark", "encoder", "croma", "ltm10", "is_unranked")
    with register(open_duckdb()) as con:
        con.register("ranked", rows)
        found = con.sql(
            "SELECT benchmark, encoder, on_frontier "
            "FROM croma_frontier('ranked', is_control := 'is_unranked')"
        )
        return pl.DataFrame(found.pl())
