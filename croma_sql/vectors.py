"""Vectors of any origin as one (n, d) matrix of the precision they came in."""

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from croma_sql.errors import CohortError, listed
from croma_sql.udfs import exact
from croma_sql.udfs.scope import InMemory

Matrix = NDArray[np.floating]
OnBadVectors = Literal["error", "drop", "null"]

EXTREME_EXPONENT = 200  # beyond 2^200, the product of two sums of squares may leave float64


def as_matrix(embeddings: Any, column: str = "embedding", first_row: int = 0) -> Matrix:
    """Read a 2-D array, an Arrow or Polars column of lists, or nested lists.

    ``column`` and ``first_row`` are what messages call the column and its first row.

    Returns
    -------
    (n, d) float16, float32 or float64, C-contiguous. Small integers become float32, large ones
    float64. A missing vector, or a missing value in one, becomes NaN.

    Raises
    ------
    CohortError
        Not numbers, not two-dimensional, or vectors of different lengths.
    """
    if hasattr(embeddings, "__arrow_c_stream__") or isinstance(embeddings, pa.Array):
        return _from_arrow(_one_array(embeddings), column, first_row)
    if isinstance(embeddings, np.ma.MaskedArray):
        floating = embeddings.dtype.kind == "f"
        embeddings = np.ma.filled(embeddings if floating else embeddings.astype(float), np.nan)
    try:
        array = np.asarray(embeddings)
    except (TypeError, ValueError) as error:
        raise CohortError(f"{column!r} is not an (n, d) array of numbers: {error}") from error
    if array.ndim != 2:
        raise CohortError(
            f"{column!r} has {array.ndim} dimension(s), shape {array.shape}; "
            "expected one row per sample and one column per feature"
        )
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(_as_floating(native, column))


def in_memory(matrix: Matrix) -> InMemory:
    """Measure the rows of a matrix, for the search.

    float64 rows so large or small that their square would leave the range of float64 are first
    multiplied by a power of two, which changes no cosine.
    """
    if matrix.dtype == np.float64:
        matrix = _within_range(matrix)
    stored = matrix.view(np.uint16) if matrix.dtype == np.float16 else matrix
    square = np.empty(len(matrix))
    exact.squared_norms(stored, square, 0, len(matrix))
    return InMemory(stored, square)


def with_direction(square: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which vectors have a direction, by |z|^2: every value finite, and not all zero."""
    return np.isfinite(square) & (square > 0)


def rows_with_direction(matrix: Matrix) -> NDArray[np.bool_]:
    """Tell which rows have a direction, as `with_direction` does, by their bits and without |z|^2.

    Without its sign, a number that is not finite is at least inf, bit for bit, and zero is 0.
    """
    bits = np.dtype(f"u{matrix.dtype.itemsize}").type
    inf = np.array(np.inf, matrix.dtype).view(bits)
    largest = (matrix.view(bits) & (~bits(0) >> bits(1))).max(axis=1, initial=0)
    found: NDArray[np.bool_] = (largest > 0) & (largest < inf)
    return found


def _within_range(matrix: Matrix) -> Matrix:
    peak = np.maximum(matrix.max(axis=1, initial=0.0), -matrix.min(axis=1, initial=0.0))
    exponent = np.frexp(np.where(np.isfinite(peak), peak, 1.0))[1]
    extreme = np.abs(exponent) > EXTREME_EXPONENT
    if extreme.any():
        matrix = matrix.copy()
        with np.errstate(under="ignore"):
            matrix[extreme] = np.ldexp(matrix[extreme], -exponent[extreme, None])
    return matrix


def _one_array(column: Any) -> pa.Array:
    array = column if isinstance(column, pa.Array) else pa.chunked_array(column).combine_chunks()
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _from_arrow(array: pa.Array, column: str, first_row: int) -> Matrix:
    if pa.types.is_fixed_size_list(array.type):
        lengths = None
        d = array.type.list_size
    elif pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        lengths = np.diff(np.asarray(array.offsets))
        d = _common_length(array, lengths, column, first_row)
    else:
        raise CohortError(
            f"{column!r} is of type {array.type}; expected a list of numbers per row "
            "(a list or fixed-size-list column)"
        )
    if not array.null_count:
        return _values(array.flatten(), column).reshape(len(array), d)
    values = _values(array.drop_null().flatten(), column)
    matrix = np.full((len(array), d), np.nan, values.dtype)
    matrix[np.asarray(pc.is_valid(array))] = values.reshape(len(array) - array.null_count, d)
    return matrix


def _common_length(array: pa.Array, lengths: NDArray[Any], column: str, first_row: int) -> int:
    present = np.asarray(pc.is_valid(array))
    found, counts = np.unique(lengths[present], return_counts=True)
    if not len(found):
        return 0
    usual = int(found[counts.argmax()])
    odd = np.flatnonzero(present & (lengths != usual))
    if len(odd):
        rows, found = (odd + first_row).tolist(), lengths[odd].tolist()
        raise CohortError(
            f"{column!r} holds vectors of different lengths: {usual} in most rows, but {len(odd)} "
            f"of {len(array)} rows differ, first in row(s) {listed(rows)} (length "
            f"{listed(found)}). One encoder has one dimension: score encoders separately "
            "(by := 'encoder', .over('encoder')) or mend the rows"
        )
    return usual


def _values(flat: pa.Array, column: str) -> Matrix:
    if pa.types.is_decimal(flat.type):  # a list of SQL literals, such as [0.1, 0.2]
        flat = flat.cast(pa.float64())
    numeric = pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type)
    if not numeric:
        raise CohortError(f"{column!r} holds lists of {flat.type}; expected numbers")
    if flat.null_count and pa.types.is_integer(flat.type):
        flat = flat.cast(pa.float64())
    return _as_floating(flat.to_numpy(zero_copy_only=False), column)


def _as_floating(array: NDArray[Any], column: str) -> Matrix:
    if array.dtype in (np.float16, np.float32, np.float64):
        return array
    if array.dtype.kind in "iu":
        return array.astype(np.float32 if array.dtype.itemsize <= 2 else np.float64)
    raise CohortError(
        f"{column!r} is of dtype {array.dtype}; expected float16, float32, float64 or integers"
    )
