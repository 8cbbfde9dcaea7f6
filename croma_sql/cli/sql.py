"""croma-sql sql."""

from pathlib import Path
from typing import Annotated

import duckdb
import typer

from croma_sql.cli.output import Format, write
from croma_sql.errors import CromaSqlError
from croma_sql.session import connect


def sql(
    warehouse: Path,
    query: str,
    form: Annotated[Format, typer.Option("--format")] = Format.table,
    output: Annotated[Path | None, typer.Option(help="A file instead of stdout.")] = None,
) -> None:
    """Run SQL over the views of a warehouse: margins, encoder_summary, typed_neighbours."""
    with connect(warehouse) as con:
        try:
            relation = con.sql(query)
            frame = None if relation is None else relation.pl()
        except duckdb.Error as error:
            raise CromaSqlError(f"the query fails: {error}") from error
    if frame is not None:
        write(frame, form, output)
