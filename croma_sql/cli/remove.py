"""croma-sql remove encoder, remove dataset, remove benchmark, remove scores."""

from typing import Annotated

import typer

from croma_sql.cli.options import Benchmark, Encoder, Warehouse
from croma_sql.errors import counted, listed
from croma_sql.warehouse.removing import (
    Removed,
    remove_benchmark,
    remove_dataset,
    remove_encoder,
    remove_scores,
)

app = typer.Typer(
    help="Remove encoders, datasets, benchmarks or scores, with what depends on them.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(show_default=False)]
WithDerived = Annotated[
    bool, typer.Option("--with-derived", help="Remove what depends on it, too; else refuse.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")]


@app.command("encoder")
def encoder(
    warehouse: Warehouse, name: Name, with_derived: WithDerived = False, dry_run: DryRun = False
) -> None:
    """Remove an encoder: vectors, their sources, and scores."""
    done = remove_encoder(warehouse, name, with_derived=with_derived, dry_run=dry_run)
    _say(warehouse, done, dry_run)


@app.command("dataset")
def dataset(
    warehouse: Warehouse, name: Name, with_derived: WithDerived = False, dry_run: DryRun = False
) -> None:
    """Remove a dataset: samples, and every encoder's vectors of them."""
    done = remove_dataset(warehouse, name, with_derived=with_derived, dry_run=dry_run)
    _say(warehouse, done, dry_run)


@app.command("benchmark")
def benchmark(
    warehouse: Warehouse, name: Name, with_derived: WithDerived = False, dry_run: DryRun = False
) -> None:
    """Remove a benchmark and its scores."""
    done = remove_benchmark(warehouse, name, with_derived=with_derived, dry_run=dry_run)
    _say(warehouse, done, dry_run)


@app.command("scores")
def scores(
    warehouse: Warehouse,
    benchmark: Benchmark = None,
    encoder: Encoder = None,
    dry_run: DryRun = False,
) -> None:
    """Remove scores, which can be computed again."""
    done = remove_scores(warehouse, benchmark=benchmark, encoder=encoder, dry_run=dry_run)
    _say(warehouse, done, dry_run)


def _say(warehouse: str, done: Removed, dry_run: bool) -> None:
    verb = "would be removed" if dry_run else "removed"
    typer.echo(
        f"{verb} from {warehouse}: {counted(done.files, 'file')} of {done.size / 1e6:.1f} MB"
    )
    for kind, names in (
        ("encoders", done.encoders),
        ("datasets", done.datasets),
        ("benchmarks", done.benchmarks),
        ("scores of", [f"{name} / {one}" for name, one in done.scores]),
    ):
        if names:
            typer.echo(f"  {kind}: {listed(names, show=20)}")
