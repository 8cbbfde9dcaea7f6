"""croma-sql benchmark."""

from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import typer

from croma_sql.cells import benchmark_design, words_of_problems
from croma_sql.cli.options import M, Warehouse
from croma_sql.cli.output import Format, print_table, write
from croma_sql.cli.scoring import OnUndefined
from croma_sql.errors import BenchmarkError, listed
from croma_sql.warehouse.benchmarks.binding import Bound
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import AnyBenchmark, add_benchmark, read_benchmark
from croma_sql.warehouse.layout import open_warehouse

FEW_CELLS = 12  # that are printed when a benchmark is made


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
    on_undefined: Annotated[
        OnUndefined | None,
        typer.Option(help="Samples without a margin: refuse, or keep as NULL; remembered."),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Show the design of a benchmark that exists.")
    ] = False,
    m: M = 5,
    form: Annotated[
        Format, typer.Option("--format", help="Of the table of --show.")
    ] = Format.table,
) -> None:
    """Add a benchmark, which is one SELECT over samples.

    For margins it gives sample_id, label, confounder and group_id; where scopes overlap or differ,
    subset; and match_... columns, in which neighbours must agree. Designs, as
    croma_quartets('samples', ...) or croma_isolated('samples', 'centre', ...), make one of the
    samples. For paired acquisitions it gives sample_id, unit (what was acquired several times, as
    a slide) and acquisition (as a scanner).
    """
    if show:
        if select is not None or file is not None or dataset or all_datasets or on_undefined:
            raise typer.BadParameter("--show changes nothing; give only --m and --format with it")
        _show(read_benchmark(open_warehouse(warehouse), name), m, form)
        return
    if (select is None) == (file is None):
        raise typer.BadParameter("give the SELECT either as an argument or with --file")
    if dataset and all_datasets:
        raise typer.BadParameter("give --dataset or --all-datasets, not both")
    datasets: list[str] | Literal["all"] | None = "all" if all_datasets else dataset
    added = add_benchmark(
        warehouse,
        name,
        _read(file) if file else select or "",
        datasets=datasets,
        on_undefined=on_undefined.value if on_undefined else None,
    )
    typer.echo(_counts(added))
    if isinstance(added, PairedBenchmark):
        return
    cells = benchmark_design(added.rows, m)
    shown = cells if len(cells) <= FEW_CELLS else cells.filter(pl.col("n_undefined") > 0)
    if len(shown):
        print_table(_compact(shown.head(FEW_CELLS)))
    if len(shown) < len(cells) or len(shown) > FEW_CELLS:
        typer.echo(f"{len(cells)} cells of label and confounder; --show prints them all")
    _print_problems(added, m)


def _show(benchmark: AnyBenchmark, m: int, form: Format) -> None:
    if isinstance(benchmark, PairedBenchmark):
        raise BenchmarkError(
            f"benchmark {benchmark.name!r} is of paired acquisitions, which have no labels under "
            "confounders; --show is for benchmarks of margins"
        )
    cells = benchmark_design(benchmark.rows, m)
    if form is Format.table:
        typer.echo(_counts(benchmark))
        cells = _compact(cells)
    write(cells, form, None)
    _print_problems(benchmark, m)


def _print_problems(benchmark: AnyBenchmark, m: int) -> None:
    for words in words_of_problems(benchmark.rows, m):
        typer.echo(f"benchmark {benchmark.name!r}: {words}", err=True)
    if benchmark.bound.on_undefined == "null":
        typer.echo(
            f"benchmark {benchmark.name!r}: samples without a margin are kept as NULL, as it "
            "remembers (--on-undefined null)",
            err=True,
        )


def _compact(cells: pl.DataFrame) -> pl.DataFrame:
    """Leave out of a table what says nothing, and words, which go to stderr."""
    silent = ["problem", "n_few_so", "n_few_os"]
    return cells.drop(*silent, *(["scope"] if cells["scope"].null_count() == len(cells) else []))


def _counts(benchmark: AnyBenchmark) -> str:
    rows = "samples" if isinstance(benchmark, PairedBenchmark) else "rows"
    counts = ", ".join(f"{n} {what}" for what, n in benchmark.counts().items() if n)
    told = _bound(benchmark.bound)
    return f"benchmark {benchmark.name!r}: {len(benchmark.rows)} {rows}, {counts}; {told}"


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
