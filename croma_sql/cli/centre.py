"""croma-sql centre."""

from typing import Annotated

import polars as pl
import typer

from croma_sql.cli.options import Benchmark, Encoder, Form, Output, Warehouse, check_output
from croma_sql.cli.output import Format, write
from croma_sql.progress import progress_bars
from croma_sql.reports.reading import query
from croma_sql.warehouse.scoring.centre import ScoredCentre, score_centre

IN_ORDER = "ORDER BY benchmark, fm_si NULLS LAST, encoder"
SHOWN = 3
LEAST_K = 2


def centre(
    warehouse: Warehouse,
    benchmark: Benchmark = None,
    encoder: Encoder = None,
    trials: Annotated[int, typer.Option(help="Runs of k-means per quartet.", min=1)] = 50,
    max_k: Annotated[int, typer.Option(help="Largest number of clusters to try.", min=2)] = 30,
    folds: Annotated[int, typer.Option(help="Parts in which probes predict.", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Of k-means and of the folds.", min=0)] = 0,
    threads: Annotated[int | None, typer.Option(help="Default: all cores.", min=1)] = None,
    form: Form = Format.table,
    output: Output = None,
) -> None:
    """Show how strongly each encoder encodes the confounder: FM-SI, clustering score, probes.

    What is up to date is not measured again. Lower fm_si and confounder_bacc: less of it is
    encoded.
    """
    check_output(form, output)
    with progress_bars() as report:
        done = score_centre(
            warehouse,
            benchmark=benchmark,
            encoder=encoder,
            trials=trials,
            k_range=(LEAST_K, max_k),
            folds=folds,
            seed=seed,
            threads=threads,
            on_progress=lambda name, one, share: report(f"measuring {name} / {one}", share),
        )
    if all(one.outcome == "no vectors" for one in done):
        typer.echo("no encoder has vectors of these benchmarks' samples; import embeddings first")
        return
    asked = {"benchmark": benchmark, "encoder": encoder}
    found = query(warehouse, "FROM centre_encoding", asked, IN_ORDER)
    write(_told(found) if form is Format.table else found, form, output)
    for scored in done:
        for line in _notes(scored):
            typer.echo(f"{scored.benchmark} / {scored.encoder}: {line}", err=True)


def _notes(scored: ScoredCentre) -> list[str]:
    """Say what could not be measured."""
    notes = [f"not probed: {why}" for why in scored.not_probed[:SHOWN]]
    if len(scored.not_probed) > SHOWN:
        notes.append(f"and {len(scored.not_probed) - SHOWN} more not probed")
    if scored.outcome != "no vectors" and not scored.n_quartets:
        notes.append("no clustering score: no two labels under two confounders fill all four cells")
    return notes


def _told(found: pl.DataFrame) -> pl.DataFrame:
    """Leave out of a table what says nothing."""
    return found.drop([column.name for column in found if column.null_count() == len(found)])
