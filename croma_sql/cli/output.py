"""Tables and files."""

import json
import math
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from croma_sql.exports.tables import Kind, replacing, write_rows

SHOWN_ROWS = 60
UNBOUNDED = 100_000
ROOM_TO_FOLD = 12  # columns of a text that is folded at the least
SMALL = 0.00005  # would be 0.0000
SLICE = 50_000  # rows encoded at a time


_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]")  # what could steer the terminal


class Format(StrEnum):
    """Forms in which a query's rows leave."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    arrow = "arrow"


KINDS: dict[Format, Kind] = {
    Format.csv: "csv",
    Format.parquet: "parquet",
    Format.arrow: "arrow",
}


def console() -> Console:
    """Stdout; without bound where it is a pipe or a file, so that nothing is cut."""
    return Console(width=None if sys.stdout.isatty() else UNBOUNDED, highlight=False)


def print_table(frame: pl.DataFrame, title: str | None = None) -> None:
    """Print a frame as a table; a long one is cut, and says so.

    Numbers are never cut. Where the columns do not fit side by side, rows are printed one below
    the other.
    """
    out = console()
    cells = [[_cell(value) for value in row] for row in frame.head(SHOWN_ROWS).iter_rows()]
    numeric = [dtype.is_numeric() for dtype in frame.dtypes]
    if _least_width(frame.columns, numeric, cells) <= out.width:
        out.print(_side_by_side(frame.columns, numeric, cells, title))
    else:
        out.print(Text("\n").join(_one_below_the_other(frame.columns, cells, title)))
    if len(frame) > SHOWN_ROWS:
        out.print(f"{SHOWN_ROWS} of {len(frame)} rows; --format csv gives all")


def intervals_beside(frame: pl.DataFrame) -> pl.DataFrame:
    """Write ``x``, ``x_lo`` and ``x_hi`` into one column of a table: ``0.13 (0.11 to 0.14)``."""
    for name in [name for name in frame.columns if f"{name}_lo" in frame.columns]:
        ends = [f"{name}_lo", f"{name}_hi"]
        written = [
            _cell(value) if lo is None else f"{_cell(value)} ({_cell(lo)} to {_cell(hi)})"
            for value, lo, hi in frame.select(name, *ends).iter_rows()
        ]
        frame = frame.with_columns(pl.Series(name, written)).drop(ends)
    return frame


def _least_width(names: list[str], numeric: list[bool], cells: list[list[str]]) -> int:
    """Width in which no number is cut and every text has some room to fold."""
    columns = zip(names, *cells, strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    return sum(
        3 + (width if is_number else min(width, ROOM_TO_FOLD))
        for width, is_number in zip(widths, numeric, strict=True)
    )


def _side_by_side(
    names: list[str], numeric: list[bool], cells: list[list[str]], title: str | None
) -> Table:
    heading = None if title is None else Text(title)
    table = Table(title=heading, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for name, is_number in zip(names, numeric, strict=True):
        if is_number:
            table.add_column(Text(name), justify="right", no_wrap=True)
        else:
            table.add_column(Text(name), overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def _one_below_the_other(
    names: list[str], cells: list[list[str]], title: str | None
) -> Iterator[Text]:
    if title:
        yield Text(title, style="bold")
    widest = max(map(cell_len, names))
    for number, row in enumerate(cells, start=1):
        yield Text(f"- row {number}")
        for name, cell in zip(names, row, strict=True):
            yield Text(f"{' ' * (widest - cell_len(name))}{name}  {cell}")


def write(frame: pl.DataFrame, form: Format, output: Path | None) -> None:
    """Write rows to a file, or to stdout where none is named.

    A file appears whole or not at all; a device or pipe is written into.

    Raises
    ------
    CromaSqlError
        Lists as CSV, or a file that cannot be written.
    """
    if form is Format.table:
        print_table(frame)
    elif output is None:
        _encode(frame, form, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        with replacing(output) as file:
            _encode(frame, form, file)


def _encode(frame: pl.DataFrame, form: Format, file: BinaryIO) -> None:
    if form is Format.json:
        rows = _jsonable(frame.to_dicts())
        file.write(json.dumps(rows, indent=1, default=str, ensure_ascii=False).encode() + b"\n")
    else:
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        write_rows(table.schema, table.to_batches(SLICE), KINDS[form], file)


def _jsonable(value: Any) -> Any:
    """JSON has neither NaN nor decimals; large whole numbers stay exact."""
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    if isinstance(value, dict):
        return {name: _jsonable(item) for name, item in value.items()}
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        if 0 < abs(value) < SMALL:  # as a p value is
            return f"{value:.0e}"
        return f"{value:.4f}" if abs(value) < 1e6 else f"{value:.6g}"
    return _CONTROL.sub("\ufffd", str(value))
