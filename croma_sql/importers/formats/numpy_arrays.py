"""Arrays of .npy and .npz files: measured by their headers, read in slices, never unpickled."""

import struct
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from croma_sql.errors import CohortError, SourceError, listed
from croma_sql.vectors import Matrix, as_matrix

# What zipfile, zlib and numpy raise for a file that is damaged, encrypted or of another kind.
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)

BOMB_BYTES = 1 << 28  # an array larger than this that is packed tighter than
BOMB_RATIO = 200  # this holds no measurements


@dataclass(frozen=True, slots=True)
class Array:
    """An array in a file.

    path : the .npy file, or the .npz archive
    key : its name in the archive; None in a .npy file
    shape, dtype, fortran_order : what its header says
    start : bytes of the header
    """

    path: Path
    key: str | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool
    start: int

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return str(self.path) if self.key is None else f"{self.path}, array {self.key!r},"


def directory(path: Path) -> dict[str, zipfile.ZipInfo]:
    """List the arrays of an archive by name, in its order.

    Raises
    ------
    SourceError
        Not a zip archive, or cut short; or two arrays of one name.
    """
    with damage_told(path), path.open("rb") as file, zipfile.ZipFile(file) as archive:
        infos = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    found = {info.filename.removesuffix(".npy"): info for info in infos}
    if len(found) < len(infos):
        counts = Counter(info.filename.removesuffix(".npy") for info in infos)
        twice = [name for name, count in counts.items() if count > 1]
        raise SourceError(f"{path} holds more than one array named {listed(twice)}")
    return found


def open_array(path: Path, key: str | None = None) -> Array:
    """Measure an array by its header.

    Raises
    ------
    SourceError
        Damaged, cut short, an array of Python objects, or one that would fill the memory and holds
        next to nothing.
    """
    with damage_told(path), _stream(path, key) as (stream, size, packed):
        shape, fortran_order, dtype, start = read_header(stream)
    array = Array(path, key, shape, dtype, fortran_order, start)
    if dtype.hasobject:
        raise SourceError(
            f"{array.name} holds Python objects, which only pickle can read, and pickle runs "
            "whatever a file says. Save it as a plain array of numbers"
        )
    expected = start + _row_bytes(array) * shape[0] if shape else size
    if expected != size:
        raise SourceError(
            f"{array.name} is cut short or damaged: its header says shape {shape} of {dtype}, "
            f"which is {expected} bytes, and there are {size}. Write or copy it again"
        )
    if size > max(BOMB_BYTES, BOMB_RATIO * packed):
        raise SourceError(
            f"{array.name} would unpack {packed} bytes to {size}; no measurements are packed that "
            "tight, so it is not read"
        )
    return array


def read_rows(array: Array, start: int, stop: int) -> NDArray[Any]:
    """Read the rows start to stop of an array, and no more than these into memory."""
    if start >= stop:
        return np.empty((0, *array.shape[1:]), array.dtype)
    if array.fortran_order:
        return _read_fortran(array)[start:stop]
    row = _row_bytes(array)
    with damage_told(array.path), _stream(array.path, array.key) as (stream, _, _):
        stream.seek(array.start + start * row)
        content = stream.read((stop - start) * row)
        if stop == array.shape[0]:
            stream.read(1)  # at its end an archive compares the checksum
    if len(content) < (stop - start) * row:
        raise SourceError(f"{array.name} is cut short; write or copy it again")
    return np.frombuffer(content, array.dtype).reshape(stop - start, *array.shape[1:])


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Read shape, Fortran order and dtype of an array, and how long its header is."""
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"a .npy header of version {version}, which arrays of numbers do not have")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran_order, dtype = read(stream)
    return shape, fortran_order and len(shape) > 1, dtype, stream.tell()


def as_vectors(values: NDArray[Any], name: str) -> Matrix:
    """Make a matrix of vectors of the rows of an array, and call it ``name`` in errors."""
    try:
        return as_matrix(values)
    except CohortError as error:
        raise SourceError(f"{name} {str(error).removeprefix(repr('embedding')).strip()}") from error


def vector_dtype(dtype: np.dtype[Any], name: str) -> str:
    """Tell as what `as_vectors` reads a dtype: 'float16', 'float32' or 'float64'."""
    return as_vectors(np.empty((0, 1), dtype), name).dtype.name


@contextmanager
def _stream(path: Path, key: str | None) -> Iterator[tuple[IO[bytes], int, int]]:
    """Open an array with its bytes, and how many of the file they take."""
    if key is None:
        with path.open("rb") as file:
            size = path.stat().st_size
            yield file, size, size
        return
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        info = archive.getinfo(f"{key}.npy")
        with archive.open(info) as stream:
            yield stream, info.file_size, info.compress_size


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """Say of a file what is wrong with it, in the user's words."""
    try:
        yield
    except SourceError:
        raise
    except (FileNotFoundError, PermissionError) as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from error
    except DAMAGED as error:
        problem = str(error).strip().partition("\n")[0]
        raise SourceError(
            f"{path} cannot be read; it is cut short, damaged or of another format ({problem}). "
            "Write or copy it again"
        ) from error


def _row_bytes(array: Array) -> int:
    return int(np.prod(array.shape[1:], dtype=object)) * array.dtype.itemsize


def _read_fortran(array: Array) -> NDArray[Any]:
    """Read an array stored by columns, of which no rows can be read alone."""
    size = _row_bytes(array) * array.shape[0]
    with damage_told(array.path), _stream(array.path, array.key) as (stream, _, _):
        stream.seek(array.start)
        content = stream.read(size + 1)
    if len(content) < size:
        raise SourceError(f"{array.name} is cut short; write or copy it again")
    return np.frombuffer(content[:size], array.dtype).reshape(array.shape[::-1]).T
