"""croma-sql consistency."""

from typing import Annotated

import polars as pl
import typer

from croma_sql import reports
from croma_sql.cli.options import (
    Benchmark,
    Draws,
    Encoder,
    Form,
    Output,
    Seed,
    Warehouse,
    check_output,
)
from croma_sql.cli.output import Format, intervals_beside, write
from croma_sql.progress import progress_bars
from croma_sql.reports.reading import query
from croma_sql.statistics.correlation import FEWEST
from croma_sql.warehouse.scoring.consistency import ScoredConsistency, score_consistency

TOLD = (
    "benchmark", "encoder", "n_units", "d_cos", "relative_d_cos", "mr_1nn", "top_5", "mantel_r",
    "iok_10", "collapse_reason",
)  # fmt: skip
ALWAYS = ("value", "rho")
IN_ORDER = "ORDER BY benchmark, encoder, acquisition_a, acquisition_b"
CHECK = "SELECT benchmark, encoder, collapse_reason, is_collapse FROM collapse_check"
CHECK_ORDER = "ORDER BY benchmark, encoder"
WHY = {
    "no_spread": "all units lie at one place",
    "low_rank": "all units lie on a line",
    "compact": "units lie close together rather than stay where they are",
}


def consistency(
    context: typer.Context,
    warehouse: Warehouse,
    benchmark: Benchmark = None,
    encoder: Encoder = None,
    by_pair: Annotated[
        bool, typer.Option("--by-pair", help="Every two acquisitions, in both directions.")
    ] = False,
    by: Annotated[
        list[str] | None,
        typer.Option(help="Units by an attribute, with 95 % intervals; may be repeated."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Rank encoders, and say how far the ranks hold.")
    ] = False,
    agreement: Annotated[
        bool, typer.Option("--agreement", help="How alike the metrics rank encoders.")
    ] = False,
    group: Annotated[
        str, typer.Option(help="With --compare and --by: an attribute, units of which go together.")
    ] = "unit",
    complete_cases: Annotated[
        bool,
        typer.Option("--complete-cases", help="Leave out units that lack an acquisition."),
    ] = False,
    permutations: Annotated[
        int, typer.Option(help="For the p of Mantel's r; always the same ones.", min=0)
    ] = 999,
    depth: Annotated[
        int | None,
        typer.Option(
            help="Largest K of IoK, or all other units where there are fewer; default 1000.", min=1
        ),
    ] = None,
    draws: Draws = 2000,
    seed: Seed = 0,
    threads: Annotated[int | None, typer.Option(help="Default: all cores.", min=1)] = None,
    form: Form = Format.table,
    output: Output = None,
) -> None:
    """Compare units seen under several acquisitions, and show how consistent each encoder is.

    What is up to date is not compared again. A benchmark of this kind is a SELECT of sample_id,
    unit (patient, slide or place) and acquisition (scanner).
    """
    check_output(form, output)
    if sum(map(bool, (by_pair, by, compare, agreement))) > 1:
        raise typer.BadParameter(
            "--by-pair, --by, --compare and --agreement are tables of their own; ask for one"
        )
    if encoder is not None and (compare or agreement):
        raise typer.BadParameter("encoders are compared with each other; leave --encoder out")
    _check_used(context, "group", bool(compare or by), "--compare or --by")
    for name in ("draws", "seed"):
        _check_used(
            context, name, bool(compare or by or agreement), "--compare, --by or --agreement"
        )
    with progress_bars() as report:
        done = score_consistency(
            warehouse,
            benchmark=benchmark,
            encoder=encoder,
            incomplete="drop" if complete_cases else "error",
            permutations=permutations,
            depth=depth,
            threads=threads,
            on_progress=lambda name, one, progress: report(f"comparing {name} / {one}", progress),
        )
    if all(one.outcome == "no vectors" for one in done):
        typer.echo("no encoder has vectors of these benchmarks' samples; import embeddings first")
        return
    if compare:
        found = reports.compare_consistency(
            warehouse, benchmark=benchmark, group=group, draws=draws, seed=seed
        )
    elif agreement:
        found = reports.consistency_agreement(
            warehouse, benchmark=benchmark, draws=draws, seed=seed
        )
    elif by:
        found = reports.consistency_strata(
            warehouse,
            by,
            benchmark=benchmark,
            encoder=encoder,
            group=group,
            draws=draws,
            seed=seed,
        )
    elif by_pair:
        asked = {"benchmark": benchmark, "encoder": encoder}
        found = query(warehouse, "FROM acquisition_pairs", asked, IN_ORDER)
    else:
        found = reports.consistency_summary(warehouse, benchmark=benchmark, encoder=encoder)
        if form is Format.table:
            found = found.select(TOLD)
    write(_told(found) if form is Format.table else found, form, output)
    if agreement:
        most = found.group_by("benchmark").agg(pl.col("n").max()).sort("benchmark")
        for name, n in most.filter(pl.col("n") < FEWEST).rows():
            typer.echo(
                f"{name}: a correlation takes {FEWEST} encoders that are no controls, and there "
                f"{'is' if n == 1 else 'are'} {n}; NULL is what fewer say",
                err=True,
            )
    for scored in done:
        if scored.n_incomplete:
            typer.echo(_left_out(scored), err=True)
    checked = query(warehouse, CHECK, {"benchmark": benchmark, "encoder": encoder}, CHECK_ORDER)
    for name, one, reason in checked.filter(pl.col("is_collapse")).drop("is_collapse").rows():
        typer.echo(
            f"{one} has collapsed on {name}: {WHY[reason]}, so its distances say little about "
            f"consistency ({reason}; the view collapse_check has the figures)",
            err=True,
        )


def _check_used(context: typer.Context, name: str, is_used: bool, by: str) -> None:
    """Refuse an option that would do nothing."""
    source = context.get_parameter_source(name)
    if not is_used and source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter(f"--{name} is of {by}, which are not asked for; leave it out")


def _left_out(scored: ScoredConsistency) -> str:
    n, one = scored.n_incomplete, scored.n_incomplete == 1
    return (
        f"{n} {'unit' if one else 'units'} of {scored.benchmark} {'lacks' if one else 'lack'} an "
        f"acquisition under {scored.encoder} and {'was' if one else 'were'} left out"
    )


def _told(found: pl.DataFrame) -> pl.DataFrame:
    """Leave out of a table what says nothing."""
    silent = [
        column.name
        for column in found
        if column.null_count() == len(found) and column.name not in ALWAYS
    ]
    silent += [
        name
        for name in ("n_left_out", "is_control")
        if name in found.columns and not found[name].sum()
    ]
    return intervals_beside(found.drop(silent))
