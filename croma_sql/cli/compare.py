"""croma-sql compare."""

from typing import Annotated

import typer

from croma_sql import reports
from croma_sql.cli.options import Benchmark, Draws, Form, M, Output, Seed, Warehouse, check_output
from croma_sql.cli.output import Format, intervals_beside, write


def compare(
    warehouse: Warehouse,
    benchmark: Benchmark = None,
    m: M = reports.PUBLISHED_M,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Every two encoders: difference, and who wins.")
    ] = False,
    overall: Annotated[
        bool, typer.Option("--overall", help="Mean ranks over all benchmarks.")
    ] = False,
    draws: Draws = 2000,
    seed: Seed = 0,
    form: Form = Format.table,
    output: Output = None,
) -> None:
    """Rank encoders, say how far ranks hold under resampling, and who is on the Pareto frontier.

    Controls (croma-sql import encoders) are shown, never ranked.
    """
    check_output(form, output)
    if pairs and overall:
        raise typer.BadParameter("--pairs and --overall are two tables; ask for one")
    if overall and benchmark is not None:
        raise typer.BadParameter("--overall is over all benchmarks; leave --benchmark out")
    if overall:
        found = reports.compare_overall(warehouse, m=m)
    elif pairs:
        found = reports.compare_pairs(warehouse, benchmark=benchmark, m=m, draws=draws, seed=seed)
    else:
        found = reports.compare(warehouse, benchmark=benchmark, m=m, draws=draws, seed=seed)
    if form is Format.table:
        silent = [column.name for column in found if column.null_count() == len(found)]
        if "n_left_out" in found.columns and found["n_left_out"].sum() == 0:
            silent.append("n_left_out")
        found = intervals_beside(found.drop(silent))
    write(found, form, output)
