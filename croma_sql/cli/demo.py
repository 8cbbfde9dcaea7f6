"""croma-sql demo."""

from typing import Annotated

import typer

from croma_sql.cli.options import Place
from croma_sql.cli.output import console, print_table
from croma_sql.demo import ABOUT, build, queries
from croma_sql.progress import progress_bars
from croma_sql.session import connect


def demo(
    folder: Annotated[Place, typer.Argument(help="Where to build it.")] = "croma-demo",
) -> None:
    """Build, score and stratify a small warehouse.

    Tiles of real tissue under three simulated scanners, from data in the package.
    """
    with progress_bars() as report:
        build(folder, on_progress=lambda name, one, done: report(f"scoring {one}", done))
    out = console()
    out.print(ABOUT)
    with connect(folder) as con:
        for title, query in queries():
            print_table(con.sql(query).pl(), title)
    out.print(f'The warehouse is {folder}. Ask it yourself: croma-sql sql {folder} "FROM margins"')
