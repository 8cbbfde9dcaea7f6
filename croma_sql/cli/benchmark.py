"""croma-sql benchmark."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from croma_sql.cli.options import Warehouse
from croma_sql.errors import BenchmarkError, listed
from croma_sql.warehouse.benchmarks.binding import Bound
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import add_benchmark


def benchmark(
    warehouse: Warehouse,
    name: str,
    select: Annotated[
        str | None, typer.Argument(help="The SELECT; or give --file.", show_default=False)
    ] = None,
    file: Annotated[Path | None, typer.Option(help="A file with the SELECT.")] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="One it sees; may be repeated. Default: those its rows come from now."),
    ] = None,
    all_datasets: Annotated[
        bool, typer.Option("--all-datasets", help="See every dataset, also later and pooled ones.")
    ] = False,
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
    if dataset and all_datasets:
        raise typer.BadParameter("give --dataset or --all-datasets, not both")
    datasets: list[str] | Literal["all"] | None = "all" if all_datasets else dataset
    added = add_benchmark(warehouse, name, _read(file) if file else select or "", datasets=datasets)
    rows = "samples" if isinstance(added, PairedBenchmark) else "rows"
    counts = ", ".join(f"{n} {what}" for what, n in added.counts().items() if n)
    typer.echo(f"benchmark {name!r}: {len(added.rows)} {rows}, {counts}; {_bound(added.bound)}")


def _bound(bound: Bound) -> str:
    if bound.sees_later:
        return "all datasets"
    noun = "dataset" if len(bound.datasets) == 1 else "datasets"
    return f"{noun} {listed(bound.datasets, show=10)}"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{file} cannot be read: {error}") from error
