"""Write beside, sync, rename: a reader sees the old file or the new one, never half of one.

A writer that is killed leaves its unfinished file behind under a hidden name. The next writer in
that folder removes it: the operating system drops a dead writer's lock, so what can be locked has
been abandoned.
"""

import contextlib
import json
import os
import secrets
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
        with _unfinished(path.parent) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
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


@contextmanager
def _unfinished(folder: Path) -> Iterator[BinaryIO]:
    """Open a hidden file under a lock; it is gone again unless it was renamed."""
    while True:
        path = folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
        with path.open("xb") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file.fileno()).st_nlink == 0:
                    continue  # another writer took it for abandoned before the lock was held
            try:
                yield file
            finally:
                path.unlink(missing_ok=True)
            return


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _sync_folder(folder: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
