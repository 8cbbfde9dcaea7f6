"""Options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

from croma_sql.cli.output import Format
from croma_sql.exports.tables import SUFFIXES

Place = str  # a path, or a URL, which pathlib would spoil
Warehouse = Annotated[Place, typer.Argument(help="Its folder, or a URL such as s3://bucket/study.")]
Benchmark = Annotated[str | None, typer.Option(help="Only this one; default all.")]
Encoder = Annotated[str | None, typer.Option(help="Only this one; default all.")]
M = Annotated[int, typer.Option(help="Neighbours per type that a margin is a mean over.", min=1)]
Draws = Annotated[int, typer.Option(help="Resamples of the groups.", min=1)]
Seed = Annotated[int, typer.Option(help="Of the resampling.", min=0)]
IncludeHarmonised = Annotated[
    bool,
    typer.Option(
        "--include-harmonised",
        help="Rank harmonised encoders too, and count them in the shared k; else only shown.",
    ),
]
Form = Annotated[Format, typer.Option("--format")]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse numbers that are out of date.")]
Output = Annotated[
    Path | None,
    typer.Option(help="A .csv, .json, .parquet or .arrow file instead of stdout."),
]


def check_output(form: Format, output: Path | None) -> Format:
    """Refuse what cannot go where it is sent; a file's name says what it holds.

    Returns
    -------
    Format
        That of the file, unless ``--format`` gives another.
    """
    if form is Format.table and output is not None:
        suffix = output.suffix.lower()
        if suffix != ".json" and suffix not in SUFFIXES:
            raise typer.BadParameter(
                f"{output} is not named .csv, .json, .parquet or .arrow, which says what to write; "
                "rename it, or add --format"
            )
        return Format.json if suffix == ".json" else Format(SUFFIXES[suffix])
    if form in (Format.parquet, Format.arrow) and output is None:
        raise typer.BadParameter(
            f"{form.capitalize()} cannot go to the terminal; name a file with --output"
        )
    return form
