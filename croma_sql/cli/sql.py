"""croma-sql sql."""

from pathlib import Path
from typing import Annotated

import duckdb
import polars as pl
import typer

from croma_sql.cli.output import Format, write
from croma_sql.errors import CromaSqlError
from croma_sql.interrupt import interruptibly
from croma_sql.session import connect


def sql(
    warehouse: Path,
    query: str,
    form: Annotated[Format, typer.Option("--format")] = Format.table,
    output: Annotated[Path | None, typer.Option(help="A file instead of stdout.")] = None,
) -> None:
    """Run SQL over the views of a warehouse, such as margins."""
    if form is Format.table and output is not None:
        raise typer.BadParameter("a table cannot go to a file; add --format csv, json or parquet")
    if form is Format.parquet and output is None:
        raise typer.BadParameter("Parquet cannot go to the terminal; name a file with --output")
    with connect(warehouse) as con:
        con.execute(
            "SET python_enable_replacements = false"
        )  # a name means a table, not a variable

        def answer() -> pl.DataFrame | None:
            relation = con.sql(query)
            return None if relation is None else pl.DataFrame(relation.pl())

        try:
            frame = interruptibly(con, answer)
        except duckdb.Error as error:
            raise CromaSqlError(f"the query fails: {error}") from error
        except pl.exceptions.PolarsError as error:
            raise CromaSqlError(
                f"a column cannot be shown ({error}); cast it to VARCHAR"
            ) from error
    if frame is not None:
        write(frame, form, output)
