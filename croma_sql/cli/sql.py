"""croma-sql sql."""

import duckdb
import polars as pl

from croma_sql.cli.options import Form, Output, Warehouse, check_output
from croma_sql.cli.output import KINDS, Format, write
from croma_sql.errors import CromaSqlError
from croma_sql.exports.tables import failed, write_relation
from croma_sql.interrupt import interruptibly
from croma_sql.session import connect


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
            if relation is None:
                return None
            if output is not None and form in KINDS:
                write_relation(relation, KINDS[form], output)
                return None
            return pl.DataFrame(relation.pl())

        try:
            frame = interruptibly(con, answer)
        except duckdb.Error as error:
            raise failed(error) from error
        except pl.exceptions.PolarsError as error:
            raise CromaSqlError(
                f"a column cannot be shown ({error}); cast it to VARCHAR"
            ) from error
    if frame is not None:
        write(frame, form, output)
