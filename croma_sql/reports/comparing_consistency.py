"""Which encoder is more consistent, on the same units and under the same draws of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from croma_sql.errors import StatisticsError, listed
from croma_sql.reports.each import each_benchmark
from croma_sql.reports.reading import query
from croma_sql.reports.units import METRICS, UNIT, groups, read_units
from croma_sql.statistics import differences, rank_stability

LOWER_IS_BETTER = ("d_cos",)


def compare_consistency(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    group: str = UNIT,
    draws: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Rank encoders by consistency, and say how far the ranks hold when units are drawn again.

    Encoders are compared on the same units, under the same draws: what is hard about a unit is hard
    for all of them. Mantel's r is a correlation of pairs of units and no mean over units, so that
    drawing units twice would put distances of 0 into it; ``profile_r``, the mean over units of the
    correlation of their own distances to all others, takes its place.

    Parameters
    ----------
    warehouse, benchmark : as in `consistency_summary`
    group : column name, default 'unit'
        What is drawn, with all its units: an attribute of units, where several of them are not
        independent, as tiles of one slide.
    draws, seed : int
        Of the bootstrap.

    Returns
    -------
    polars.DataFrame
        One row per benchmark, ``metric`` and encoder, best first: ``n``, units compared, those that
        have a value under every encoder, and ``n_left_out``, the others; ``value``, mean over units
        of ``d_cos`` (lower is better), ``mr_1nn``, ``iok_10`` or ``profile_r``; ``value_lo``,
        ``value_hi``; ``rank``, ``rank_lo``, ``rank_hi``, ``best_probability`` and
        ``win_probability``, as `croma_sql.rank_stability` has them. Controls are shown, never
        ranked, and so is ``d_cos`` of an encoder with a ``collapse_reason`` (the view
        ``collapse_check``), whose distances are small for nothing. A metric that an encoder has of
        no unit has no row, as ``iok_10`` of fewer than eleven units.

    Raises
    ------
    StatisticsError
        As `consistency_summary`; a column that is not there; a unit without group; encoders with
        different numbers of units, since how often a unit is found again depends on how many there
        are to choose from.
    """
    found = _compared(
        warehouse, benchmark, group, rank_stability, controls="is_unranked", draws=draws, seed=seed
    )
    on = ["benchmark", "encoder"]
    return found.join(_flags(warehouse), on=on, maintain_order="left").select(
        "benchmark",
        "metric",
        "encoder",
        "is_control",
        "collapse_reason",
        (pl.col("n_units") - pl.col("n_left_out")).alias("n"),
        "n_left_out",
        *_as_measured("estimate", "value", "value_lo", "value_hi"),
        "rank",
        "rank_lo",
        "rank_hi",
        "best_probability",
        "win_probability",
    )


