"""croma-sql summary."""

from enum import StrEnum
from typing import Annotated

import polars as pl
import typer

from croma_sql import reports
from croma_sql.cli.options import (
    Benchmark,
    Draws,
    Encoder,
    Form,
    M,
    Output,
    Seed,
    Warehouse,
    check_output,
)
from croma_sql.cli.output import Format, intervals_beside, write


class Protocol(StrEnum):
    """At which k fixed-k metrics are read."""

    median_k = "median_k"
    k_star = "k_star"


def summary(
    warehouse: Warehouse,
    benchmark: Benchmark = None,
    encoder: Encoder = None,
    m: M = reports.PUBLISHED_M,
    protocol: Annotated[
        Protocol,
        typer.Option(help="k of RI and its like: the encoders' lower median, or each its own."),
    ] = Protocol.median_k,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Add 95 % intervals, resampling groups.")
    ] = False,
    draws: Draws = 2000,
    seed: Seed = 0,
    form: Form = Format.table,
    output: Output = None,
) -> None:
    """Show every encoder: median margin and tail, and if scored with --k, RI, MaRI, accuracies."""
    check_output(form, output)
    found = reports.summary(
        warehouse,
        benchmark=benchmark,
        encoder=encoder,
        m=m,
        protocol=protocol.value,
        intervals=intervals,
        draws=draws,
        seed=seed,
    )
    write(intervals_beside(_told(found)) if form is Format.table else found, form, output)
    for name, one, warning in _warnings(found).rows():
        typer.echo(f"MaRI of {name} / {one}: {warning}", err=True)


def _told(found: pl.DataFrame) -> pl.DataFrame:
    """Leave out of a table what says nothing, or what others say better."""
    always = ("croma", "f0", "ltm10")
    silent = [
        column.name
        for column in found
        if column.null_count() == len(found) and column.name not in always
    ]
    if found["n_undefined"].sum() == 0:
        silent.append("n_undefined")
    if found["croma"].equals(found["pooled_median"]):
        silent.append("pooled_median")
    if not found["is_control"].any():
        silent.append("is_control")
    order = [column for name in ("croma", "f0", "ltm10") for column in _with_interval(found, name)]
    rest = [name for name in found.columns if name not in order]
    at = rest.index("ltm05")
    told = [*rest[:at], *order, *rest[at:]]
    return found.select(told).drop(*silent, "ltm05", "ltm20", "tau", "tau_warning", strict=False)


def _with_interval(found: pl.DataFrame, name: str) -> list[str]:
    return [column for column in (name, f"{name}_lo", f"{name}_hi") if column in found.columns]


def _warnings(found: pl.DataFrame) -> pl.DataFrame:
    return found.filter(pl.col("tau_warning").is_not_null()).select(
        "benchmark", "encoder", "tau_warning"
    )
