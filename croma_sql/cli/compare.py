"""croma-sql compare."""

from typing import Annotated

import polars as pl
import typer

from croma_sql import reports
from croma_sql.cli.options import (
    Benchmark,
    Draws,
    Form,
    IncludeHarmonised,
    M,
    Output,
    Seed,
    Strict,
    Warehouse,
    check_output,
)
from croma_sql.cli.output import Format, intervals_beside, say_unranked, write


def compare(
    context: typer.Context,
    warehouse: Warehouse,
    benchmark: Benchmark = None,
    m: M = reports.PUBLISHED_M,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="Every two encoders: difference, adjusted over all pairs."),
    ] = False,
    overall: Annotated[
        bool, typer.Option("--overall", help="Mean ranks over all benchmarks.")
    ] = False,
    include_harmonised: IncludeHarmonised = False,
    draws: Draws = 2000,
    seed: Seed = 0,
    strict: Strict = False,
    form: Form = Format.table,
    output: Output = None,
) -> None:
    """Rank encoders, and say how far the ranks hold.

    A range of ranks is what no difference between two encoders speaks against, all pairs at once.
    best_probability and win_probability are shares of draws of groups: too sure where groups are
    few or unequal. The Pareto frontier of croma and ltm10 is marked.

    Controls (croma-sql import encoders) are shown, never ranked; so are harmonised encoders, unless
    they are included. Of pairs these are left out.
    """
    form = check_output(form, output)
    if pairs and overall:
        raise typer.BadParameter("--pairs and --overall are two tables; ask for one")
    for name in ("draws", "seed"):
        source = context.get_parameter_source(name)
        if (pairs or overall) and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"--{name} is of the table of ranks; leave it out")
    if overall and benchmark is not None:
        raise typer.BadParameter("--overall is over all benchmarks; leave --benchmark out")
    if overall:
        found = reports.compare_overall(
            warehouse, m=m, include_harmonised=include_harmonised, strict=strict
        )
    elif pairs:
        found = reports.compare_pairs(
            warehouse,
            benchmark=benchmark,
            m=m,
            include_harmonised=include_harmonised,
            strict=strict,
        )
    else:
        found = reports.compare(
            warehouse,
            benchmark=benchmark,
            m=m,
            include_harmonised=include_harmonised,
            draws=draws,
            seed=seed,
            strict=strict,
        )
    if pairs and form is Format.table:
        _say_adjusted(found)
        found = found.drop("n_pairs", "statistic")
    write(_told(found) if form is Format.table else found, form, output)
    if not include_harmonised and not pairs:
        say_unranked(found, "are not ranked")


def _say_adjusted(found: pl.DataFrame) -> None:
    """Say over how many pairs, and of how many groups, intervals and p are."""
    of_each = found.group_by("benchmark", maintain_order=True).agg(
        pl.col("n_pairs").first(), pl.col("n_groups").max()
    )
    for name, n_pairs, n_groups in of_each.rows():
        what = "the only pair" if n_pairs == 1 else f"all {n_pairs} pairs at once"
        typer.echo(
            f"{name}: 95 % intervals and p hold for {what}, over {n_groups} groups", err=True
        )


def _told(found: pl.DataFrame) -> pl.DataFrame:
    """Leave out of a table what says nothing."""
    silent = [column.name for column in found if column.null_count() == len(found)]
    silent += [
        name
        for name in ("n_left_out", "is_harmonised")
        if name in found.columns and not found[name].sum()
    ]
    return intervals_beside(found.drop(silent))
