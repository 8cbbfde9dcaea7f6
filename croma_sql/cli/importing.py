"""croma-sql import samples, import encoders, import embeddings."""

from enum import StrEnum
from typing import Annotated

import typer

from croma_sql.cli.options import Place
from croma_sql.importers.tables import read_table
from croma_sql.importers.vectors import check_column
from croma_sql.progress import progress_bars
from croma_sql.warehouse.data.attributes import join_attributes
from croma_sql.warehouse.data.embeddings import import_embeddings
from croma_sql.warehouse.data.encoders import import_encoders
from croma_sql.warehouse.data.samples import import_samples

app = typer.Typer(
    help="Bring samples, embeddings and encoder attributes into a warehouse.", no_args_is_help=True
)

Source = Annotated[Place, typer.Argument(show_default=False)]
Warehouse = Annotated[Place, typer.Option("--to", help="The warehouse; made if new.")]
Dataset = Annotated[str, typer.Option(help="Name of the set of samples.")]
SampleId = Annotated[str, typer.Option(help="Name of the id column.")]


class OnBadVectors(StrEnum):
    """What to do with vectors that have no direction."""

    error = "error"
    drop = "drop"
    null = "null"


_BAD = {OnBadVectors.drop: "left out", OnBadVectors.null: "kept as NULL"}


@app.command("samples")
def samples(
    source: Source,
    to: Warehouse,
    dataset: Dataset,
    sample_id: SampleId = "sample_id",
    on: Annotated[
        str | None,
        typer.Option(
            help="Column that names samples, slides or patients: join the others to the samples "
            "that are there, instead of importing samples."
        ),
    ] = None,
) -> None:
    """Import ids and attributes from CSV, TSV, Excel, Parquet or Arrow."""
    if on is not None:
        joined = join_attributes(to, source, dataset=dataset, on=on)
        typer.echo(f"attributes of {joined.n} samples in dataset {dataset!r} of {to}")
        typer.echo(joined.report)
        return
    n = import_samples(to, source, dataset=dataset, sample_id=sample_id)
    typer.echo(f"{n} samples in dataset {dataset!r} of {to}")


@app.command("encoders")
def encoders(
    source: Source,
    to: Warehouse,
    encoder: Annotated[str, typer.Option(help="Name of the column of encoder names.")] = "encoder",
) -> None:
    """Import attributes of encoders; is_control marks those shown but never ranked."""
    n = import_encoders(to, source, encoder=encoder)
    typer.echo(f"attributes of {n} encoders in {to}")


@app.command("embeddings")
def embeddings(
    source: Source,
    to: Warehouse,
    encoder: Annotated[str, typer.Option(help="Name of the encoder.")],
    dataset: Dataset,
    samples: Annotated[
        Place | None,
        typer.Option(
            help="Ids and attributes, imported too. For a .npy, the manifest in its row order."
        ),
    ] = None,
    ids: Annotated[
        Place | None,
        typer.Option(help="For a .npy: a file with the id column in its row order."),
    ] = None,
    sample_id: SampleId = "sample_id",
    embedding: Annotated[str, typer.Option(help="Name of the vector column.")] = "embedding",
    on_bad_vectors: Annotated[
        OnBadVectors,
        typer.Option(
            help="Vectors with NaN or inf, or all zero: refuse, leave out, or keep as NULL."
        ),
    ] = OnBadVectors.error,
) -> None:
    """Import vectors from .npy, Parquet or Arrow, in the precision they have."""
    with progress_bars() as report:
        imported = import_embeddings(
            to,
            source,
            encoder=encoder,
            dataset=dataset,
            samples=samples,
            ids=None if ids is None else _ids(ids, sample_id),
            sample_id=sample_id,
            embedding=embedding,
            on_bad_vectors=on_bad_vectors.value,
            on_progress=lambda share: report(f"importing {encoder}", share),
        )
    bad = f", {imported.bad} bad ones {_BAD[on_bad_vectors]}" if imported.bad else ""
    typer.echo(
        f"{imported.n} vectors of {imported.d} {imported.dtype} values as encoder {encoder!r}, "
        f"dataset {dataset!r} of {to}{bad}"
    )


def _ids(path: Place, sample_id: str) -> object:
    table = read_table(path, text=(sample_id,))
    check_column(table.column_names, sample_id, path, "--sample-id")
    return table.column(sample_id)
