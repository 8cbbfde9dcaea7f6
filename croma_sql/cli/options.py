"""Options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

from croma_sql.cli.output import Format

Place = str  # a path, or a URL, which pathlib would spoil
Warehouse = Annotated[Place, typer.Argument(help="Its folder, or a URL such as s3://bucket/study.")]
Benchmark = Annotated[str | None, typer.Option(help="Only this one; default all.")]
Encoder = Annotated[str | None, typer.Option(help="Only this one; default all.")]
M = Annotated[int, typer.Option(help="Neighbours per type that a margin is a mean over.", min=1)]
Draws = Annotated[int, typer.Option(help="Resamples of the groups.", min=1)]
Seed = Annotated[int, typer.Option(help="Of the resampling.", min=0)]
Form = Annotated[Format, typer.Option("--format")]
Output = Annotated[Path | None, typer.Option(help="A file instead of stdout.")]


def check_output(form: Format, output: Path | None) -> None:
    """Refuse what cannot go where it is sent."""
    if form is Format.table and output is not None:
        raise typer.BadParameter(
            "a table cannot go to a file; add --format csv, json, parquet or arrow"
        )
    if form in (Format.parquet, Format.arrow) and output is None:
        raise typer.BadParameter(
            f"{form.capitalize()} cannot go to the terminal; name a file with --output"
        )
