"""croma-sql import samples, import encoders, import embeddings."""

from enum import StrEnum
from typing import Annotated

import typer

from croma_sql.cli.options import Place
from croma_sql.errors import counted
from croma_sql.importers.recognise import FORMATS
from croma_sql.importers.tables import read_table
from croma_sql.importers.vectors import check_column
from croma_sql.progress import progress_bars
from croma_sql.warehouse.data.attributes import join_attributes
from croma_sql.warehouse.data.embeddings import import_embeddings
from croma_sql.warehouse.data.encoders import import_encoders
from croma_sql.warehouse.data.imported import Done, Slides
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


class SlideIds(StrEnum):
    """What a slide is called."""

    stem = "stem"
    path = "path"


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
        typer.echo(f"attributes of {counted(joined.n, 'sample')} in dataset {dataset!r} of {to}")
        typer.echo(joined.report)
        return
    n = import_samples(to, source, dataset=dataset, sample_id=sample_id)
    typer.echo(f"{counted(n, 'sample')} in dataset {dataset!r} of {to}")


@app.command("encoders")
def encoders(
    source: Source,
    to: Warehouse,
    encoder: Annotated[str, typer.Option(help="Name of the column of encoder names.")] = "encoder",
) -> None:
    """Import attributes of encoders; is_control marks those shown but never ranked."""
    n = import_encoders(to, source, encoder=encoder)
    typer.echo(f"attributes of {counted(n, 'encoder')} in {to}")


@app.command("embeddings")
def embeddings(
    source: Annotated[
        Place, typer.Argument(help="A file, a folder, a glob, or a URL.", show_default=False)
    ],
    to: Warehouse,
    encoder: Annotated[str, typer.Option(help="Name of the encoder.")],
    dataset: Dataset,
    as_format: Annotated[
        str | None,
        typer.Option("--as", metavar="FORMAT", help=f"By slide: one of {', '.join(FORMATS)}."),
    ] = None,
    samples: Annotated[
        list[Place] | None,
        typer.Option(
            help="Of a .npy or a table: ids and attributes, imported too, in its row order. By "
            "slide: attributes of samples, slides or patients; may be repeated."
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="By slide: the column of --samples that says what its rows are of."),
    ] = None,
    ids: Annotated[
        Place | None,
        typer.Option(help="For a .npy: a file with the id column in its row order."),
    ] = None,
    coordinates: Annotated[
        Place | None,
        typer.Option(help="By slide: files of coordinates, for vectors that come without."),
    ] = None,
    slide_id: Annotated[
        SlideIds,
        typer.Option(help="By slide: what a slide is called, its file or its path below SOURCE."),
    ] = SlideIds.stem,
    prefix: Annotated[str, typer.Option(help="By slide: what every sample_id begins with.")] = "",
    sample_id: SampleId = "sample_id",
    embedding: Annotated[
        str | None,
        typer.Option(
            help="Name of the vector column, or by slide of the dataset, column or obsm key."
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="By slide: parts written at once; default every core, at most 8.", min=1),
    ] = None,
    on_bad_vectors: Annotated[
        OnBadVectors,
        typer.Option(
            help="Vectors with NaN or inf, or all zero: refuse, leave out, or keep as NULL."
        ),
    ] = OnBadVectors.error,
) -> None:
    """Import vectors in the precision they have: of slides, as labs keep them, or one table.

    A .npy, Parquet, Arrow, CSV or TSV file replaces what the encoder has of the dataset. Of
    anything else, what is new or has changed is read.
    """
    with progress_bars() as report:
        imported = import_embeddings(
            to,
            source,
            encoder=encoder,
            dataset=dataset,
            samples=samples,
            on=on,
            ids=None if ids is None else _ids(ids, sample_id),
            sample_id=sample_id,
            embedding=embedding,
            on_bad_vectors=on_bad_vectors.value,
            as_format=as_format,
            coordinates=coordinates,
            slide_id=slide_id.value,
            prefix=prefix,
            threads=threads,
            on_progress=lambda share: report(f"{_stage(share)} {encoder}", share),
        )
    bad = f", {counted(imported.bad, 'bad one')} {_BAD[on_bad_vectors]}" if imported.bad else ""
    vectors = counted(imported.n, "vector")
    values = counted(imported.d, f"{imported.dtype} value")
    typer.echo(f"{vectors} of {values} as encoder {encoder!r}, dataset {dataset!r} of {to}{bad}")
    if imported.slides is not None:
        typer.echo(_counts(imported.slides))
    for note in imported.notes:
        typer.echo(note)


def _stage(share: float) -> str:
    return share.stage if isinstance(share, Done) else "importing"


def _counts(slides: Slides) -> str:
    counts = {
        "new": slides.new,
        "changed": slides.changed,
        "unchanged": slides.unchanged,
        "not in this source, kept": slides.gone,
    }
    told = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    return f"{counted(slides.total, 'source')}: {told}"


def _ids(path: Place, sample_id: str) -> object:
    table = read_table(path, text=(sample_id,))
    check_column(table.column_names, sample_id, path, "--sample-id")
    return table.column(sample_id)
