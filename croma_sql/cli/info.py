"""croma-sql info."""

from typing import Any

import polars as pl
import typer

from croma_sql.cli.options import Warehouse
from croma_sql.cli.output import print_table
from croma_sql.warehouse.info import ScoresInfo
from croma_sql.warehouse.info import info as describe
from croma_sql.warehouse.scoring.schemas import CENTRE, CONSISTENCY, Table, family_of

ONE_ROW: dict[tuple[Table, ...], str] = {CONSISTENCY: "consistency", CENTRE: "centre"}


def info(warehouse: Warehouse) -> None:
    """Show what is there, what is scored and what is out of date."""
    found = describe(warehouse)
    for title, rows in (
        ("datasets", found.datasets),
        ("encoders", found.encoders),
        ("encoder attributes", [found.encoder_attributes] if found.encoder_attributes else []),
        ("benchmarks", found.benchmarks),
        ("scores", _together(found.scores)),
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


def _together(scores: list[ScoresInfo]) -> list[dict[str, Any]]:
    """Tell of tables that are only made together in one row."""
    found: dict[tuple[str, str, str], list[ScoresInfo]] = {}
    for one in scores:
        name = ONE_ROW.get(family_of(one.table), one.table)
        found.setdefault((name, one.benchmark, one.encoder), []).append(one)
    return [
        {
            "table": name,
            "benchmark": benchmark,
            "encoder": encoder,
            "depth": max((one.depth for one in some if one.depth is not None), default=None),
            "n_undefined": some[0].n_undefined,
            "status": _status(some) if name in ONE_ROW.values() else some[0].status,
        }
        for (name, benchmark, encoder), some in found.items()
    ]


def _status(family: list[ScoresInfo]) -> str:
    """Say what is wrong with any of them, if something is."""
    there = {one.table for one in family}
    gone = [table for table in family_of(family[0].table) if table not in there]
    if gone:
        return f"incomplete: no {', '.join(gone)}"
    return next((one.status for one in family if one.status != "up to date"), "up to date")
