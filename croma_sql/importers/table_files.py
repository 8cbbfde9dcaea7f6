"""Parquet, Arrow, CSV and TSV files: what columns they have, and their rows in batches."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

from croma_sql.errors import SourceError
from croma_sql.importers.delimited import Delimited, read_layout
from croma_sql.importers.tables import ARROW, PARQUET, typed, unreadable
from croma_sql.places import is_local

DELIMITED = (".csv", ".tsv")
BATCH_ROWS = 4096

_BLOCK = 8 << 20  # bytes of text, which must hold a row
_SPOILT = re.compile(r"In CSV column #(\d+): .*invalid value '(.*)'", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of rows.

    schema : its columns; in text, float64 where the first row has a number, else text
    count : of its rows
    batches : the rows start to stop of some columns, as they are in the schema
    attributes : the same as one table, in text typed as `croma_sql.importers.tables.read_table`
        does, but for the columns that are to stay text
    """

    schema: pa.Schema
    count: Callable[[], int]
    batches: Callable[[Sequence[str], int, int], Iterator[pa.RecordBatch]]
    attributes: Callable[[Sequence[str], int, int, Collection[str]], pa.Table]


def open_table(path: Path) -> TableFile:
    """Look into a file of rows, of the kind that its suffix says.

    Raises
    ------
    SourceError
        Not there, cut short, or of another format. So does reading its rows.
    """
    suffix = path.suffix.lower()
    with _errors_told(path):
        if suffix in PARQUET:
            return _parquet(path)
        return _arrow(path) if suffix in ARROW else _delimited(path)


def read_all(table: TableFile, columns: Sequence[str], start: int, stop: int) -> pa.Table:
    """Read rows start to stop of some columns, as they are in the schema."""
    return _table(table.batches, table.schema, columns, start, stop)


def _parquet(path: Path) -> TableFile:
    with _opened(path) as source, pq.ParquetFile(source) as file:
        n, schema = int(file.metadata.num_rows), file.schema_arrow
    batches = partial(_rows_of_parquet, path)
    return TableFile(schema, lambda: n, batches, partial(_table, batches, schema))


def _table(
    batches: Callable[[Sequence[str], int, int], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    columns: Sequence[str],
    start: int,
    stop: int,
    text: Collection[str] = (),
) -> pa.Table:
    fields = [schema.field(column) for column in columns]
    return pa.Table.from_batches(batches(columns, start, stop), pa.schema(fields))


def _rows_of_parquet(
    path: Path, columns: Sequence[str], start: int, stop: int
) -> Iterator[pa.RecordBatch]:
    ahead = max((1 << 20) // len(columns), 1 << 12)  # bytes; none is read ahead as a whole
    with (
        _errors_told(path),
        _opened(path) as source,
        pq.ParquetFile(source, pre_buffer=False, buffer_size=ahead) as file,
    ):
        rows = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        ends = list(accumulate(rows, initial=0))
        groups = [i for i in range(len(rows)) if ends[i] < stop and ends[i + 1] > start]
        if groups:
            batches = file.iter_batches(BATCH_ROWS, row_groups=groups, columns=list(columns))
            yield from _between(batches, start - ends[groups[0]], stop - ends[groups[0]])


def _arrow(path: Path) -> TableFile:
    def table(columns: Sequence[str] | None = None) -> pa.Table:
        with _errors_told(path), _opened(path) as source:
            found = pa.feather.read_table(source, columns, memory_map=is_local(path))
            found.validate()
            return found

    def batches(columns: Sequence[str], start: int, stop: int) -> Iterator[pa.RecordBatch]:
        yield from table(columns).slice(start, stop - start).to_batches(BATCH_ROWS)

    whole = table()
    n, schema = len(whole), whole.schema
    return TableFile(schema, lambda: n, batches, partial(_table, batches, schema))


def _delimited(path: Path) -> TableFile:
    layout = read_layout(path)
    if not layout.names:
        raise SourceError(f"{path} is empty")
    firsts = zip_longest(layout.names, layout.first[: len(layout.names)], fillvalue="")
    schema = pa.schema(
        {name: pa.float64() if _is_number(cell) else pa.string() for name, cell in firsts}
    )

    def parsed(types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        with _errors_told(path, layout.names), _opened(path) as source:
            yield from _parsed(source, layout, types)

    def batches(columns: Sequence[str], start: int, stop: int) -> Iterator[pa.RecordBatch]:
        return _between(parsed({name: schema.field(name).type for name in columns}), start, stop)

    def attributes(
        columns: Sequence[str], start: int, stop: int, text: Collection[str] = ()
    ) -> pa.Table:
        kinds = dict.fromkeys(columns, pa.string())
        cells = pl.DataFrame(pa.Table.from_batches(parsed(kinds), pa.schema(kinds)))
        return typed(cells, lambda _: text).slice(start, stop - start)

    def count() -> int:
        return sum(map(len, parsed({layout.names[0]: pa.string()})))

    return TableFile(schema, count, batches, attributes)


def _parsed(
    source: Any, layout: Delimited, types: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    with pa.csv.open_csv(
        source,
        pa.csv.ReadOptions(block_size=_BLOCK, skip_rows=layout.skipped, use_threads=False),
        pa.csv.ParseOptions(delimiter=layout.separator, newlines_in_values=True),
        pa.csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            strings_can_be_null=True,
            null_values=["", "NA"] if pa.float64() in types.values() else [""],
        ),
    ) as batches:
        yield from batches


def _between(batches: Iterable[pa.RecordBatch], start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Cut rows start to stop out of batches."""
    first = 0
    for batch in batches:
        rows = batch[max(start - first, 0) : max(stop - first, 0)]
        if len(rows):
            yield rows
        first += len(batch)
        if first >= stop:
            return


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return cell == "NA"
    return True


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Give what Arrow reads fastest: a path of this machine, or else an open file."""
    if is_local(path):
        yield path
        return
    with path.open("rb") as file:
        yield file


@contextmanager
def _errors_told(path: Path, names: Sequence[str] = ()) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        spoilt = _SPOILT.match(str(error))
        if spoilt and names:
            raise SourceError(
                f"{path}: column {names[int(spoilt[1])]!r} holds {spoilt[2]!r}, which is no number"
            ) from error
        raise unreadable(path, error) from error
