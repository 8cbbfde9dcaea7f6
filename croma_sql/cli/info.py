"""croma-sql info."""

from pathlib import Path

import polars as pl
import typer

from croma_sql.cli.output import print_table
from croma_sql.warehouse.info import info as describe


def info(warehouse: Path) -> None:
    """Show what is there, what is scored and what is out of date."""
    found = describe(warehouse)
    for title, rows in (
        ("datasets", found.datasets),
        ("encoders", found.encoders),
        ("encoder attributes", [found.encoder_attributes] if found.encoder_attributes else []),
        ("benchmarks", found.benchmarks),
        ("scores", found.scores),
    ):
        if rows:
            frame = pl.DataFrame(rows)
            nested = [name for name, dtype in frame.schema.items() if dtype == pl.List]
            told = [column.name for column in frame if column.null_count() < len(column)]
            print_table(
                frame.with_columns(pl.col(nested).cast(pl.List(pl.String)).list.join(", ")).select(
                    told
                ),
                title,
            )
        else:
            typer.echo(f"{title}: none")
