"""The tables that the command line prints: margins of a warehouse, with intervals and ranks.

Each is a view of ``sql/`` or a function of `croma_sql.statistics` over the margins, or both side by
side; whoever wants something else asks these directly.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import duckdb
import polars as pl

from croma_sql.cohort import checked_m
from croma_sql.errors import StatisticsError, listed
from croma_sql.interrupt import interruptibly
from croma_sql.session import connect
from croma_sql.statistics import bootstrap, differences, rank_stability
from croma_sql.statistics.frames import read_columns

PUBLISHED_M = 5
STATISTICS = ("croma", "f0", "ltm10")
COUNTS = ("n", "n_undefined", "n_groups")
BOUNDS = tuple(f"{name}{end}" for name in STATISTICS for end in ("", "_lo", "_hi"))
Protocol = Literal["median_k", "k_star"]


def read_margins(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    m: int = PUBLISHED_M,
) -> pl.DataFrame:
    """Margins of a warehouse, one row per benchmark, encoder, subset and sample.

    Parameters
    ----------
    warehouse : path
    benchmark, encoder : str, optional
        Only this one; default all that are scored.
    m : int, default 5
        Neighbours per type, at most as many as were scored.

    Returns
    -------
    polars.DataFrame
        The view ``margins_at(m)``: margins with every attribute of their samples beside them.

    Raises
    ------
    StatisticsError
        Nothing scored, or not under these names; an m that was not scored.
    """
    asked = {"m": checked_m(m), "benchmark": benchmark, "encoder": encoder}
    frame = _query(
        warehouse,
        "FROM margins_at($m) WHERE benchmark = coalesce($benchmark, benchmark) "
        "AND encoder = coalesce($encoder, encoder)",
        asked,
    )
    if frame.is_empty():
        raise StatisticsError(_nothing(warehouse, benchmark, encoder))
    return frame


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
    panel = _query(
        warehouse,
        "FROM encoder_panel_at($m, protocol := $protocol) "
        "WHERE benchmark = coalesce($benchmark, benchmark) "
        "AND encoder = coalesce($encoder, encoder) "
        "ORDER BY benchmark, croma DESC NULLS LAST, encoder",
        asked,
    )
    if panel.is_empty():
        raise StatisticsError(_nothing(warehouse, benchmark, encoder))
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
        One row per benchmark and encoder, best first: ``croma``, ``croma_lo``, ``croma_hi``;
        ``rank``, ``rank_lo``, ``rank_hi``; ``best_probability`` and ``win_probability``
        (`croma_sql.rank_stability`); ``ltm10`` and ``on_frontier``, whether nobody is at least as
        good on croma and ltm10 and better on one. Controls are shown, never ranked.

    Raises
    ------
    StatisticsError
        As `read_margins`.
    """
    frame = read_margins(warehouse, benchmark=benchmark, m=m).select(
        "benchmark", "encoder", "subset", "group_id", "margin"
    )
    about = _query(
        warehouse,
        "WITH results AS (SELECT summary.*, is_control FROM encoder_summary_at($m) AS summary "
        "JOIN encoders USING (encoder)) FROM croma_frontier('results')",
        {"m": checked_m(m)},
    ).select("benchmark", "encoder", "is_control", "ltm10", "on_frontier")
    controls = about.select("benchmark", "encoder", "is_control")
    stable = _each_benchmark(
        frame.join(controls, on=["benchmark", "encoder"]),
        lambda one: rank_stability(
            one,
            by="benchmark",
            controls="is_control",
            subset=_subset(one),
            draws=draws,
            seed=seed,
        ),
    )
    return stable.join(about, on=["benchmark", "encoder"], maintain_order="left").select(
        "benchmark",
        "encoder",
        "is_control",
        pl.col("estimate").alias("croma"),
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


def compare_pairs(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    m: int = PUBLISHED_M,
    draws: int = 2000,
    seed: int = 0,
) -> pl.DataFrame:
    """Differences in median margin between every two encoders (`croma_sql.differences`).

    Parameters as in `compare`. Controls are among them.
    """
    frame = read_margins(warehouse, benchmark=benchmark, m=m)
    return _each_benchmark(
        frame,
        lambda one: differences(one, by="benchmark", subset=_subset(one), draws=draws, seed=seed),
    )


def compare_overall(warehouse: str | Path, *, m: int = PUBLISHED_M) -> pl.DataFrame:
    """Mean ranks over all benchmarks, and the frontier among them: the macro croma_mean_ranks.

    Parameters, controls and errors as in `compare`.
    """
    found = _query(
        warehouse,
        "WITH results AS (SELECT summary.*, is_control FROM encoder_summary_at($m) AS summary "
        "JOIN encoders USING (encoder)) FROM croma_mean_ranks('results') "
        "ORDER BY mean_rank NULLS LAST, encoder",
        {"m": checked_m(m)},
    )
    if found.is_empty():
        raise StatisticsError(_nothing(warehouse, None, None))
    return found


def _bootstrap(frame: pl.DataFrame, by: list[str], draws: int, seed: int) -> pl.DataFrame:
    """Bootstrap the levels of ``by``, one row each.

    They are called by number meanwhile: an attribute may go by the name of a column of the result.
    """
    levels = [f"level {i}" for i in range(len(by))]
    numbered = read_columns(frame, by).rename(dict(zip(by, levels, strict=True)))
    rows = frame.select("benchmark", "subset", "group_id", "margin").hstack(numbered)
    found = _each_benchmark(
        rows,
        lambda one: bootstrap(
            one, by=levels, subset=_subset(one), statistics=STATISTICS, draws=draws, seed=seed
        ),
    )
    return _side_by_side(found, levels).rename(dict(zip(levels, by, strict=True)))


def _each_benchmark(
    frame: pl.DataFrame, statistic: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """Draw the groups of one benchmark at a time, so that no interval depends on the others."""
    parts = frame.sort("benchmark").partition_by("benchmark", maintain_order=True)
    return pl.concat([statistic(part) for part in parts], how="vertical_relaxed")


def _subset(frame: pl.DataFrame) -> str | None:
    """Benchmarks without subsets have NULL there, which is one subset."""
    return None if frame["subset"].null_count() == len(frame) else "subset"


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


def _query(warehouse: str | Path, query: str, asked: dict[str, Any]) -> pl.DataFrame:
    with connect(warehouse) as con:
        try:
            return interruptibly(con, lambda: pl.DataFrame(con.sql(query, params=asked).pl()))
        except duckdb.InvalidInputException as error:  # raised by error() in a macro
            raise StatisticsError(str(error).removeprefix("Invalid Input Error: ")) from error


def _nothing(warehouse: str | Path, benchmark: str | None, encoder: str | None) -> str:
    """Say why there is nothing."""
    with connect(warehouse) as con:
        scored = con.sql("SELECT DISTINCT benchmark, encoder FROM typed_neighbour_files").fetchall()
    if not scored:
        return f"nothing in {warehouse} is scored yet; run croma-sql score {warehouse}"
    for what, one, known in (
        ("benchmark", benchmark, sorted({name for name, _ in scored})),
        ("encoder", encoder, sorted({name for _, name in scored})),
    ):
        if one is not None and one not in known:
            return f"no {what} {one!r} is scored; there is {listed(known, show=10)}"
    return f"benchmark {benchmark!r} is not scored under encoder {encoder!r}; run croma-sql score"
