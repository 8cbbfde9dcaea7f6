"""Samples and their attributes from CSV, TSV, Parquet, Arrow files and any frame."""

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from croma_sql.errors import SourceError

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
TEXT = {".csv": ",", ".tsv": "\t", ".txt": "\t"}

# Numbers as a spreadsheet writes them. "007" is no number but an id, and stays text.
_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_MISSING = ("", "NA", "NaN", "nan")


def read_table(source: Any) -> pa.Table:
    """Read a file or a frame whole, except columns of vectors.

    Parameters
    ----------
    source : path to .csv, .tsv, .parquet, .arrow or .feather, or any frame that speaks Arrow
        (Polars, pandas, pyarrow, a DuckDB relation)

    Returns
    -------
    pyarrow.Table
        Text files: a column is numeric where every cell is written as a number without leading
        zeros (NA and empty cells are NULL), else text in which only an empty cell is NULL.

    Raises
    ------
    SourceError
        Not there, of a kind this does not read, or cut short.
    """
    if not isinstance(source, str | Path):
        return _attributes(as_table(source))
    path = Path(source)
    try:
        if path.suffix.lower() in PARQUET:
            schema = pq.read_schema(path)
            kept = [field.name for field in schema if not _is_vector(field.type)]
            return pq.read_table(path, columns=kept, partitioning=None)
        if path.suffix.lower() in ARROW:
            return _attributes(pa.feather.read_table(path))
        if path.suffix.lower() in TEXT:
            separator = TEXT[path.suffix.lower()]
            return _typed(pl.read_csv(path, separator=separator, infer_schema=False))
    except (OSError, pa.ArrowException, pl.exceptions.PolarsError) as error:
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
    return pa.table(frame)


def unreadable(path: Path, error: Exception) -> SourceError:
    """Say what is wrong with a file in the user's words."""
    if isinstance(error, FileNotFoundError):
        return SourceError(f"{path} does not exist")
    if path.suffix.lower() in PARQUET:
        return SourceError(
            f"{path} is not a readable Parquet file; it may be cut short or of another format "
            f"({_first_line(error)}). Write or copy it again"
        )
    return SourceError(f"{path} cannot be read: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _typed(text: pl.DataFrame) -> pa.Table:
    """Make columns numeric where every cell is written as a number."""
    return text.with_columns(
        cells.replace(dict.fromkeys(_MISSING)).cast(dtype)
        for cells in text
        if (dtype := _number_type(cells)) is not None
    ).to_arrow()


def _number_type(cells: pl.Series) -> type[pl.Int64 | pl.Float64] | None:
    written = cells.filter(cells.is_not_null() & ~cells.is_in(_MISSING))
    if written.is_empty():
        return None
    if written.str.contains(_INTEGER).all():
        return pl.Int64
    return pl.Float64 if written.str.contains(_NUMBER).all() else None


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
