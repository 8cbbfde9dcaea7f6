"""croma-sql info."""

from pathlib import Path

import polars as pl
import typer

from croma_sql.cli.output import print_table
from croma_sql.warehouse.info import info as describe


def info(warehouse: Path) -> None:
    """Show datasets, encoders, benchmarks, and what is scored or out of date."""
    found = describe(warehouse)
    for title, rows in (
        ("datasets", found.datasets),
        ("encoders", found.encoders),
        ("benchmarks", found.benchmarks),
        ("scores", found.scores),
    ):
        if rows:
            frame = pl.DataFrame(rows)
            nested = [name for name, dtype in frame.schema.items() if dtype == pl.List(pl.String)]
            print_table(frame.with_columns(pl.col(nested).list.join(", ")), title)
        else:
            typer.echo(f"{title}: none")
