"""Samples and their attributes from CSV, TSV, Excel, Parquet, Arrow files and any frame."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from croma_sql.errors import SourceError, listed
from croma_sql.importers.delimited import read_layout
from croma_sql.importers.excel import EXCEL, OTHER_SHEETS, ChooseText, read_sheet
from croma_sql.places import is_local, place

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
TEXT = (".csv", ".tsv", ".txt")

# Numbers as a spreadsheet writes them. "007" is no number but an id, and stays text.
_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
LARGEST_EXACT = 2.0**53  # from here on float64 skips whole numbers
_MISSING = ("", "NA", "NaN", "nan")


def read_table(source: Any, text: Sequence[str] | ChooseText = ()) -> pa.Table:
    """Read a file or a frame whole, except columns of vectors.

    Parameters
    ----------
    source : path or URL of .csv, .tsv, .xlsx, .parquet, .arrow or .feather, or any frame that
        speaks Arrow (Polars, pandas, pyarrow, a DuckDB relation)
    text : names of columns to keep as text whatever they hold, ids; or what chooses them among the
        names of all columns

    Returns
    -------
    pyarrow.Table
        Text files, separated by commas, semicolons or tabs: a column is numeric where every cell is
        a number as one writes it, without leading zeros, and no two different cells are the same
        number (NA and empty cells are NULL); else it is text in which only an empty cell is NULL.
        Excel: see `croma_sql.importers.excel.read_sheet`.

    Raises
    ------
    SourceError
        Not there, of a kind this does not read, cut short, or with a column name twice.
    """
    if not is_path(source):
        return _attributes(as_table(source))
    path = place(source)
    suffix = path.suffix.lower()
    choose = text if callable(text) else frozenset(text).intersection
    try:
        if suffix in PARQUET:
            with path.open("rb") as file, pq.ParquetFile(file) as parquet:
                schema = parquet.schema_arrow
                return parquet.read([field.name for field in schema if not is_vector(field.type)])
        if suffix in ARROW:
            with path.open("rb") as file:
                return _attributes(pa.feather.read_table(file))
        if suffix in TEXT:
            return typed(_read_text(path), choose)
        if suffix in EXCEL:
            return read_sheet(path, choose)
    except (OSError, pa.ArrowException, pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    if suffix in OTHER_SHEETS:
        raise SourceError(f"{path}: sheets are read from .xlsx files; save it as .xlsx or CSV")
    raise SourceError(
        f"{path}: samples are read from .csv, .tsv, .xlsx, .parquet, .arrow or .feather files; "
        f"{path.suffix or 'a file without suffix'} is none of them"
    )


def is_path(source: Any) -> bool:
    """Tell a path or URL from a frame."""
    return isinstance(source, str | Path) or hasattr(source, "joinpath")


def name_of(source: Any) -> str:
    """Say what to call a source in messages."""
    return str(source) if is_path(source) else "the frame"


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
    if isinstance(error, UnicodeDecodeError) or "invalid utf-8" in str(error):
        return SourceError(f"{path} is not UTF-8 ({_first_line(error)}); save it as 'CSV UTF-8'")
    if isinstance(error, OSError) and error.strerror and not is_local(path):
        return SourceError(f"{path} cannot be read: {error.strerror}")
    if path.suffix.lower() in PARQUET:
        return SourceError(
            f"{path} is not a readable Parquet file; it may be cut short or of another format "
            f"({_first_line(error)}). Write or copy it again"
        )
    return SourceError(f"{path} cannot be read: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _read_text(path: Path) -> pl.DataFrame:
    layout = read_layout(path)
    cells = pl.read_csv(
        path if is_local(path) else path.read_bytes(),
        separator=layout.separator,
        skip_lines=layout.skipped,
        new_columns=list(layout.names),  # it leaves quotes doubled in them
        infer_schema=False,
        glob=False,
    )
    return cells.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines


def typed(cells: pl.DataFrame, choose_text: ChooseText) -> pa.Table:
    """Make columns of text numeric where that loses nothing of what was written."""
    others = cells.drop(*choose_text(cells.columns))
    numeric = {column.name: _number_type(column) for column in others}
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
    return table.select([i for i, field in enumerate(table.schema) if not is_vector(field.type)])


def is_vector(arrow_type: pa.DataType) -> bool:
    """Tell a column of lists of numbers."""
    is_list = (
        pa.types.is_fixed_size_list(arrow_type)
        or pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
    )
    return bool(is_list) and bool(
        pa.types.is_floating(arrow_type.value_type) or pa.types.is_integer(arrow_type.value_type)
    )
