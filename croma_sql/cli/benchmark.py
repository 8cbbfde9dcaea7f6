"""croma-sql benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from croma_sql.errors import BenchmarkError
from croma_sql.warehouse.benchmarks import add_benchmark


def benchmark(
    warehouse: Path,
    name: str,
    select: Annotated[
        str | None, typer.Argument(help="The SELECT; or give --file.", show_default=False)
    ] = None,
    file: Annotated[Path | None, typer.Option(help="A file with the SELECT.")] = None,
) -> None:
    """Add a benchmark, which is one SELECT over samples.

    It gives sample_id, label, confounder and group_id, and where scopes overlap or differ, subset.
    """
    if (select is None) == (file is None):
        raise typer.BadParameter("give the SELECT either as an argument or with --file")
    added = add_benchmark(warehouse, name, _read(file) if file else select or "")
    rows = added.rows
    counts = ", ".join(
        f"{len(rows.column(column).unique())} {what}"
        for column, what in (
            ("label", "labels"),
            ("confounder", "confounders"),
            ("group_id", "groups"),
        )
    )
    typer.echo(f"benchmark {name!r}: {len(rows)} rows, {counts}")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{file} cannot be read: {error}") from error
