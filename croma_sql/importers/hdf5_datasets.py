"""Read rows of HDF5 datasets, past the HDF5 library where the file allows it.

TRIDENT stores a chunk per tile. The library looks each one up and copies it under a lock that all
threads share; but the chunks lie in few runs of bytes, which threads can read side by side.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from croma_sql.errors import SourceError
from croma_sql.places import is_local

if TYPE_CHECKING:
    import h5py

WHOLE = 64 << 20  # bytes: remote files up to here are fetched at once
BLOCK = 256 << 10  # bytes: of others, and to look what is in a file, as much at a time
_LOCAL = "sec2"  # how HDF5 calls files of this machine


class Run(NamedTuple):
    """Rows that lie one after the other: their first, how many, and where in the file."""

    row: int
    rows: int
    byte: int


@contextmanager
def opened(path: Path, *, to_read: bool = True) -> Iterator["h5py.File"]:
    """Open an HDF5 file, wherever it lies.

    Parameters
    ----------
    path : path or URL
    to_read : whether much of it will be read, or only what is in it

    Raises
    ------
    SourceError
        Here or in the block: not there, no HDF5 file, cut short, damaged, or being written.
    """
    import h5py

    try:
        if is_local(path):
            with h5py.File(path, "r") as file:
                yield file
            return
        with _remote(path, to_read) as source, h5py.File(source, "r") as file:
            yield file
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist") from None
    except SourceError:
        raise
    except Exception as error:  # damaged files fail in any way
        raise SourceError(f"{path} {_complaint(path, error)}") from error


def dataset(file: "h5py.File", name: str) -> "h5py.Dataset | None":
    """Get a dataset of the file itself.

    Raises
    ------
    OSError
        Its bytes are in another file, which could be any file of this machine.
    """
    import h5py

    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        return None
    elsewhere = h5py.h5f.get_name(found.id) != h5py.h5f.get_name(file.id)
    if elsewhere or found.external or found.is_virtual:
        raise OSError(f"it keeps {name!r} in another file; write one that holds it itself")
    return found


def datasets(file: "h5py.File") -> list[str]:
    """Describe what is in a file: ``features (2000, 1024) float16``."""
    import h5py

    found: list[str] = []

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found.append(f"{name} {item.shape} {item.dtype}")

    file.visititems(visit)
    return found


def is_written(dataset: "h5py.Dataset") -> bool:
    """Tell whether all rows have bytes in the file.

    Compressed ones may be without. Of remote files nobody asks: the index of chunks is all over
    the file.
    """
    if dataset.id.get_create_plist().get_nfilters() or dataset.file.driver != _LOCAL:
        return True
    size: int = dataset.size * dataset.id.get_type().get_size()
    return bool(dataset.id.get_storage_size() >= size)


def read_rows(dataset: "h5py.Dataset", start: int, stop: int) -> NDArray[Any]:
    """Read rows start to stop of an (n, d) or (1, n, d) dataset, as stored."""
    runs = find_runs(dataset) if dataset.file.driver == _LOCAL and hasattr(os, "preadv") else None
    if runs is None:
        return np.asarray(dataset[start:stop] if dataset.ndim == 2 else dataset[0, start:stop])
    rows = np.empty((stop - start, dataset.shape[1]), dataset.dtype)
    handle, width = dataset.file.id.get_vfd_handle(), rows.itemsize * rows.shape[1]
    for run in runs:
        first, last = max(run.row, start), min(run.row + run.rows, stop)
        if first < last:
            wanted = rows[first - start : last - start].data.cast("B")
            _read_into(wanted, handle, run.byte + (first - run.row) * width)
    return rows


def find_runs(dataset: "h5py.Dataset") -> list[Run] | None:
    """Find where the rows of a dataset lie in its file; None: only the library can tell."""
    from h5py import h5d

    layout = dataset.id.get_create_plist()
    if dataset.ndim != 2 or not dataset.size or layout.get_nfilters() or _is_converted(dataset):
        return None
    n = len(dataset)
    if layout.get_layout() == h5d.CONTIGUOUS and not layout.get_external_count():
        byte = dataset.id.get_offset()
        return None if byte is None else [Run(0, n, byte)]
    if layout.get_layout() == h5d.CHUNKED and dataset.chunks[1] == dataset.shape[1]:
        return _chunk_runs(dataset)
    return None


def _chunk_runs(dataset: "h5py.Dataset") -> list[Run] | None:
    n, height = len(dataset), dataset.chunks[0]
    size = height * dataset.shape[1] * dataset.dtype.itemsize
    found: list[tuple[int, int]] = []
    dataset.id.chunk_iter(lambda chunk: found.append((chunk.chunk_offset[0], chunk.byte_offset)))
    row, byte = np.array(sorted(found), np.int64).reshape(-1, 2).T
    if not np.array_equal(row, np.arange(0, n, height)):
        return None  # chunks that were never written hold the fill value
    starts = np.flatnonzero(np.diff(byte, prepend=byte[0] - 2 * size) != size)
    bounds = [*row[starts].tolist(), n]
    return [
        Run(first, last - first, at)
        for (first, last), at in zip(pairwise(bounds), byte[starts].tolist(), strict=True)
    ]


def _is_converted(dataset: "h5py.Dataset") -> bool:
    """Tell whether bytes in the file differ from those in memory, or addresses from offsets."""
    from h5py import h5t

    stored, block = dataset.id.get_type(), dataset.file.userblock_size
    return bool(block) or not stored.equal(h5t.py_create(dataset.dtype.newbyteorder("=")))


def _read_into(wanted: memoryview, handle: int, byte: int) -> None:
    while wanted:
        count = os.preadv(handle, [wanted], byte)
        if not count:
            raise OSError(f"it ends at byte {byte}, in the middle of its vectors; copy it again")
        wanted, byte = wanted[count:], byte + count


def _remote(path: Path, to_read: bool) -> Any:
    if to_read and path.stat().st_size <= WHOLE:
        return io.BytesIO(path.read_bytes())
    remote: Any = path
    return remote.open("rb", block_size=BLOCK, cache_type="blockcache")


def _complaint(path: Path, error: Exception) -> str:
    """Say what the HDF5 library means."""
    said = str(error).partition("\n")[0]
    if "truncated file" in said or "file signature not found" in said:
        return f"is not a whole HDF5 file; it may be cut short. Write or copy it again ({said})"
    if "unable to lock file" in said:
        return f"is open in another program, which may still be writing it ({said})"
    return f"cannot be read: {said}"
