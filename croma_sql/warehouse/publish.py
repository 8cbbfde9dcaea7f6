"""Write beside, sync, rename: a reader sees the old file or the new one, never half of one.

A writer that is killed leaves its unfinished file behind under a hidden name. The next writer in
that folder removes it: the operating system drops a dead writer's lock, so what can be locked has
been abandoned.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from croma_sql.errors import WarehouseError

try:
    import fcntl
except ImportError:  # Windows, where a file in use cannot be removed anyway
    fcntl = None  # type: ignore[assignment]

MARKER = "warehouse.json"
_UNFINISHED = ".unfinished-"


@contextmanager
def publishing(
    path: Path, committing: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` when the block ends without an exception.

    ``committing`` is entered when all is on the disk, and left when the file is in its place.

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
            with committing():
                Path(file.name).replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        reason = error.strerror or error
        raise WarehouseError(f"cannot write {path}: {reason}. Nothing was changed") from error


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the warehouse while what was checked is written, so that no other writer comes between.

    Only for as long as renaming takes; vectors are streamed beside their place without it.
    """
    with (root / MARKER).open("rb") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
        if not path.is_file():
            continue
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
