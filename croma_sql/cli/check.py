"""croma-sql check."""

import warnings
from typing import Annotated

import typer

from croma_sql.cli.options import Warehouse
from croma_sql.errors import StaleWarning
from croma_sql.progress import progress_bars
from croma_sql.warehouse.checks.check import check as find_problems


def check(
    warehouse: Warehouse,
    strict: Annotated[
        bool, typer.Option("--strict", help="What is out of date is wrong as well.")
    ] = False,
) -> None:
    """Verify every file; name what is wrong and exit with 1.

    What was computed from vectors, samples or benchmarks that have changed since is named too, and
    is no fault unless --strict is given.
    """
    with progress_bars() as report, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StaleWarning)
        problems = find_problems(warehouse, lambda share: report("checking", share), strict=strict)
    for problem in [*problems, *(str(one.message) for one in caught)]:
        typer.echo(f"croma-sql: {problem}", err=True)
    if problems:
        raise typer.Exit(1)
    typer.echo(f"{warehouse} is whole{', but not all of it is up to date' if caught else ''}")
