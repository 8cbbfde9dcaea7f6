"""croma-sql strata."""

from typing import Annotated

import polars as pl
import typer

from croma_sql import reports
from croma_sql.cli.options import (
    Benchmark,
    Encoder,
    Form,
    M,
    Output,
    Strict,
    Warehouse,
    check_output,
)
from croma_sql.cli.output import SHOWN_ROWS, Format, intervals_beside, write
from croma_sql.reports.attributes import check_attributes
from croma_sql.statistics.attributes import ROLES, attribute_names
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
    strict: Strict = False,
    form: Form = Format.table,
    output: Output = None,
) -> None:
    """Show where an encoder is fragile.

    With --by, margins of every stratum with 95 % intervals. Without it, the subgroups to look at
    first, among all combinations of up to three attributes; with --tail, each value by itself.
    """
    form = check_output(form, output)
    if by and (tail or attribute):
        raise typer.BadParameter("--by is a table of its own; leave --tail and --attribute out")
    if by:
        found = reports.strata(
            warehouse,
            by,
            benchmark=benchmark,
            encoder=encoder,
            m=m,
            strict=strict,
        )
        write(intervals_beside(found) if form is Format.table else found, form, output)
        return
    margins = reports.read_margins(
        warehouse, benchmark=benchmark, encoder=encoder, m=m, strict=strict
    )
    check_attributes(attribute or (), margins.columns, "--attribute")
    if tail:
        known = attribute_names(margins, [*LEVELS, "margin", "group_id"])
        found = enrichment(margins, attribute or _once(margins, known), by=LEVELS)
        if form is Format.table:
            found = _first_of_each_tail(found)
    else:
        found = subgroups(margins, attribute, by=LEVELS, top=top)
        if form in (Format.table, Format.csv):  # which have no lists
            found = found.select(
                TOLD_OF_SUBGROUPS if form is Format.table else pl.exclude("attributes", "values")
            )
    write(found, form, output)


def _once(margins: pl.DataFrame, names: list[str]) -> list[str]:
    """Leave a role out where an attribute has the same values in all rows."""
    others = [name for name in names if name not in ROLES]
    return others + [
        role
        for role in ROLES
        if role in names
        and not any(
            margins[role].dtype == margins[name].dtype
            and margins[role].equals(margins[name].alias(role), null_equal=True)
            for name in others
        )
    ]


def _first_of_each_tail(found: pl.DataFrame) -> pl.DataFrame:
    """Keep the worst rows of every tail where a table cannot show all; say an open end."""
    of = [*LEVELS, "tail"]
    n_tails = max(found.select(of).n_unique(), 1)
    shown = found.group_by(of, maintain_order=True).head(max(SHOWN_ROWS // n_tails, 1))
    if len(shown) < len(found):
        typer.echo(
            f"{len(shown)} of {len(found)} rows, the worst of each tail; --format csv gives all",
            err=True,
        )
    ends = shown.select("odds_ratio", "lo", "hi").rows()
    is_open = [ratio is not None and hi is None for ratio, _, hi in ends]
    return shown.with_columns(
        lo=pl.Series([lo or None for _, lo, _ in ends], dtype=pl.Float64),
        hi=pl.Series(
            [
                "no limit" if none else None if hi is None else f"{hi:.4f}"
                for none, (_, _, hi) in zip(is_open, ends, strict=True)
            ],
            dtype=pl.String,
        ),
    )
