"""Samples and their attributes from CSV, TSV, Parquet, Arrow files and any frame."""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from croma_sql.errors import SourceError, listed

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
TEXT = (".csv", ".tsv", ".txt")

# Numbers as a spreadsheet writes them. "007" is no number but an id, and stays text.
_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
LARGEST_EXACT = 2.0**53  # from here on float64 skips whole numbers
_MISSING = ("", "NA", "NaN", "nan")


def read_table(source: Any, text: Sequence[str] = ()) -> pa.Table:
    """Read a file or a frame whole, except columns of vectors.

    Parameters
    ----------
    source : path to .csv, .tsv, .parquet, .arrow or .feather, or any frame that speaks Arrow
        (Polars, pandas, pyarrow, a DuckDB relation)
    text : names of columns to keep as text whatever they hold: ids

    Returns
    -------
    pyarrow.Table
        Text files, separated by commas, semicolons or tabs: a column is numeric where every cell is
        a number as one writes it, without leading zeros, and no two different cells are the same
        number (NA and empty cells are NULL); else it is text in which only an empty cell is NULL.

    Raises
    ------
    SourceError
        Not there, of a kind this does not read, cut short, or with a column name twice.
    """
    if not isinstance(source, str | Path):
        return _attributes(as_table(source))
    path = Path(source)
    suffix = path.suffix.lower()
    try:
        if suffix in PARQUET:
            with pq.ParquetFile(path) as file:
                schema = file.schema_arrow
                return file.read([field.name for field in schema if not _is_vector(field.type)])
        if suffix in ARROW:
            return _attributes(pa.feather.read_table(path))
        if suffix in TEXT:
            return _typed(_read_text(path), text)
    except (OSError, pa.ArrowException, pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    raise SourceError(
        f"{path}: samples are read from .csv, .tsv, .parquet, .arrow or .feather files; "
        f"{path.suffix or 'a file without suffix'} is none of them"
    )


def as_table(frame: Any) -> pa.Table:
    """Read any frame that speaks Arrow."""
    if not (hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")):
        raise SourceError(
            f"{type(frame).__name__} is neither a path nor a frame; expected a path, or a Polars, "
            "pandas, pyarrow or DuckDB table"
        )
    try:
        table = pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise SourceError(f"the frame cannot be read: {_first_line(error)}") from error
    twice = [name for name, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise SourceError(f"the frame has more than one column {listed(twice)}")
    return table


def unreadable(path: Path, error: Exception) -> SourceError:
    """Say what is wrong with a file in the user's words."""
    if isinstance(error, SourceError):
        return error
    if isinstance(error, FileNotFoundError):
        return SourceError(f"{path} does not exist")
    if isinstance(error, UnicodeDecodeError):
        return SourceError(f"{path} is not UTF-8 ({error}); save it as CSV in UTF-8")
    if path.suffix.lower() in PARQUET:
        return SourceError(
            f"{path} is not a readable Parquet file; it may be cut short or of another format "
            f"({_first_line(error)}). Write or copy it again"
        )
    return SourceError(f"{path} cannot be read: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _read_text(path: Path) -> pl.DataFrame:
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = next((line for line in file if line.strip()), "")
    bare = re.sub('"[^"]*"', "", first)
    separator = max(",;\t", key=bare.count)  # of equals the first: a comma
    names = next(csv.reader([first], delimiter=separator), [])
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(f"{path} has more than one column {listed(twice)}; rename or remove one")
    cells = pl.read_csv(path, separator=separator, infer_schema=False, glob=False)
    return cells.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


def _typed(cells: pl.DataFrame, text: Sequence[str]) -> pa.Table:
    """Make columns numeric where that loses nothing of what was written."""
    numeric = {column.name: _number_type(column) for column in cells if column.name not in text}
    return cells.with_columns(
        pl.col(name).replace(dict.fromkeys(_MISSING)).cast(dtype)
        for name, dtype in numeric.items()
        if dtype is not None
    ).to_arrow()


def _number_type(cells: pl.Series) -> type[pl.Int64 | pl.Float64] | None:
    written = cells.filter(cells.is_not_null() & ~cells.is_in(_MISSING)).unique()
    for pattern, dtype in ((_INTEGER, pl.Int64), (_NUMBER, pl.Float64)):
        if not written.is_empty() and written.str.contains(pattern).all():
            # "1.1" and "1.10", or ids of twenty digits, may be two things that are one number
            numbers = written.cast(dtype)
            exact = dtype == pl.Int64 or bool((numbers.abs() < LARGEST_EXACT).all())
            return dtype if exact and numbers.n_unique() == len(written) else None
    return None


def _attributes(table: pa.Table) -> pa.Table:
    return table.select([i for i, field in enumerate(table.schema) if not _is_vector(field.type)])


def _is_vector(arrow_type: pa.DataType) -> bool:
    is_list = (
        pa.types.is_fixed_size_list(arrow_type)
        or pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
    )
    return bool(is_list) and bool(
        pa.types.is_floating(arrow_type.value_type) or pa.types.is_integer(arrow_type.value_type)
    )
