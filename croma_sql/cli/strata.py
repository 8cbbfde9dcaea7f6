"""croma-sql strata."""

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
from croma_sql.statistics.attributes import attribute_names
from croma_sql.statistics.enrichment import enrichment
from croma_sql.statistics.subgroups import subgroups

LEVELS = ("benchmark", "encoder")
TOLD_OF_SUBGROUPS = (*LEVELS, "rank", "subgroup", "n", "n_groups", "croma", "f0", "score", "q")


def strata(
    warehouse: Warehouse,
    by: Annotated[
        list[str] | None, typer.Option(help="An attribute to stratify by; may be repeated.")
    ] = None,
    attribute: Annotated[
        list[str] | None, typer.Option(help="Without --by: only these; default all.")
    ] = None,
    tail: Annotated[
        bool,
        typer.Option("--tail", help="How much each value is over-represented among the worst."),
    ] = False,
    top: Annotated[int, typer.Option(help="Subgroups per benchmark and encoder.", min=1)] = 5,
    benchmark: Benchmark = None,
    encoder: Encoder = None,
    m: M = reports.PUBLISHED_M,
    draws: Draws = 2000,
    seed: Seed = 0,
    form: Form = Format.table,
    output: Output = None,
) -> None:
    """Show where an encoder is fragile.

    With --by, margins of every stratum with 95 % intervals. Without it, the subgroups to look at
    first, among all combinations of up to three attributes; with --tail, each value by itself.
    """
    check_output(form, output)
    if by and (tail or attribute):
        raise typer.BadParameter("--by is a table of its own; leave --tail and --attribute out")
    if by:
        found = reports.strata(
            warehouse, by, benchmark=benchmark, encoder=encoder, m=m, draws=draws, seed=seed
        )
        write(intervals_beside(found) if form is Format.table else found, form, output)
        return
    margins = reports.read_margins(warehouse, benchmark=benchmark, encoder=encoder, m=m)
    if tail:
        names = attribute or attribute_names(margins, [*LEVELS, "margin", "group_id"])
        found = enrichment(margins, names, by=LEVELS)
    else:
        found = subgroups(margins, attribute, by=LEVELS, top=top)
        if form in (Format.table, Format.csv):  # which have no lists
            found = found.select(
                TOLD_OF_SUBGROUPS if form is Format.table else pl.exclude("attributes", "values")
            )
    write(found, form, output)
