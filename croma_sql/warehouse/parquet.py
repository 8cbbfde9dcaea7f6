"""Parquet files of a warehouse: with checksums, and with what made them in their metadata."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from croma_sql.importers.tables import unreadable
from croma_sql.places import STREAM, Version, is_local, opened, version_of
from croma_sql.warehouse.publish import publishing

METADATA_KEY = b"croma_sql"
WRITING = {"compression": "zstd", "write_page_checksum": True}
ROW_GROUP = 1 << 17  # rows
DISTINCT = ("sample_id", "x", "y")  # of samples: hardly any two values are the same
A_FOOTER = 1 << 16  # bytes read ahead on object storage, where there is no need for more


def write_table(path: Path, table: pa.Table, about: dict[str, Any]) -> None:
    """Publish a table as Parquet, with ``about`` in the metadata of the file."""
    with publishing(path) as file:
        pq.write_table(table.replace_schema_metadata(metadata(about)), file, **WRITING)


def write_batches(path: Path, rows: pa.RecordBatchReader, about: dict[str, Any]) -> None:
    """Publish rows as they come, in row groups that do not depend on how they come."""
    schema = rows.schema.with_metadata(metadata(about))
    repeated = [name for name in schema.names if name not in DISTINCT]
    with (
        publishing(path) as file,
        pq.ParquetWriter(file, schema, use_dictionary=repeated, **WRITING) as writer,
    ):
        waiting, n = [], 0
        for batch in rows:
            waiting.append(batch)
            n += len(batch)
            while n >= ROW_GROUP:
                table = pa.Table.from_batches(waiting, rows.schema)
                writer.write_table(table.slice(0, ROW_GROUP))
                waiting, n = table.slice(ROW_GROUP).to_batches(), n - ROW_GROUP
        if n:
            writer.write_table(pa.Table.from_batches(waiting, rows.schema))


def metadata(about: dict[str, Any]) -> dict[bytes, bytes]:
    """Parquet metadata that says what made a file. Nothing in it varies from run to run."""
    return {METADATA_KEY: json.dumps(about, sort_keys=True).encode()}


def read_metadata(path: Path) -> dict[str, Any]:
    """Read what `metadata` put into a file; empty where another tool wrote it."""
    try:
        about = json.loads((read_footer(path).metadata or {})[METADATA_KEY])
    except (KeyError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def read_footer(path: Path) -> pq.FileMetaData:
    """Read schema, counts and metadata of a file.

    Raises
    ------
    SourceError
        Not a Parquet file, or cut short.
    """
    if is_local(path):
        return _footer(path)
    try:
        return _known_footer(path, version_of(path))
    except OSError as error:
        raise unreadable(path, error) from error


@lru_cache(maxsize=1024)
def _known_footer(path: Path, version: Version) -> pq.FileMetaData:
    return _footer(path)


def _footer(path: Path) -> pq.FileMetaData:
    with _opened(path, A_FOOTER) as file:
        return file.metadata


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read columns of a file whole, verifying checksums; errors as `read_footer`."""
    with _opened(path, A_FOOTER, pre_buffer=not is_local(path)) as file:
        return file.read(columns)


def read_batches(path: Path, rows: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Read columns of a file in batches, verifying checksums; errors as `read_footer`.

    Unbuffered, which is the leanest way: no column is read ahead as a whole.
    """
    with _opened(path, STREAM, pre_buffer=False, buffer_size=1 << 20) as file:
        yield from file.iter_batches(rows, columns=columns)


def read_rows(path: Path, start: int, n: int, columns: list[str]) -> pa.Table:
    """Read some rows of a file, and little more of it; errors as `read_footer`."""
    with _opened(path, STREAM, pre_buffer=False, buffer_size=1 << 20) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        ends = list(accumulate(sizes))
        groups = [i for i, end in enumerate(ends) if end > start and end - sizes[i] < start + n]
        before = ends[groups[0]] - sizes[groups[0]] if groups else start
        return file.read_row_groups(groups, columns).slice(start - before, n)


@contextmanager
def _opened(path: Path, ahead: int, **how: Any) -> Iterator[pq.ParquetFile]:
    try:
        with ExitStack() as files:
            source = path if is_local(path) else files.enter_context(opened(path, ahead))
            yield files.enter_context(
                pq.ParquetFile(source, page_checksum_verification=True, **how)
            )
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
