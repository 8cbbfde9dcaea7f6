"""Views of a warehouse as frames, for what is scored."""

from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from croma_sql.cohort import checked_m
from croma_sql.errors import StatisticsError, listed
from croma_sql.interrupt import interruptibly
from croma_sql.session import connect
from croma_sql.warehouse.views import damaged

PUBLISHED_M = 5
FILTERS = {"benchmark": "benchmark = $benchmark", "encoder": "encoder = $encoder"}


def read_margins(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    m: int = PUBLISHED_M,
) -> pl.DataFrame:
    """Margins of a warehouse, one row per benchmark, encoder, subset and sample.

    Parameters
    ----------
    warehouse : path
    benchmark, encoder : str, optional
        Only this one; default all that are scored.
    m : int, default 5
        Neighbours per type, at most as many as were scored.

    Returns
    -------
    polars.DataFrame
        The view ``margins_at(m)``: margins with every attribute of their samples beside them.

    Raises
    ------
    StatisticsError
        Nothing scored, or not under these names; an m that was not scored.
    """
    asked = {"m": checked_m(m), "benchmark": benchmark, "encoder": encoder}
    frame = query(warehouse, "FROM margins_at($m)", asked)
    if frame.is_empty():
        raise StatisticsError(nothing(warehouse, benchmark, encoder))
    return frame


def query(warehouse: str | Path, text: str, asked: dict[str, Any], order: str = "") -> pl.DataFrame:
    """Ask a view; of ``asked``, a benchmark or an encoder that is not None is a filter.

    A condition that is left out, unlike one that is always true, lets DuckDB read fewer files.
    """
    bound = {name: value for name, value in asked.items() if value is not None}
    filters = [text for name, text in FILTERS.items() if name in bound]
    where = ["WHERE", " AND ".join(filters)] if filters else []
    with connect(warehouse) as con:
        try:
            relation = con.sql(" ".join([text, *where, order]), params=bound)
            return interruptibly(con, lambda: pl.DataFrame(relation.pl()))
        except duckdb.InvalidInputException as error:  # raised by error() in a macro
            raise StatisticsError(str(error).removeprefix("Invalid Input Error: ")) from error
        except duckdb.Error as error:
            raise damaged(error) from error


def nothing(warehouse: str | Path, benchmark: str | None, encoder: str | None) -> str:
    """Say why there is nothing."""
    with connect(warehouse) as con:
        scored = con.sql("SELECT DISTINCT benchmark, encoder FROM typed_neighbour_files").fetchall()
    if not scored:
        return f"nothing in {warehouse} is scored yet; run croma-sql score {warehouse}"
    for what, one, known in (
        ("benchmark", benchmark, sorted({name for name, _ in scored})),
        ("encoder", encoder, sorted({name for _, name in scored})),
    ):
        if one is not None and one not in known:
            return f"no {what} {one!r} is scored; there is {listed(known, show=10)}"
    return f"benchmark {benchmark!r} is not scored under encoder {encoder!r}; run croma-sql score"
