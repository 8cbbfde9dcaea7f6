"""croma-sql benchmark."""

from pathlib import Path
from typing import Annotated

import typer

from croma_sql.cli.options import Warehouse
from croma_sql.errors import BenchmarkError
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import add_benchmark


def benchmark(
    warehouse: Warehouse,
    name: str,
    select: Annotated[
        str | None, typer.Argument(help="The SELECT; or give --file.", show_default=False)
    ] = None,
    file: Annotated[Path | None, typer.Option(help="A file with the SELECT.")] = None,
) -> None:
    """Add a benchmark, which is one SELECT over samples.

    For margins it gives sample_id, label, confounder and group_id; where scopes overlap or differ,
    subset; and match_... columns, in which neighbours must agree. Designs, as
    croma_quartets('samples', ...) or croma_isolated('samples', 'centre', ...), make one of the
    samples. For paired acquisitions it gives sample_id, unit (what was acquired several times, as
    a slide) and acquisition (as a scanner).
    """
    if (select is None) == (file is None):
        raise typer.BadParameter("give the SELECT either as an argument or with --file")
    added = add_benchmark(warehouse, name, _read(file) if file else select or "")
    rows = "samples" if isinstance(added, PairedBenchmark) else "rows"
    counts = ", ".join(f"{n} {what}" for what, n in added.counts().items() if n)
    typer.echo(f"benchmark {name!r}: {len(added.rows)} {rows}, {counts}")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{file} cannot be read: {error}") from error
