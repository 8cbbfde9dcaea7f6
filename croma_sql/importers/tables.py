"""Samples and their attributes from CSV, TSV, Excel, Parquet, Arrow files and any frame."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from croma_sql.errors import SourceError, listed
from croma_sql.importers.arrow_files import read_arrow
from croma_sql.importers.delimited import read_layout
from croma_sql.importers.excel import EXCEL, OTHER_SHEETS, ChooseText, read_sheet
from croma_sql.importers.missing import (
    DEFAULT,
    Found,
    Missing,
    is_text,
    table_without_missing,
    without_missing,
)
from croma_sql.importers.numbers import number_type, with_odd_cells
from croma_sql.places import is_local, place

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
TEXT = (".csv", ".tsv", ".txt")


@dataclass(frozen=True, slots=True)
class Cells:
    """What a table holds.

    table : its columns, but for those of vectors
    found : cells that were read as missing, or might be meant so
    """

    table: pa.Table
    found: Sequence[Found]


def read_table(source: Any, text: Sequence[str] | ChooseText = ()) -> pa.Table:
    """Read a file or a frame whole, except columns of vectors; see `read_cells`."""
    return read_cells(source, text).table


def read_cells(
    source: Any,
    text: Sequence[str] | ChooseText = (),
    missing: Missing = DEFAULT,
    attributes: Collection[str] = (),
) -> Cells:
    """Read a file or a frame whole, except columns of vectors, and the missing values in it.

    Parameters
    ----------
    source : path or URL of .csv, .tsv, .xlsx, .parquet, .arrow or .feather, or any frame that
        speaks Arrow (Polars, pandas, pyarrow, a DuckDB relation)
    text : names of columns to keep as text whatever they hold, ids; or what chooses them among the
        names of all columns
    missing : which cells are missing values, in columns of text and of numbers alike
    attributes : those of ``text`` that are no ids, in which cells may be missing

    Returns
    -------
    Cells
        Text files, separated by commas, semicolons or tabs: a column is numeric where every cell is
        a number as one writes it, without leading zeros, and no two different cells are the same
        number; else it is text. Missing cells are NULL, but in columns of ids, in which only an
        empty cell is. Excel: see `croma_sql.importers.excel.read_sheet`.

    Raises
    ------
    SourceError
        Not there, of a kind this does not read, cut short, with a column name twice, or without a
        column that is to be kept as text.
    """
    chosen = text if callable(text) else frozenset(text).intersection

    def choose(columns: Sequence[str]) -> set[str]:
        return {*chosen(columns), *frozenset(missing.text).intersection(columns)}

    def written(columns: Sequence[str]) -> set[str]:
        return {name for name in choose(columns) if name not in attributes} | {*missing.text}

    if not is_path(source):
        return _without_missing(_attributes(as_table(source)), written, missing)
    path = place(source)
    suffix = path.suffix.lower()
    try:
        if suffix in PARQUET:
            with path.open("rb") as file, pq.ParquetFile(file) as parquet:
                schema = parquet.schema_arrow
                names = [field.name for field in schema if not is_vector(field.type)]
                return _without_missing(parquet.read(names), written, missing)
        if suffix in ARROW:
            table = _attributes(read_arrow(path))
            return _without_missing(table, written, missing)
        if suffix in TEXT:
            rows = _read_text(path)
            names = rows.columns
            return typed(rows, choose(names), written(names), missing)
        if suffix in EXCEL:
            return Cells(*read_sheet(path, choose, written, missing))
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


def typed(
    cells: pl.DataFrame,
    text: Collection[str],
    written: Collection[str],
    missing: Missing,
) -> Cells:
    """Make columns of text numeric where that loses nothing of what was written.

    Parameters
    ----------
    cells : columns of text
    text : names of columns that stay text
    written : those in which no cell is missing but an empty one
    missing : which cells are missing values in the others
    """
    columns: list[pl.Series] = []
    found: list[Found] = []
    for column in cells:
        of_column: Sequence[Found] = ()
        if column.name not in written:
            column, some = without_missing(column, missing.cells)
            of_column = [one for one in some if one.cell]  # an empty cell is what it looks like
        dtype = None if column.name in text else number_type(column.drop_nulls().unique())
        columns.append(column if dtype is None else column.cast(dtype))
        found += of_column if dtype or column.name in text else with_odd_cells(column, of_column)
    return Cells(cells.with_columns(columns).to_arrow(), found)


def with_numbers(cells: pl.DataFrame, text: Collection[str], missing: Missing) -> pa.Table:
    """Make columns of text numeric as `typed` does; others stay as they are written."""
    text = {*text, *missing.text}
    table = typed(cells, text, text, missing).table
    for at, field in enumerate(table.schema):
        if is_text(field.type):
            table = table.set_column(at, field.name, cells[field.name].to_arrow())
    return table


def _without_missing(
    table: pa.Table, written: Callable[[Sequence[str]], Collection[str]], missing: Missing
) -> Cells:
    return Cells(*table_without_missing(table, missing, written(table.column_names)))


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
