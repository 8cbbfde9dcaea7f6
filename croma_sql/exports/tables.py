"""Rows of a warehouse as Parquet, CSV or Arrow, however many there are."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from croma_sql.errors import CromaSqlError
from croma_sql.interrupt import interruptibly
from croma_sql.places import CHANGED, is_local, place
from croma_sql.session import connect
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.views import told

Kind = Literal["parquet", "csv", "arrow"]
SUFFIXES: dict[str, Kind] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
ROWS_AT_ONCE = 122_880  # of a row group of Parquet, as DuckDB makes them
ONE_SELECT = ([duckdb.StatementType.SELECT], [duckdb.StatementType.MULTI])  # a PIVOT is several


def export_table(warehouse: str | Path, query: str, output: str | Path) -> int:
    """Write the rows of a view or a query to a file, of which few are in memory at a time.

    Parameters
    ----------
    warehouse : path
    query : str
        A view such as ``'margins'`` or ``'margins_at(1)'``, or a SELECT over them.
    output : path to .parquet, .csv or .arrow (.feather)
        It appears whole or not at all; one that is there is replaced. May be a URL.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    CromaSqlError
        A query that fails, is not one SELECT, or has what the format cannot hold; a file of
        another kind, or that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import croma_sql
    >>> folder = Path(tempfile.mkdtemp())
    >>> samples = pl.DataFrame({"sample_id": ["a", "b"], "slide": ["s", "s"]})
    >>> n = croma_sql.import_samples(folder / "W", samples, dataset="d")
    >>> export_table(folder / "W", "samples", folder / "samples.csv")
    2
    >>> (folder / "samples.csv").read_text().splitlines()
    ['sample_id,dataset,slide', 'a,d,s', 'b,d,s']
    """
    output = place(output)
    kind = SUFFIXES.get(output.suffix.lower())
    if kind is None:
        raise CromaSqlError(
            f"{output} is not named .parquet, .csv or .arrow, which says what to write"
        )
    with connect(warehouse) as con:
        con.execute("SET python_enable_replacements = false")  # a name means a table
        relation = asked(con, query)
        return interruptibly(con, lambda: write_relation(relation, kind, output))


def write_relation(relation: duckdb.DuckDBPyRelation, kind: Kind, output: Path) -> int:
    """Run a query and write its rows as they come; see `export_table`."""
    schema, batches = rows_of(relation, ROWS_AT_ONCE)
    with replacing(output) as file:
        return write_rows(schema, batches, kind, file)


def frame_of(con: duckdb.DuckDBPyConnection, relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """Run a query and hold all its rows.

    Raises
    ------
    CromaSqlError
        It fails, or has a column that Polars has no type for.
    """
    try:
        return interruptibly(con, lambda: pl.DataFrame(relation.pl()))
    except duckdb.Error as error:
        raise failed(error) from error
    except pl.exceptions.PolarsError as error:
        raise CromaSqlError(
            f"a column cannot be read ({error}); cast it to VARCHAR in the query"
        ) from error


def rows_of(
    relation: duckdb.DuckDBPyRelation, at_once: int
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Run a query, and give its rows as they come.

    Raises
    ------
    CromaSqlError
        It fails, at once or on the way.
    """
    try:
        reader = relation.to_arrow_reader(at_once)
    except duckdb.Error as error:
        raise failed(error) from error
    return reader.schema, _batches(reader)


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except OSError as error:  # as which Arrow passes on what DuckDB says
        raise failed(error) from error


def write_rows(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], kind: Kind, file: BinaryIO
) -> int:
    """Write rows as they come, and count them."""
    try:
        return _WRITERS[kind](schema, batches, file)
    except (pa.ArrowException, pl.exceptions.PolarsError) as error:
        raise CromaSqlError(
            f"a column cannot be written as {kind} ({error}); cast or rename it in the query"
        ) from error


@contextmanager
def replacing(output: Path) -> Iterator[BinaryIO]:
    """Open a file that appears whole or not at all; a device or pipe is written into.

    Raises
    ------
    CromaSqlError
        It cannot be written.
    """
    output = place(output)
    try:
        if not is_local(output):
            with publishing(output) as file:
                yield file
        elif output.exists() and not output.is_file():
            with output.open("wb") as file:
                yield file
        else:
            with publishing(output.resolve()) as file:
                yield file
    except (OSError, RuntimeError) as error:
        raise CromaSqlError(f"cannot write {output}: {error}") from error


def failed(error: Exception) -> CromaSqlError:
    """Say that a query fails, in DuckDB's words, or that what it reads has changed."""
    text = told(error)
    return CromaSqlError(text if text.endswith(CHANGED) else f"the query fails: {text}")


def asked(con: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyRelation:
    """Prepare a view, by its name, or one SELECT.

    Raises
    ------
    CromaSqlError
        It is neither, or fails.
    """
    try:
        statements = _parsed(query)
        if [one.type for one in statements] not in ONE_SELECT:
            raise CromaSqlError(f"{query!r} is not one SELECT, nor the name of a view")
        relation = con.sql(statements[0].query)
    except duckdb.Error as error:
        raise failed(error) from error
    return relation


def _parsed(query: str) -> list[duckdb.Statement]:
    try:
        return duckdb.extract_statements(query)
    except duckdb.ParserException as error:
        try:
            return duckdb.extract_statements(f"FROM {query}")
        except duckdb.ParserException:
            raise error from None  # which speaks of what was asked


def _write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: BinaryIO) -> int:
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        return _each(batches, writer.write_batch)


def _write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: BinaryIO) -> int:
    with pa.ipc.new_file(file, schema) as writer:
        return _each(batches, writer.write_batch)


def _write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: BinaryIO) -> int:
    for column in schema:
        if pa.types.is_nested(column.type):
            raise CromaSqlError(
                f"CSV has no lists, which column {column.name!r} holds; write Parquet or Arrow, "
                "or JSON (croma-sql sql … --format json), or unnest it in the query"
            )
        if pa.types.is_interval(column.type):
            raise CromaSqlError(
                f"CSV has no intervals, which column {column.name!r} holds; cast it to VARCHAR in "
                "the query"
            )

    def write(rows: pa.Table | pa.RecordBatch, *, include_header: bool = False) -> None:
        frame = pl.DataFrame(pl.from_arrow(rows))
        file.write(frame.write_csv(include_header=include_header).encode())

    write(schema.empty_table(), include_header=True)
    return _each(batches, write)


def _each(batches: Iterable[pa.RecordBatch], write: Callable[[pa.RecordBatch], Any]) -> int:
    n = 0
    for batch in batches:
        write(batch)
        n += len(batch)
    return n


_WRITERS: dict[Kind, Callable[[pa.Schema, Iterable[pa.RecordBatch], BinaryIO], int]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "arrow": _write_arrow,
}
