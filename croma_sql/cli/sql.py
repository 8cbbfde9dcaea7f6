"""croma-sql sql."""

import re

import duckdb
import polars as pl
import typer

from croma_sql.cli.options import Form, Output, Strict, Warehouse, check_output
from croma_sql.cli.output import KINDS, Format, write
from croma_sql.errors import CromaSqlError
from croma_sql.exports.tables import failed, write_relation
from croma_sql.interrupt import interruptibly
from croma_sql.session import VIEWS, opened
from croma_sql.warehouse.states.telling import of_tables, tables_read, tell

ANSWERED = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.MULTI)
SCORE = ("typed_neighbour_files", "score {}")
WITH_K = ("neighbour_files", "score {} --k 101")
MADE_BY = {  # folder of views, or a view: what they are made of, and the verb that makes it
    "edges": SCORE,
    "margins": SCORE,
    "blame": SCORE,
    "encoders": SCORE,
    "edges/neighbours": WITH_K,
    "fixed_k": WITH_K,
    "centre": ("silhouette_files", "centre {}"),
    "consistency": ("unit_files", "consistency {}"),
}


def sql(
    warehouse: Warehouse,
    query: str,
    form: Form = Format.table,
    output: Output = None,
    strict: Strict = False,
) -> None:
    """Run one query over the views of a warehouse.

    Such as 'FROM margins'.
    """
    form = check_output(form, output)
    _check_is_query(query)
    con, stored = opened(warehouse)
    with con:
        tell(of_tables(stored, tables_read(query)), warehouse, strict)
        con.execute(
            "SET python_enable_replacements = false"
        )  # a name means a table, not a variable

        def answer() -> pl.DataFrame | int:
            relation = con.sql(query)
            if output is not None and form in KINDS:
                return write_relation(relation, KINDS[form], output)
            return pl.DataFrame(relation.pl())

        try:
            found = interruptibly(con, answer)
        except duckdb.Error as error:
            raise failed(error) from error
        except pl.exceptions.PolarsError as error:
            raise CromaSqlError(
                f"a column cannot be shown ({error}); cast it to VARCHAR"
            ) from error
        n = found if isinstance(found, int) else len(found)
        hints = [] if n else _hints(con, warehouse, query)
    if isinstance(found, pl.DataFrame):
        write(found, form, output)
    for hint in hints:
        typer.echo(hint, err=True)


def _check_is_query(query: str) -> None:
    """Refuse what gives no rows, or more than one table of them."""
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise failed(error) from error
    if not statements:
        raise CromaSqlError("the query is empty; give one, such as 'FROM margins'")
    if len(statements) > 1:
        raise CromaSqlError(
            f"the query has {len(statements)} statements; give one, and a command for each"
        )
    if statements[0].type not in ANSWERED:
        raise CromaSqlError(
            f"{statements[0].type.name} is not a query, and nothing it changes would be kept; give "
            "a SELECT, FROM, WITH, DESCRIBE, SHOW, SUMMARIZE, EXPLAIN or PIVOT. The verbs that "
            "change a warehouse are in croma-sql --help"
        )


def _hints(con: duckdb.DuckDBPyConnection, warehouse: str, query: str) -> list[str]:
    """Say which of the views that a query names are empty because nothing has made their rows."""
    words = set(re.findall(r"\w+", query.lower()))
    named = [view for view in VIEWS if view.partition("/")[2] in words]
    of_views = {view: MADE_BY.get(view) or MADE_BY.get(view.partition("/")[0]) for view in named}
    return [
        f"nothing has been scored for the view {view.partition('/')[2]!r} yet; run croma-sql "
        f"{made[1].format(warehouse)}"
        for view, made in of_views.items()
        if made is not None and not con.table(made[0]).limit(1).fetchall()
    ]
