"""Parquet files of a warehouse: with checksums, and with what made them in their metadata."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from croma_sql.importers.tables import unreadable
from croma_sql.warehouse.publish import publishing

METADATA_KEY = b"croma_sql"
WRITING = {"compression": "zstd", "write_page_checksum": True}


def write_table(path: Path, table: pa.Table, about: dict[str, Any]) -> None:
    """Publish a table as Parquet, with ``about`` in the metadata of the file."""
    with publishing(path) as file:
        pq.write_table(table.replace_schema_metadata(metadata(about)), file, **WRITING)


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
    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read columns of a file whole, verifying checksums; errors as `read_footer`."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read(columns)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def read_batches(path: Path, rows: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Read columns of a file in batches, verifying checksums; errors as `read_footer`.

    Unbuffered, which is the leanest way: no column is read ahead as a whole.
    """
    try:
        with pq.ParquetFile(
            path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True
        ) as file:
            yield from file.iter_batches(rows, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
