"""Validate the rows that are scored together, once, for every door."""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from croma_sql.errors import CohortError, listed
from croma_sql.udfs.scope import Scope
from croma_sql.vectors import OnBadVectors, as_matrix, with_direction


@dataclass(frozen=True, slots=True)
class Names:
    """What the user calls each column; messages speak these names."""

    sample_id: str = "sample_id"
    embedding: str = "embedding"
    label: str = "label"
    confounder: str = "confounder"
    group: str = "group_id"
    where: str = ""

    @property
    def prefix(self) -> str:
        """Where the rows came from, as the start of a message."""
        return f"{self.where}: " if self.where else ""


def as_column(values: Any, column: str) -> pa.Array:
    """Read any sequence, array, Arrow, Polars or pandas column as one Arrow array; NaN is NULL."""
    try:
        array = _arrow(values)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise CohortError(f"{column!r} cannot be read as a column: {error}") from error
    if pa.types.is_dictionary(array.type):
        array = pa.DictionaryArray.from_arrays(array.indices, _without_views(array.dictionary))
        array = array.dictionary_decode()
    array = _without_views(array)
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return array


def _without_views(array: pa.Array) -> pa.Array:
    """Polars hands out text as string_view, which few Arrow functions take."""
    return array.cast(pa.string()) if pa.types.is_string_view(array.type) else array


def _arrow(values: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values).unify_dictionaries().combine_chunks()
    return pa.array(values, from_pandas=True)


def as_text(array: pa.Array, column: str) -> pa.Array:
    """Cast to text, the form in which ids are compared and labels are told apart."""
    try:
        return array.cast(pa.string())
    except pa.ArrowException as error:
        raise CohortError(
            f"column {column!r} is of type {array.type}; expected text, numbers or booleans"
        ) from error


def checked_m(m: Any) -> int:
    """Refuse a number of neighbours that is no whole number, or below 1."""
    number = isinstance(m, int | float | Decimal | np.integer) and math.isfinite(m)
    if not number or m != int(m) or m < 1:
        raise CohortError(
            f"m is {m!r}; it is the number of neighbours per type, a whole number of at least 1"
        )
    return int(m)


def checked_threads(threads: Any) -> int | None:
    """Refuse a number of threads that is no whole number, or below 1."""
    if threads is not None and (not isinstance(threads, int | np.integer) or threads < 1):
        raise CohortError(f"threads is {threads!r}; it is at least 1, or left out for every core")
    return None if threads is None else int(threads)


def build_scope(
    embeddings: Any,
    label: Any,
    confounder: Any,
    group: Any,
    sample_id: Any = None,
    *,
    names: Names = Names(),
    on_bad_vectors: OnBadVectors = "error",
) -> Scope:
    """Validate rows and encode them for the search.

    Parameters
    ----------
    embeddings : (n, d) array, or a column of lists
    label, confounder, group : (n,) columns of any type that can be told apart
    sample_id : (n,) column, optional
        Unique; as text it breaks ties between equal distances, and names rows in errors. Without
        it, row numbers do both.
    on_bad_vectors : {'error', 'drop', 'null'}
        A vector with NaN, inf or only zeros has no direction. ``'error'`` names the rows; otherwise
        they are marked unusable and whoever builds the result leaves them out or writes NULL.

    Raises
    ------
    CohortError
        Columns of different lengths, NULLs, repeated ids, bad vectors, fewer than two labels or
        confounders.
    """
    if on_bad_vectors not in ("error", "drop", "null"):
        raise CohortError(
            f"on_bad_vectors is {on_bad_vectors!r}; it can be 'error', 'drop' or 'null'"
        )
    matrix = as_matrix(embeddings, names.embedding)
    n = len(matrix)
    ids = (
        None
        if sample_id is None
        else as_text(as_column(sample_id, names.sample_id), names.sample_id)
    )
    if ids is not None:
        _check_length(ids, n, names.sample_id, names)
        _check_ids(ids, names)
    shown = ids if ids is not None else pa.array(range(n))
    label_code, confounder_code, group_code = (
        _codes(values, shown, column, names)
        for values, column in (
            (label, names.label),
            (confounder, names.confounder),
            (group, names.group),
        )
    )
    matrix, usable = with_direction(matrix)
    if on_bad_vectors == "error":
        _check_directions(usable, shown, names)
    _check_two(label_code[usable], names.label, "label, so no sample has an OS neighbour", names)
    _check_two(
        confounder_code[usable],
        names.confounder,
        "confounder, so no sample has an SO neighbour",
        names,
    )
    return Scope(matrix, label_code, confounder_code, group_code, _rank(ids, n), usable)


def _codes(values: Any, shown: pa.Array, column: str, names: Names) -> NDArray[np.int32]:
    text = as_text(as_column(values, column), column)
    _check_length(text, len(shown), column, names)
    _check_no_nulls(text, shown, column, names)
    codes: NDArray[np.int32] = pc.dictionary_encode(text).indices.to_numpy().astype(np.int32)
    return codes


def _rank(ids: pa.Array | None, n: int) -> NDArray[np.int64]:
    if ids is None:
        return np.arange(n)
    rank = np.empty(n, np.int64)
    rank[pc.sort_indices(ids).to_numpy()] = np.arange(n)
    return rank


def _check_length(array: pa.Array, n: int, column: str, names: Names) -> None:
    if len(array) != n:
        raise CohortError(
            f"{names.prefix}{column!r} has {len(array)} rows but there are {n} vectors; "
            "every column needs one entry per vector, in the same order"
        )


def _check_no_nulls(array: pa.Array, shown: pa.Array, column: str, names: Names) -> None:
    if array.null_count:
        rows = shown.filter(pc.is_null(array)).to_pylist()
        raise CohortError(
            f"{names.prefix}column {column!r} is NULL in {len(rows)} of {len(array)} rows: "
            f"{listed(rows)}. Fill the cells in, or leave the rows out"
        )


def _check_ids(ids: pa.Array, names: Names) -> None:
    if ids.null_count:
        rows = np.flatnonzero(pc.is_null(ids)).tolist()
        raise CohortError(
            f"{names.prefix}column {names.sample_id!r} is NULL in {len(rows)} of {len(ids)} rows "
            f"(first: row {listed(rows)}); every sample needs an id"
        )
    counts = pc.value_counts(ids)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist()
    if repeated:
        raise CohortError(
            f"{names.prefix}column {names.sample_id!r} is not unique: {len(repeated)} value(s) "
            f"stand in more than one row: {listed(repeated)}. If the rows are several encoders or "
            "subsets, score each by itself (by := 'encoder', .over('encoder'))"
        )


def _check_directions(usable: NDArray[np.bool_], shown: pa.Array, names: Names) -> None:
    bad = shown.filter(pa.array(~usable)).to_pylist()
    if bad:
        raise CohortError(
            f"{names.prefix}{len(bad)} of {len(usable)} vectors in {names.embedding!r} are NULL, "
            f"hold NaN or inf, or are all zero: {listed(bad)}. Cosine distance is undefined for "
            "them. Leave the rows out (on_bad_vectors = 'drop', or a filter), or keep them with a "
            "NULL margin (on_bad_vectors = 'null')"
        )


def _check_two(code: NDArray[np.int32], column: str, lacking: str, names: Names) -> None:
    if len(code) and code.min() == code.max():
        raise CohortError(
            f"{names.prefix}column {column!r} has one value in all {len(code)} rows: there is no "
            f"other {lacking}. A margin needs at least two labels and two confounders"
        )