def compare_consistency_pairs(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    group: str = UNIT,
    draws: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Differences in consistency between every two encoders (`croma_sql.differences`).

    Parameters, units and errors as in `compare_consistency`. Controls are among the encoders, and
    so are those that have collapsed, with a mark.

    Returns
    -------
    polars.DataFrame
        One row per benchmark, ``metric`` and two encoders, ``first`` the better one:
        ``difference``, first minus second, which is negative for ``d_cos``; ``lo``, ``hi``;
        ``win_probability``, the share of draws in which ``first`` is strictly better; ``draws``;
        ``n_left_out``; ``first_collapse_reason`` and ``second_collapse_reason``, of the view
        ``collapse_check``: a lower ``d_cos`` of such an encoder is no merit.
    """
    found = _compared(warehouse, benchmark, group, differences, draws=draws, seed=seed)
    reasons = _flags(warehouse).drop("is_control")
    for side in ("first", "second"):
        of_side = reasons.rename({"encoder": side, "collapse_reason": f"{side}_collapse_reason"})
        found = found.join(of_side, on=["benchmark", side], maintain_order="left")
    return found.select(
        "benchmark",
        "metric",
        "first",
        "second",
        *_as_measured("difference", "difference", "lo", "hi"),
        "win_probability",
        "draws",
        "n_left_out",
        "first_collapse_reason",
        "second_collapse_reason",
    )


def _compared(
    warehouse: str | Path,
    benchmark: str | None,
    group: str,
    compare: Callable[..., pl.DataFrame],
    **options: Any,
) -> pl.DataFrame:
    """Compare encoders by each metric, turned so that higher is better."""
    rows = _by_metric(warehouse, benchmark, group)
    n_units = rows.group_by("benchmark", "metric").agg(pl.col("unit").n_unique().alias("n_units"))
    found = each_benchmark(
        rows,
        lambda one: compare(
            one,
            by=["benchmark", "metric"],
            value="value",
            group="group",
            paired_by="unit",
            statistics="mean",
            **options,
        ),
    )
    order = {name: place for place, name in enumerate(METRICS)}
    return found.join(n_units, on=["benchmark", "metric"], maintain_order="left").sort(
        "benchmark", pl.col("metric").replace_strict(order), maintain_order=True
    )


def _by_metric(warehouse: str | Path, benchmark: str | None, group: str) -> pl.DataFrame:
    """One row per unit, encoder and metric, of metrics that the encoder has of any unit."""
    units = read_units(warehouse, benchmark, None)
    _check_as_many(units)
    rows = units.select("benchmark", "encoder", "unit", groups(units, group), *METRICS)
    long = rows.join(_flags(warehouse), on=["benchmark", "encoder"]).unpivot(
        METRICS,
        index=["benchmark", "encoder", "is_control", "collapse_reason", "unit", "group"],
        variable_name="metric",
        value_name="value",
    )
    known = pl.col("value").is_not_null().any().over("benchmark", "encoder", "metric")
    is_small_for_nothing = (pl.col("metric") == "d_cos") & pl.col("collapse_reason").is_not_null()
    return long.filter(known).with_columns(
        _turned("value"), (pl.col("is_control") | is_small_for_nothing).alias("is_unranked")
    )


def _check_as_many(units: pl.DataFrame) -> None:
    """Refuse encoders of one benchmark with different numbers of units."""
    counts = units.group_by("benchmark", "encoder").agg(pl.len().alias("n"))
    uneven = counts.filter(pl.col("n").n_unique().over("benchmark") > 1).sort("benchmark")
    if not len(uneven):
        return
    name = uneven["benchmark"][0]
    by_number = uneven.filter(benchmark=name).group_by("n").agg(pl.col("encoder").sort())
    told = "; ".join(
        f"{n} under {listed(encoders)}"
        for n, encoders in by_number.sort("n", descending=True).iter_rows()
    )
    raise StatisticsError(
        f"encoders of benchmark {name!r} have different numbers of units: {told}. How often a unit "
        "is found again, and keeps its neighbours, depends on how many there are to choose from: "
        "leave the units that one of them lacks out in the benchmark's WHERE"
    )


def _flags(warehouse: str | Path) -> pl.DataFrame:
    """Tell who is a control, and who has collapsed, by benchmark and encoder."""
    return query(
        warehouse,
        "SELECT benchmark, encoder, is_control, collapse_reason "
        "FROM collapse_check JOIN encoders USING (encoder)",
        {},
    )


def _turned(name: str) -> pl.Expr:
    """Turn what is better where it is lower, and back."""
    is_lower = pl.col("metric").is_in(LOWER_IS_BETTER)
    return pl.when(is_lower).then(0 - pl.col(name)).otherwise(pl.col(name)).alias(name)


def _as_measured(name: str, *called: str) -> list[pl.Expr]:
    """Turn a value with its interval back."""
    value, lo, hi = called
    is_lower = pl.col("metric").is_in(LOWER_IS_BETTER)
    return [
        _turned(name).alias(value),
        pl.when(is_lower).then(0 - pl.col("hi")).otherwise("lo").alias(lo),
        pl.when(is_lower).then(0 - pl.col("lo")).otherwise("hi").alias(hi),
    ]
