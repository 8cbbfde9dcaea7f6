"""Read the columns that a statistic needs from whatever frame the user has."""

from collections.abc import Sequence
from typing import Any

import duckdb
import polars as pl

from croma_sql.errors import StatisticsError, listed


def read_columns(frame: Any, columns: Sequence[str]) -> pl.DataFrame:
    """Take some columns of a frame, each once; a lazy frame or relation computes only these.

    Parameters
    ----------
    frame : polars, pandas or Arrow frame, DuckDB relation, or mapping of columns
    columns : names

    Raises
    ------
    StatisticsError
        Where the frame cannot be read, or lacks a column.
    """
    wanted = list(dict.fromkeys(columns))
    if isinstance(frame, pl.LazyFrame):
        _check(wanted, frame.collect_schema().names())
        return frame.select(wanted).collect()
    if isinstance(frame, duckdb.DuckDBPyRelation):
        _check(wanted, frame.columns)
        return whole(frame.select(*map(duckdb.ColumnExpression, wanted)))
    read = whole(frame)
    _check(wanted, read.columns)
    return read.select(wanted)


def whole(frame: Any) -> pl.DataFrame:
    """Read a frame with all its columns."""
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, duckdb.DuckDBPyRelation):
        fetched: pl.DataFrame = frame.pl()
        return fetched
    try:
        return pl.DataFrame(frame)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise StatisticsError(f"a {type(frame).__name__} cannot be read as a frame: {error}") from (
            error
        )


def _check(wanted: list[str], there: list[str]) -> None:
    missing = [name for name in wanted if name not in there]
    if missing:
        raise StatisticsError(
            f"the frame has no column {listed(missing)}; it has {listed(there, show=50)}"
        )


def as_names(given: str | Sequence[str]) -> list[str]:
    """Take one name or several, each once."""
    return [given] if isinstance(given, str) else list(dict.fromkeys(given))


def as_numbers(column: pl.Series) -> pl.Series:
    """Cast to Float64, NaN to NULL.

    Raises
    ------
    StatisticsError
        Where the column holds no numbers, or infinite ones.
    """
    if column.dtype == pl.Null:
        return column.cast(pl.Float64)
    if not column.dtype.is_numeric():
        raise StatisticsError(f"column {column.name!r} is of type {column.dtype}; expected numbers")
    numbers = column.cast(pl.Float64).fill_nan(None)
    infinite = numbers.is_infinite().fill_null(value=False)
    if infinite.any():
        raise StatisticsError(
            f"column {column.name!r} is infinite in row {listed(infinite.arg_true())} "
            "(counted from 0); make it NULL where it is undefined"
        )
    return numbers


def without_nulls(column: pl.Series, why: str) -> pl.Series:
    """Refuse a column with NULL or NaN, naming the first rows.

    Raises
    ------
    StatisticsError
    """
    absent = column.fill_nan(None).is_null() if column.dtype.is_float() else column.is_null()
    if absent.any():
        raise StatisticsError(
            f"column {column.name!r} is NULL in {absent.sum()} of {len(column)} rows "
            f"({listed(absent.arg_true())}, counted from 0); {why}"
        )
    return column
