"""Write beside, sync, rename.

A writer that is killed leaves its unfinished file behind under a hidden name. The next writer in
that folder removes it: the operating system drops a dead writer's lock, so what can be locked has
been abandoned.
"""

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from croma_sql.errors import WarehouseError

_UNFINISHED = ".unfinished-"


@contextmanager
def written(
    path: Path, committing: Callable[[], AbstractContextManager[None]]
) -> Iterator[BinaryIO]:
    """Write a file that is renamed to ``path`` in the end; see `croma_sql.warehouse.publish`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path.parent)
    with _unfinished(path.parent) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        with committing():
            Path(file.name).replace(path)
    _sync_folder(path.parent)


@contextmanager
def held(marker: Path) -> Iterator[None]:
    """Hold the lock of a file that is always there."""
    while True:
        with marker.open("r+b") as file:
            _lock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_ino != marker.stat().st_ino:
                continue  # two writers made the warehouse at once, and this is the other's marker
            yield
            return


@contextmanager
def _unfinished(folder: Path) -> Iterator[BinaryIO]:
    """Open a hidden file under a lock; it is gone again unless it was renamed."""
    while True:
        path = folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
        with path.open("xb") as file:
            _lock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink == 0:
                continue  # another writer took it for abandoned before the lock was held
            try:
                yield file
            finally:
                path.unlink(missing_ok=True)
            return


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob(f"{_UNFINISHED}*"):
        if not path.is_file():
            continue
        with contextlib.suppress(OSError), path.open("r+b") as file:
            _lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _lock(file: BinaryIO, how: int) -> None:
    """Lock a file, where its file system knows locks. NFS wants it open for writing."""
    try:
        fcntl.flock(file, how)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
            raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        raise WarehouseError(
            f"a file was written into {folder}, but may not survive a power cut: {error}"
        ) from error
    finally:
        os.close(handle)
