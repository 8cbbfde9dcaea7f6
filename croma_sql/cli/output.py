"""Tables, files and progress."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import polars as pl
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from croma_sql.errors import CromaSqlError
from croma_sql.warehouse.publish import publishing

SHOWN_ROWS = 60
PATIENCE = 1.0  # seconds before a progress bar appears
WIDE = 240  # columns where output is no terminal: nothing is cut


class Format(StrEnum):
    """Forms in which a query's rows leave."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def console() -> Console:
    """Stdout; wide where it is a pipe or a file, so that nothing is cut."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def print_table(frame: pl.DataFrame, title: str | None = None) -> None:
    """Print a frame as a table; long ones are cut, and say so."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for name, dtype in frame.schema.items():
        table.add_column(name, justify="right" if dtype.is_numeric() else "left")
    for row in frame.head(SHOWN_ROWS).iter_rows():
        table.add_row(*(_cell(value) for value in row))
    out = console()
    out.print(table)
    if len(frame) > SHOWN_ROWS:
        out.print(f"{SHOWN_ROWS} of {len(frame)} rows; --format csv gives all")


def write(frame: pl.DataFrame, form: Format, output: Path | None) -> None:
    """Write rows to a file, or to stdout where none is named.

    Raises
    ------
    CromaSqlError
        Parquet or a table asked for where they cannot go, or lists as CSV.
    """
    if form is Format.table:
        if output is not None:
            raise CromaSqlError(f"a table cannot go to {output}; add --format csv, json or parquet")
        print_table(frame)
        return
    if form is Format.parquet and output is None:
        raise CromaSqlError("Parquet cannot go to the terminal; name a file with --output")
    if output is None:
        _encode(frame, form, sys.stdout.buffer)
    else:
        with publishing(output) as file:
            _encode(frame, form, file)


@contextmanager
def progress() -> Iterator[Callable[[str, float], None]]:
    """Yield ``report(what, share)``; a bar appears on a terminal once a second has passed."""
    started = time.monotonic()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    tasks: dict[str, Any] = {}

    def report(what: str, share: float) -> None:
        if not bar.console.is_terminal or time.monotonic() - started < PATIENCE:
            return
        if what not in tasks:
            bar.start()
            for task in tasks.values():
                bar.update(task, visible=False)
            tasks[what] = bar.add_task(what, total=1.0)
        bar.update(tasks[what], completed=share)

    try:
        yield report
    finally:
        if tasks:  # stopping a bar that never showed would print an empty line
            bar.stop()


def _encode(frame: pl.DataFrame, form: Format, file: Any) -> None:
    if form is Format.parquet:
        frame.write_parquet(file)
    elif form is Format.json:
        rows = [
            {name: _jsonable(value) for name, value in row.items()}
            for row in frame.iter_rows(named=True)
        ]
        file.write(json.dumps(rows, indent=1, default=str, ensure_ascii=False).encode() + b"\n")
    else:
        nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
        if nested:
            raise CromaSqlError(
                f"CSV has no lists, which column {nested[0]!r} holds; use --format json or "
                "parquet, or unnest it in the query"
            )
        frame.write_csv(file)


def _jsonable(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 1e6 else f"{value:.6g}"
    return str(value).replace("[", r"\[")
