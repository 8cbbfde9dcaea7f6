"""croma-sql check."""

from pathlib import Path

import typer

from croma_sql.cli.output import progress
from croma_sql.warehouse.check import check as find_problems


def check(warehouse: Path) -> None:
    """Verify every file against the contract; names what is wrong, exit 1 if anything is."""
    with progress() as report:
        problems = find_problems(warehouse, lambda share: report("checking", share))
    for problem in problems:
        typer.echo(f"croma-sql: {problem}", err=True)
    if problems:
        raise typer.Exit(1)
    typer.echo(f"{warehouse} is whole")
