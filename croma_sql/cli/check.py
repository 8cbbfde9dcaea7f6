"""croma-sql check."""

import typer

from croma_sql.cli.options import Warehouse
from croma_sql.progress import progress_bars
from croma_sql.warehouse.checks.check import check as find_problems


def check(warehouse: Warehouse) -> None:
    """Verify every file; name what is wrong and exit with 1."""
    with progress_bars() as report:
        problems = find_problems(warehouse, lambda share: report("checking", share))
    for problem in problems:
        typer.echo(f"croma-sql: {problem}", err=True)
    if problems:
        raise typer.Exit(1)
    typer.echo(f"{warehouse} is whole")
