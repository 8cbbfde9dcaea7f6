"""Read the columns that a statistic needs from whatever frame the user has."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from croma_sql.errors import StatisticsError, listed

UNREADABLE = (
    TypeError, ValueError, OverflowError, NotImplementedError, pl.exceptions.PolarsError,
    duckdb.Error,
)  # fmt: skip


def read_columns(frame: Any, columns: Sequence[str]) -> pl.DataFrame:
    """Take some columns of a frame, each once; what the others hold does not matter.

    Parameters
    ----------
    frame : polars, pandas or Arrow frame, DuckDB relation, or mapping of columns
        A lazy frame or relation computes only these columns.
    columns : names

    Raises
    ------
    StatisticsError
        Where the frame cannot be read, or lacks a column, or has it twice.
    """
    with _told(frame):
        there = _names(frame)
    if there is None:
        frame = whole(frame)
        there = frame.columns
    missing = [name for name in columns if name not in there]
    if missing:
        raise StatisticsError(
            f"the frame has no column {listed(missing)}; it has {listed(there, show=50)}"
        )
    _check_once(frame, columns, there)
    with _told(frame):
        some = _only(frame, list(dict.fromkeys(columns)))
    return whole(some)


def whole(frame: Any) -> pl.DataFrame:
    """Read a frame with all its columns.

    Raises
    ------
    StatisticsError
        Where the frame cannot be read; if that is for one column, it is named.
    """
    with _told(frame):
        if isinstance(frame, pl.DataFrame):
            return frame
        if isinstance(frame, pl.LazyFrame):
            return frame.collect()
        names = _names(frame)
        if names is not None:
            _check_once(frame, names, names)
        if isinstance(frame, duckdb.DuckDBPyRelation):
            fetched: pl.DataFrame = frame.pl()
            return fetched
        return pl.DataFrame(frame)


def _names(frame: Any) -> list[str] | None:
    """Name the columns without reading them; None where that cannot be done."""
    if isinstance(frame, pl.LazyFrame):
        return frame.collect_schema().names()
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return list(frame.schema.names)
    if isinstance(frame, Mapping):
        return list(frame)
    if isinstance(frame, pl.DataFrame | duckdb.DuckDBPyRelation) or _is_pandas(frame):
        return [str(name) for name in frame.columns]
    return None


def _only(frame: Any, names: list[str]) -> Any:
    """Take these columns, unread."""
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return frame.select(*map(duckdb.ColumnExpression, names))
    if isinstance(frame, Mapping):
        return {name: frame[name] for name in names}
    if _is_pandas(frame):
        there = [str(name) for name in frame.columns]
        return frame.iloc[:, [there.index(name) for name in names]]
    return frame.select(names)


def _is_pandas(frame: Any) -> bool:
    """Recognise it, or what imitates it, without an import that most users need not have."""
    return hasattr(frame, "iloc") and hasattr(frame, "columns")


def _check_once(frame: Any, wanted: Iterable[str], there: Iterable[str]) -> None:
    in_sql = isinstance(frame, duckdb.DuckDBPyRelation)  # the first is taken, in whichever case
    same = str.lower if in_sql else str
    times = Counter(map(same, there))
    twice = [name for name in dict.fromkeys(wanted) if times[same(name)] > 1]
    if twice:
        how = " (in SQL upper and lower case are one)" if in_sql else ""
        raise StatisticsError(
            f"the frame has column {listed(twice)} more than once{how}; rename one"
        )


@contextmanager
def _told(frame: Any) -> Iterator[None]:
    """Say of what cannot be read which frame and column it is."""
    try:
        yield
    except (StatisticsError, duckdb.InterruptException):
        raise
    except UNREADABLE as error:
        culprit = _culprit(frame)
        where = "" if culprit is None else f"column {culprit!r}: "
        raise StatisticsError(
            f"a {type(frame).__name__} cannot be read as a frame: {where}"
            + str(error).partition("\n\n")[0]  # what follows is how the engine came there
        ) from error


def _culprit(frame: Any) -> str | None:
    """Find the first column in memory that cannot be read even by itself."""
    if not (isinstance(frame, Mapping | pa.Table | pa.RecordBatch) or _is_pandas(frame)):
        return None
    for name in _names(frame) or []:
        try:
            pl.DataFrame(_only(frame, [name]))
        except UNREADABLE:
            return name
    return None


def as_names(given: Any) -> list[str]:
    """Take one name or several, each once.

    Raises
    ------
    StatisticsError
        What is no name.
    """
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if not all(isinstance(name, str) for name in names):
        raise StatisticsError(f"expected the name of a column or a list of names, not {given!r}")
    return list(dict.fromkeys(map(str, names)))


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
