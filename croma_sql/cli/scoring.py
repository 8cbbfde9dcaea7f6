"""croma-sql score."""

from enum import StrEnum
from typing import Annotated

import polars as pl
import typer

from croma_sql.cli.options import Warehouse
from croma_sql.cli.output import print_table
from croma_sql.errors import ScoringError
from croma_sql.progress import progress_bars
from croma_sql.session import opened
from croma_sql.warehouse.scoring import scores


class OnUndefined(StrEnum):
    """What to do with samples that have no margin."""

    error = "error"
    null = "null"


def score(
    warehouse: Warehouse,
    benchmark: Annotated[str | None, typer.Option(help="Only this one; default all.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Only this one; default all.")] = None,
    m: Annotated[int, typer.Option(help="Neighbours kept per type.")] = 20,
    k: Annotated[
        int | None, typer.Option(help="Also keep the k nearest of any type; about twice the work.")
    ] = None,
    first_ranks: Annotated[
        bool, typer.Option("--first-ranks", help="Also rank the first SO and OS among all.")
    ] = False,
    threads: Annotated[int | None, typer.Option(help="Default: all cores.", min=1)] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Most to take beside the 400 MB of the program itself, such as 4GB."),
    ] = None,
    on_undefined: Annotated[
        OnUndefined | None,
        typer.Option(
            help="Samples without a margin: refuse, or keep as NULL. Default: as the benchmark "
            "remembers, or refuse.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Score benchmarks under encoders; skip what is up to date.

    Prints what became of every benchmark under every encoder.
    """
    with progress_bars() as report:
        try:
            outcomes, failure = (
                scores.score(
                    warehouse,
                    benchmark=benchmark,
                    encoder=encoder,
                    m=m,
                    k=k,
                    first_ranks=first_ranks,
                    threads=threads,
                    memory=memory,
                    on_undefined=on_undefined.value if on_undefined else None,
                    on_progress=lambda name, one, done: report(f"scoring {name} / {one}", done),
                ),
                None,
            )
        except ScoringError as error:
            outcomes, failure = list(error.done), error
    if outcomes:
        _print_outcomes(warehouse, outcomes)
    if failure is not None:
        raise failure


def _print_outcomes(warehouse: str, outcomes: list[scores.Scored]) -> None:
    if all(done.outcome == "no vectors" for done in outcomes):
        typer.echo("no encoder has vectors of these benchmarks' samples; import embeddings first")
        return
    table = pl.DataFrame(outcomes)
    is_known = pl.col("outcome").is_in(["scored", "up to date"])
    counts = [name for name in ("n_undefined", "left_out", "searched_again") if table[name].sum()]
    numbers = [pl.when(is_known).then(pl.col(name)).alias(name) for name in ["n", *counts]]
    with opened(warehouse)[0] as con:
        summary = con.sql("SELECT benchmark, encoder, croma, f0, ltm10 FROM encoder_summary").pl()
    on = ["benchmark", "encoder"]
    known = table.filter(is_known).select(on).join(summary, on=on)
    told = table.select(*on, *numbers, "outcome").join(known, on=on, how="left")
    print_table(
        told.sort("benchmark", "croma", "encoder", descending=[False, True, False], nulls_last=True)
    )
    for name in table.filter("remembered")["benchmark"].unique(maintain_order=True):
        typer.echo(
            f"benchmark {name!r}: samples without a margin are NULL, as it remembers; "
            f"--on-undefined error refuses them again",
            err=True,
        )
