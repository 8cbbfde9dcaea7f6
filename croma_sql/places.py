"""Where a path or URL leads: the local disk, or object storage."""

import re
import tempfile
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, cast

from croma_sql.errors import CromaSqlError

Version = tuple[int | str, ...]
CHANGED = "meanwhile; run it again"  # how an error ends of a file that is not the one it was
STREAM = 1 << 24  # bytes at once, where a file is read from its beginning to its end

_S3 = ("s3", "s3a")
_SPOILT = re.compile(r"(s3a?):/(?=[^/])")  # a URL that pathlib has been given
_KNOWN = "croma_sql_known"  # names of files, on a storage that is frozen


def place(where: str | Path) -> Path:
    """Make a path of a path or URL; those of object storage behave alike.

    Parameters
    ----------
    where : path, or URL such as ``s3://bucket/folder``. Endpoint and keys are those of the
        environment: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_PROFILE and so on.

    Returns
    -------
    pathlib.Path, or for a URL a ``upath.UPath`` with the same methods, whose failures are OSErrors

    Raises
    ------
    CromaSqlError
        A URL that is none, or the library that reads it is not installed.
    """
    if isinstance(where, Path):
        where = _SPOILT.sub(r"\1://", str(where), count=1) if _SPOILT.match(str(where)) else where
    if "://" not in str(where):
        return Path(where)
    protocol, _, rest = str(where).partition("://")
    if protocol in _S3 and not rest.strip("/"):
        raise CromaSqlError(f"{where} names no bucket; expected s3://bucket/folder")
    try:
        from upath import UPath

        path: Any
        if protocol in _S3:
            from croma_sql.object_storage import OPTIONS, object_storage

            path = UPath(where, protocol=protocol, **OPTIONS)
            path._fs_cached = object_storage()  # its children take it over
        else:
            path = UPath(where)
    except ImportError:
        raise CromaSqlError(
            f"{where} lies on object storage, which needs a library: pip install 'croma-sql[s3]'"
        ) from None
    except ValueError as error:
        raise CromaSqlError(f"{where} leads nowhere: {error}") from error
    if protocol in ("file", "local"):
        return Path(path.path)
    return cast(Path, path)


def is_local(path: Path) -> bool:
    """Tell a path of this machine from one of object storage."""
    return isinstance(path, Path)


def opened(path: Path, ahead: int = STREAM) -> BufferedReader:
    """Open a file to read, on object storage so many bytes beyond what is asked for."""
    if is_local(path):
        return path.open("rb")
    storage: Any = path
    return cast(BufferedReader, storage.open("rb", block_size=ahead, cache_type="readahead"))


def version_of(path: Path) -> Version:
    """Give what changes when a file does, without reading it."""
    status: Any = path.stat()
    if is_local(path):
        return status.st_ino, status.st_size, status.st_mtime_ns
    return status.as_info().get("ETag", ""), status.st_size, status.st_mtime_ns


def scratch(root: Path) -> Path:
    """Give a folder of this machine for what is set aside while a place is computed on."""
    return root if is_local(root) else Path(tempfile.gettempdir())


def names_in(folder: Path) -> list[str]:
    """Names of what a folder holds; on object storage not that of the folder, which may be one."""
    if is_local(folder):
        return [path.name for path in folder.iterdir()]
    storage: Any = folder
    names = storage.fs.ls(storage.path.rstrip("/"), detail=False)
    return [name.rpartition("/")[2] for name in names if not name.endswith("/")]


def below(folder: Path) -> list[Path]:
    """Find what lies below a folder, at any depth, in the order of the parts of paths.

    On object storage only files, as it has no folders; a thousand for a request.
    """
    return _in_order(folder.rglob("*") if is_local(folder) else _begins_with(folder, ""))


def matching(folder: Path, pattern: str) -> list[Path]:
    """Find what matches a pattern such as ``samples/*.parquet``; as `below`."""
    if is_local(folder):
        return _in_order(folder.glob(pattern))
    depth = len(folder.parts) + len(PurePosixPath(pattern).parts)
    return _in_order(
        path
        for path in _begins_with(folder, pattern.partition("*")[0])
        if len(path.parts) == depth and PurePosixPath(*path.parts).match(pattern)
    )


def _begins_with(folder: Any, start: str) -> Iterator[Path]:
    root = folder.path.rstrip("/")
    known = getattr(folder.fs, _KNOWN, None)
    if known is not None:
        names = [name for name in known if name.startswith(f"{root}/{start}")]
    else:
        names = folder.fs.find(root, prefix=start) if start else folder.fs.find(root)
    files = (name for name in names if not name.endswith("/"))
    return (folder.joinpath(name.removeprefix(f"{root}/")) for name in files)


def _in_order(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.parts)


def frozen(root: Path) -> Path:
    """Take a place on object storage as it is now: one listing tells what there is, and no more.

    Asking what is there, or how large it is, takes no request then. A file that is
    replaced later can not be read through it any more, so that nothing is mixed of old and new.
    """
    storage: Any = root
    if is_local(root) or storage.fs.storage_options.get("use_listings_cache"):
        return root
    options = dict(storage.storage_options) | {"use_listings_cache": True}
    if storage.protocol in _S3:  # a session is slow to begin; bytes are cached by who reads them
        options |= {"session": storage.fs.session, "default_cache_type": "none"}
    taken = storage.with_segments(storage.path)
    taken._fs_cached = type(storage.fs)(**options, skip_instance_cache=True)
    setattr(taken.fs, _KNOWN, taken.fs.find(storage.path.rstrip("/")))
    return cast(Path, taken)
