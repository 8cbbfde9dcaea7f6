"""Find the files of a source: one file, a folder with all that lies below it, or a glob."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from croma_sql.errors import SourceError
from croma_sql.importers.listing import Listing
from croma_sql.places import is_local, place
from croma_sql.warehouse.publish import MARKER

STORE = ".zarr"  # a folder that is one thing
_MAGIC = frozenset("*?[")
_COMPANIONS = frozenset({"__MACOSX", "Thumbs.db"})


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a source.

    paths : those to be recognised, sorted
    listing : those that lie beside them too
    """

    paths: Sequence[Path]
    listing: Listing


def find(source: str | Path) -> Found:
    """Find the files of a source.

    Parameters
    ----------
    source : path or URL of a file, of a folder (all below it is looked at, through links too), or
        a glob such as ``features/**/*.h5``. What exists under that very name is no glob. Hidden
        files and what operating systems leave behind are passed over.

    Raises
    ------
    SourceError
        Nothing is there, or a folder cannot be read.
    """
    path = place(source)
    try:
        if _is_store(path) or path.is_file():
            return Found([path], _listing(path.parent, [path]))
        if path.is_dir():
            paths = _sorted(_below(path))
            return Found(paths, Listing(path, paths))
        return _globbed(path)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from error


def size_and_time(path: Path) -> tuple[int, int]:
    """Measure a file: bytes, and when it was last written (in ns), which tell if it changed.

    A store is as large as its files together, and as new as the newest.
    """
    if not _is_store(path):
        status = path.stat()
        return status.st_size, status.st_mtime_ns
    measured = [(0, 0), *(_measured(path) if is_local(path) else _measured_remote(path))]
    sizes, times = zip(*measured, strict=True)
    return sum(sizes), max(times)


def _measured(store: Path) -> Iterator[tuple[int, int]]:
    for path in store.rglob("*"):
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            yield status.st_size, status.st_mtime_ns


def _measured_remote(store: Any) -> Iterator[tuple[int, int]]:
    """Ask once for what is in a store, not once for each of its files."""
    for about in store.fs.find(store.path, detail=True).values():
        time = about.get("LastModified")
        yield about["size"], 0 if time is None else int(time.timestamp() * 1e9)


def _globbed(path: Path) -> Found:
    depth = next((i for i, part in enumerate(path.parts) if _MAGIC & set(part)), None)
    if depth is None:
        raise SourceError(f"{path} does not exist")
    root = path.parents[len(path.parts) - depth - 1]
    pattern = "/".join(path.parts[depth:])
    try:
        matches = list(root.glob(pattern))
    except (ValueError, NotImplementedError) as error:
        raise SourceError(f"{path} is not a pattern of files: {error}") from error
    paths = _sorted(_files(matches, root))
    if not paths:
        raise SourceError(f"{path} matches no file; there may be none, or the pattern is another")
    return Found(paths, _listing(root, paths))


def _files(matches: Sequence[Path], root: Path) -> Iterator[Path]:
    """Take the files among matches, and those below the folders."""

    @cache
    def is_in_warehouse(path: Path) -> bool:
        return path != root and ((path / MARKER).exists() or is_in_warehouse(path.parent))

    for match in matches:
        parts = match.relative_to(root).parts
        path = root.joinpath(*_up_to_store(parts))
        if not all(_is_visible(part) for part in parts) or _is_device(path):
            continue
        if is_in_warehouse(path if path.is_dir() else path.parent):
            continue
        if path.is_dir() and not _is_store(path):
            yield from _below(path)
        else:
            yield path


def _listing(root: Path, paths: Sequence[Path]) -> Listing:
    beside = (path for folder in {path.parent for path in paths} for path in folder.iterdir())
    return Listing(root, _sorted([*paths, *beside]))


def _sorted(paths: Iterator[Path] | Sequence[Path]) -> list[Path]:
    return sorted(set(paths), key=lambda path: path.parts)


def _below(folder: Path) -> Iterator[Path]:
    return _below_local(folder) if is_local(folder) else _below_remote(folder)


def _below_local(folder: Path) -> Iterator[Path]:
    seen: set[tuple[int, int]] = set()  # links may lead in circles
    for where, folders, files in os.walk(folder, followlinks=True, onerror=_unreadable):
        status = Path(where).stat()
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        if MARKER in files and Path(where) != folder:  # a warehouse: what went in is no source
            folders.clear()
            continue
        stores = [name for name in folders if name.lower().endswith(STORE)]
        folders[:] = sorted(name for name in folders if name not in stores and _is_visible(name))
        visible = (Path(where, name) for name in [*files, *stores] if _is_visible(name))
        yield from (path for path in visible if not _is_device(path))


def _below_remote(folder: Any) -> Iterator[Path]:
    names = [PurePosixPath(name) for name in folder.fs.find(folder.path)]
    root = PurePosixPath(folder.path)
    warehouses = {name.parent for name in names if name.name == MARKER} - {root}
    for name in names:
        parts = name.relative_to(root).parts
        if warehouses.isdisjoint(name.parents) and all(_is_visible(part) for part in parts):
            yield folder.joinpath(*_up_to_store(parts))


def _up_to_store(parts: Sequence[str]) -> Sequence[str]:
    stores = (i for i, part in enumerate(parts, 1) if part.lower().endswith(STORE))
    return parts[: next(stores, len(parts))]


def _is_store(path: Path) -> bool:
    return path.suffix.lower() == STORE and path.is_dir()


def _is_visible(name: str) -> bool:
    return not name.startswith(".") and name not in _COMPANIONS


def _is_device(path: Path) -> bool:
    """Tell a pipe or socket, which whoever opens it would wait for; a dead link is none."""
    if not is_local(path):
        return False
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _unreadable(error: OSError) -> NoReturn:
    raise SourceError(f"{error.filename} cannot be read: {error.strerror}") from error
