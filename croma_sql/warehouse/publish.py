"""A reader sees the old file or the new one, never half of one.

On a disk a file is written beside its place, synced, and renamed (`renaming`). On object storage
there is no rename, and none is needed: an object is not there before its upload completes, and
completing it, which is one request, puts it in the place of the old one (`uploading`).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from croma_sql.errors import WarehouseError
from croma_sql.places import is_local
from croma_sql.warehouse import renaming, uploading

MARKER = "warehouse.json"
LOCK = ".lock"


@contextmanager
def publishing(
    path: Path, committing: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` when the block ends without an exception.

    ``committing`` is entered when all is on the disk, and left when the file is in its place.

    Raises
    ------
    WarehouseError
        The folder cannot be written, the disk is full, or the storage does not answer.
    """
    how = renaming if is_local(path) else uploading
    try:
        with how.written(path, committing) as file:
            yield file
    except OSError as error:
        reason = error.strerror or error
        raise WarehouseError(f"cannot write {path}: {reason}. It is as it was") from error


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the warehouse while what was checked is written, so that no other writer comes between.

    Only for as long as renaming takes; vectors are streamed beside their place without it.

    Raises
    ------
    WarehouseError
        On object storage: another writer holds it, or was killed while it did.
    """
    held = renaming.held(root / MARKER) if is_local(root) else uploading.held(root / LOCK)
    with held:
        yield
