"""croma-sql sql."""

import duckdb
import polars as pl

from croma_sql.cli.options import Form, Output, Warehouse, check_output
from croma_sql.cli.output import Format, write
from croma_sql.errors import CromaSqlError
from croma_sql.interrupt import interruptibly
from croma_sql.session import connect
from croma_sql.warehouse.views import told


def sql(
    warehouse: Warehouse,
    query: str,
    form: Form = Format.table,
    output: Output = None,
) -> None:
    """Run SQL over the views of a warehouse, such as margins."""
    check_output(form, output)
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
            raise CromaSqlError(f"the query fails: {told(error)}") from error
        except pl.exceptions.PolarsError as error:
            raise CromaSqlError(
                f"a column cannot be shown ({error}); cast it to VARCHAR"
            ) from error
    if frame is not None:
        write(frame, form, output)
