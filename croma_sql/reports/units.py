"""Units of a warehouse under all acquisitions, as frames."""

from pathlib import Path

import polars as pl

from croma_sql.errors import StatisticsError, listed
from croma_sql.reports.reading import query
from croma_sql.session import connect
from croma_sql.statistics.frames import read_columns, without_nulls

METRICS = ("d_cos", "mr_1nn", "iok_10", "profile_r")  # means over units, which can be resampled
UNIT = "unit"


def read_units(warehouse: str | Path, benchmark: str | None, encoder: str | None) -> pl.DataFrame:
    """Read the view unit_consistency.

    Raises
    ------
    StatisticsError
        Nothing compared, or not under these names.
    """
    asked = {"benchmark": benchmark, "encoder": encoder}
    found = query(warehouse, "FROM unit_consistency", asked)
    if found.is_empty():
        raise StatisticsError(nothing_compared(warehouse, benchmark, encoder))
    return found


def groups(units: pl.DataFrame, column: str) -> pl.Series:
    """Take what is drawn, which every unit belongs to.

    Raises
    ------
    StatisticsError
        A column that is not there, or NULL for some unit.
    """
    why = "every unit belongs to a group; name an attribute that all of them have"
    return without_nulls(read_columns(units, [column])[column], why).alias("group")


def nothing_compared(warehouse: str | Path, benchmark: str | None, encoder: str | None) -> str:
    """Say why there is nothing."""
    with connect(warehouse) as con:
        there = con.sql("SELECT DISTINCT benchmark, encoder FROM unit_files").fetchall()
    if not there:
        return f"no acquisitions in {warehouse} are compared yet; run croma-sql consistency"
    for what, one, known in (
        ("benchmark", benchmark, sorted({name for name, _ in there})),
        ("encoder", encoder, sorted({name for _, name in there})),
    ):
        if one is not None and one not in known:
            return (
                f"no acquisitions are compared of {what} {one!r}; they are of "
                f"{listed(known, show=10)}"
            )
    return (
        f"benchmark {benchmark!r} is not compared under encoder {encoder!r}; run "
        "croma-sql consistency"
    )
