"""Upload, in parts that nobody sees; complete.

What fits into 50 MB is uploaded whole, by one request. An exception aborts the upload. A writer
that is killed leaves its parts: they are no object, but are stored and paid for until they are
aborted. Let the bucket do so, by a lifecycle rule AbortIncompleteMultipartUpload of a day or two.

The lock is an object that only one writer at a time can create (If-None-Match: *). A writer that is
killed while it holds it, for the seconds that completing takes, leaves it; others then name it, to
be deleted. Storage without such conditions gives no lock: of two writers at once the last one wins,
and still every file is whole.
"""

import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any

from croma_sql.errors import WarehouseError

PATIENCE = 60.0  # seconds
_PAUSE = 0.2


@contextmanager
def written(path: Any, committing: Callable[[], AbstractContextManager[None]]) -> Iterator[Any]:
    """Write a file that is at ``path`` in the end; see `croma_sql.warehouse.publish`."""
    file = path.open("wb", autocommit=False)
    try:
        yield file
        if getattr(file, "offset", None) is not None:  # some of it is uploaded: now the rest
            file.flush(force=True)
        with committing():
            file.commit()
    except BaseException:
        with contextlib.suppress(OSError):
            file.discard()
        raise
    finally:
        file.forced = True  # closing it uploads nothing more
        file.close()


@contextmanager
def held(lock: Any) -> Iterator[None]:
    """Hold a lock, which is an object that is there for as long."""
    told = f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%F %T} UTC"
    until = time.monotonic() + PATIENCE
    while not _created(lock, told):
        if time.monotonic() > until:
            raise WarehouseError(
                f"{lock.parent} is held by a writer ({_contents(lock)}). Try again when it is "
                f"done; if it is no more, delete {lock}"
            )
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        try:
            lock.fs.rm_file(lock.path)
        except OSError as error:
            reason = error.strerror or error
            raise WarehouseError(f"cannot delete {lock}: {reason}. Delete it") from error


def _created(lock: Any, contents: str) -> bool:
    try:
        lock.fs.pipe_file(lock.path, contents.encode(), mode="create")
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno != errno.ENOSYS:
            reason = error.strerror or error
            raise WarehouseError(f"cannot write {lock}: {reason}. Nothing was changed") from error
    return True


def _contents(lock: Any) -> str:
    try:
        return str(lock.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return "who does not say more"
