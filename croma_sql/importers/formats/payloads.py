"""Arrays of slide2vec: a tensor in ``.pt``, or ``features`` in ``.npz``, as rows of vectors."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from croma_sql.errors import SourceError, listed
from croma_sql.importers.formats.numpy_arrays import (
    as_vectors,
    directory,
    open_array,
    read_rows,
    vector_dtype,
)
from croma_sql.importers.formats.torch_tensors import as_array, check_numbers
from croma_sql.importers.torch_archives import load
from croma_sql.vectors import Matrix

VECTORS = "features"
_NUMBERS = "tile_index"


@dataclass(frozen=True, slots=True)
class Payload:
    """An array of vectors, which stand along its last axis.

    shape : of one to three axes
    dtype : of the vectors that are read
    rows : reads a range along the first axis
    numbers : (n,) of the vectors, where they are not 0, 1, 2, ...
    """

    path: Path
    shape: tuple[int, ...]
    dtype: str
    rows: Callable[[int, int], NDArray[Any]]
    numbers: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        """Number of vectors."""
        return math.prod(self.shape[:-1])

    @property
    def d(self) -> int:
        """Their length."""
        return self.shape[-1]

    def vectors(self, start: int, stop: int) -> Matrix:
        """Read some vectors."""
        if len(self.shape) == 1:
            return as_vectors(self.rows(0, self.d)[None, :][start:stop], str(self.path))
        each = math.prod(self.shape[1:-1])  # vectors in a row of the array
        first = start // each if start < stop else 0
        rows = self.rows(first, -(-stop // each) if start < stop else 0).reshape(-1, self.d)
        return as_vectors(rows[start - first * each :][: stop - start], str(self.path))


def open_payload(path: Path) -> Payload:
    """Measure an array.

    Raises
    ------
    SourceError
        Damaged, of another kind, or not of numbers.
    """
    return _of_archive(path) if path.suffix.lower() == ".npz" else _of_tensor(path)


def _of_archive(path: Path) -> Payload:
    found = directory(path)
    if VECTORS not in found:
        raise SourceError(
            f"{path} has no array {VECTORS!r}; its arrays are {listed(found, show=10)}"
        )
    array = open_array(path, VECTORS)
    dtype = vector_dtype(array.dtype, array.name)
    payload = Payload(path, array.shape, dtype, partial(read_rows, array))
    if _NUMBERS not in found or len(array.shape) != 2:
        return payload
    numbers = _numbers(path, payload.n)
    if np.array_equal(numbers, np.arange(payload.n)):
        return payload
    return Payload(path, array.shape, dtype, payload.rows, numbers)


def _numbers(path: Path, n: int) -> NDArray[np.int64]:
    array = open_array(path, _NUMBERS)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise SourceError(
            f"{array.name} is of shape {array.shape} and dtype {array.dtype}; expected {n} whole "
            "numbers, one of each vector"
        )
    return read_rows(array, 0, n).astype(np.int64)


def _of_tensor(path: Path) -> Payload:
    tensor = _tensor(path)
    shape = tuple(tensor.shape)
    dtype = vector_dtype(as_array(tensor[:0]).dtype, str(path))

    def rows(start: int, stop: int) -> NDArray[Any]:
        tensor = _tensor(path)
        if tuple(tensor.shape) != shape:
            raise SourceError(f"{path} has changed meanwhile; import it again")
        return as_array(tensor[start:stop])

    return Payload(path, shape, dtype, rows)


def _tensor(path: Path) -> Any:
    tensor = load(path)
    if not hasattr(tensor, "shape") or not len(tensor.shape):
        raise SourceError(f"{path} holds a {type(tensor).__name__}; expected a tensor of vectors")
    check_numbers(tensor, path)
    return tensor
