"""croma-sql score."""

from enum import StrEnum
from typing import Annotated

import polars as pl
import typer

from croma_sql.cli.options import Warehouse
from croma_sql.cli.output import print_table
from croma_sql.progress import progress_bars
from croma_sql.session import connect
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
        OnUndefined, typer.Option(help="Samples without a margin: refuse, or keep as NULL.")
    ] = OnUndefined.error,
) -> None:
    """Score benchmarks under encoders; what is up to date is skipped."""
    with progress_bars() as report:
        outcomes = scores.score(
            warehouse,
            benchmark=benchmark,
            encoder=encoder,
            m=m,
            k=k,
            first_ranks=first_ranks,
            threads=threads,
            memory=memory,
            on_undefined=on_undefined.value,
            on_progress=lambda name, one, done: report(f"scoring {name} / {one}", done),
        )
    with_vectors = pl.DataFrame([done for done in outcomes if done.outcome != "no vectors"])
    if with_vectors.is_empty():
        typer.echo("no encoder has vectors of these benchmarks' samples; import embeddings first")
        return
    with connect(warehouse) as con:
        summary = con.sql("FROM encoder_summary").pl()
    counts = [
        name for name in ("n_undefined", "left_out", "searched_again") if with_vectors[name].sum()
    ]
    columns = ["benchmark", "encoder", "n", *counts, "outcome"]
    table = with_vectors.select(columns).join(
        summary.select("benchmark", "encoder", "croma", "f0", "ltm10"), on=["benchmark", "encoder"]
    )
    print_table(table.sort("benchmark", "croma", descending=[False, True]))
