"""Write beside, sync, rename: a reader sees the old file or the new one, never half of one.

A writer that is killed leaves its unfinished file behind under a hidden name. The next writer in
that folder removes it: the operating system drops a dead writer's lock, so what can be locked has
been abandoned.
"""

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from croma_sql.errors import WarehouseError

try:
    import fcntl
except ImportError:  # Windows, where a file in use cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

METADATA_KEY = b"croma_sql"
_UNFINISHED = ".unfinished-"
_TIME_TO_LOCK = 60.0  # seconds in which an empty file may belong to a writer about to lock it


@contextmanager
def publishing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` when the block ends without an exception.

    Raises
    ------
    WarehouseError
        The folder cannot be written, or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path.parent)
        temporary = path.parent / f"{_UNFINISHED}{secrets.token_hex(8)}"
        with temporary.open("xb") as file:
            try:
                _lock(file)
                yield file
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        _sync_folder(path.parent)
    except OSError as error:
        reason = error.strerror or error
        raise WarehouseError(f"cannot write {path}: {reason}. Nothing was changed") from error


def write_table(path: Path, table: pa.Table, about: dict[str, Any]) -> None:
    """Publish a table as Parquet, with ``about`` in the metadata of the file."""
    with publishing(path) as file:
        table = table.replace_schema_metadata(metadata(about))
        pq.write_table(table, file, compression="zstd")


def metadata(about: dict[str, Any]) -> dict[bytes, bytes]:
    """Parquet metadata that says what made a file. Nothing in it varies from run to run."""
    return {METADATA_KEY: json.dumps(about, sort_keys=True).encode()}


def read_metadata(path: Path) -> dict[str, Any]:
    """Read what `metadata` put into a file; empty where another tool wrote it."""
    try:
        about = json.loads((pq.read_metadata(path).metadata or {})[METADATA_KEY])
    except (KeyError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def _lock(file: BinaryIO) -> None:
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            if path.stat().st_size or time.time() - path.stat().st_mtime > _TIME_TO_LOCK:
                _lock(file)
                path.unlink()


def _sync_folder(folder: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
