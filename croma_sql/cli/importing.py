"""croma-sql import samples, import encoders, import embeddings."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from croma_sql.cli.options import Place
from croma_sql.errors import counted
from croma_sql.importers.leading import NONE
from croma_sql.importers.recognise import FORMATS
from croma_sql.importers.tables import read_table
from croma_sql.importers.vectors import check_column
from croma_sql.progress import progress_bars
from croma_sql.warehouse.data.embeddings import import_embeddings
from croma_sql.warehouse.data.encoders import import_encoders
from croma_sql.warehouse.data.imported import Done, Imported, Slides
from croma_sql.warehouse.data.samples import import_samples

app = typer.Typer(help="Bring samples, embeddings and encoder attributes in.", no_args_is_help=True)

Source = Annotated[Place, typer.Argument(show_default=False)]
Warehouse = Annotated[Place, typer.Option("--to", help="The warehouse; made if new.")]
Dataset = Annotated[str, typer.Option(help="Name of the set of samples.")]
SampleId = Annotated[str, typer.Option(help="Name of the id column.")]
MissingCells = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="CELL",
        help="A cell that is a missing value, beside NA, N/A, NaN, NULL, None and the like; may be "
        "repeated.",
    ),
]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="COLUMN",
        help="Keep a column as it is written: text, in which only an empty cell is missing; may be "
        "repeated.",
    ),
]


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
    missing: MissingCells = None,
    text: TextColumns = None,
) -> None:
    """Import ids and attributes from CSV, TSV, Excel, Parquet or Arrow."""
    imported = import_samples(
        to,
        source,
        dataset=dataset,
        sample_id=sample_id,
        on=on,
        missing=missing or (),
        text=text or (),
    )
    what = "" if on is None else "attributes of "
    typer.echo(f"{what}{counted(imported.n, 'sample')} in dataset {dataset!r} of {to}")
    _tell(imported.notes)


@app.command("encoders")
def encoders(
    source: Source,
    to: Warehouse,
    encoder: Annotated[str, typer.Option(help="Name of the column of encoder names.")] = "encoder",
    missing: MissingCells = None,
    text: TextColumns = None,
) -> None:
    """Import attributes of encoders; is_control marks those shown but never ranked."""
    imported = import_encoders(to, source, encoder=encoder, missing=missing or (), text=text or ())
    typer.echo(f"attributes of {counted(imported.n, 'encoder')} in {to}")
    _tell(imported.notes)


@app.command("embeddings")
def embeddings(
    source: Annotated[
        Place, typer.Argument(help="A file, a folder, a glob, or a URL.", show_default=False)
    ],
    to: Warehouse,
    dataset: Dataset,
    encoder: Annotated[str | None, typer.Option(help="Name of the encoder.")] = None,
    encoder_from: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="By slide, of several encoders: where the name of each is. path:NAME (folders "
            "NAME=...), path:features_{encoder}, attribute, array:{encoder}/features.",
        ),
    ] = None,
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
    leading_columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="By slide: columns before the features in arrays, as in level,x,y; none: all are "
            "features.",
        ),
    ] = None,
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
    missing: MissingCells = None,
    text: TextColumns = None,
) -> None:
    """Import vectors in the precision they have: of slides, as labs keep them, or one table.

    A .npy, Parquet, Arrow, CSV or TSV file replaces what the encoder has of the dataset. Of
    anything else, what is new or has changed is read.
    """

    def tell(name: str, imported: Imported) -> None:
        _tell_imported(name, imported, f"dataset {dataset!r} of {to}", on_bad_vectors)

    with progress_bars() as report:
        imported = import_embeddings(
            to,
            source,
            encoder=encoder,
            encoder_from=encoder_from,
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
            leading_columns=_names(leading_columns),
            prefix=prefix,
            threads=threads,
            missing=missing or (),
            text=text or (),
            on_progress=lambda share: report(f"{_stage(share)} {encoder or ''}".rstrip(), share),
            on_encoder=tell,
        )
    if encoder is not None:
        tell(encoder, imported)


def _tell_imported(encoder: str, imported: Imported, where: str, on_bad: OnBadVectors) -> None:
    bad = f", {counted(imported.bad, 'bad one')} {_BAD[on_bad]}" if imported.bad else ""
    vectors = counted(imported.n, "vector")
    values = counted(imported.d, f"{imported.dtype} value")
    typer.echo(f"{vectors} of {values} as encoder {encoder!r}, {where}{bad}")
    if imported.slides is not None:
        typer.echo(_counts(imported.slides))
    _tell(imported.notes)


def _tell(notes: Sequence[str]) -> None:
    for note in notes:
        typer.echo(note)


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return () if text == NONE else tuple(text.split(","))


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
