"""Validate the rows that are scored together, once, for every door."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from croma_sql.errors import CohortError, listed
from croma_sql.udfs.scope import Scope, Vectors
from croma_sql.vectors import OnBadVectors, as_matrix, in_memory, with_direction

MOST = 2**31 - 1  # neighbours


@dataclass(frozen=True, slots=True)
class Names:
    """What the user calls each column; messages speak these names."""

    sample_id: str = "sample_id"
    embedding: str = "embedding"
    label: str = "label"
    confounder: str = "confounder"
    group: str = "group_id"
    where: str = ""
    result: str = "margin"  # what is NULL for a vector without direction; empty: nothing is told

    @property
    def prefix(self) -> str:
        """Where the rows came from, as the start of a message."""
        return f"{self.where}: " if self.where else ""


@dataclass(frozen=True, slots=True)
class Columns:
    """What is known of every row, as Arrow columns of the same length."""

    label: pa.Array
    confounder: pa.Array
    group: pa.Array
    sample_id: pa.Array | None = None

    def named(self, names: Names) -> list[tuple[pa.Array, str]]:
        """Give each column with what the user calls it."""
        called = [names.label, names.confounder, names.group]
        columns = [self.label, self.confounder, self.group]
        if self.sample_id is not None:
            return [(self.sample_id, names.sample_id), *zip(columns, called, strict=True)]
        return list(zip(columns, called, strict=True))

    def as_texts(self, names: Names) -> "Columns":
        """Cast every column to the form in which values are compared."""
        *ids, label, confounder, group = (as_text(*column) for column in self.named(names))
        return Columns(label, confounder, group, *ids)

    def slice(self, rows: slice) -> "Columns":
        """Take the rows of one scope."""
        return Columns(
            self.label[rows],
            self.confounder[rows],
            self.group[rows],
            None if self.sample_id is None else self.sample_id[rows],
        )

    def present(self) -> list[pa.Array]:
        """List the columns there are."""
        return [column for column, _ in self.named(Names())]


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
    """Refuse a number of typed neighbours that is no whole number, or below 1."""
    return _whole(m, "m", "neighbours per type")


def checked_k(k: Any) -> int:
    """Refuse a number of nearest neighbours that is no whole number, or below 1."""
    return _whole(k, "k", "nearest neighbours of any type")


def _whole(value: Any, name: str, what: str) -> int:
    number = isinstance(value, int | float | Decimal | np.integer) and math.isfinite(value)
    if not number or isinstance(value, bool) or value != int(value) or value < 1:
        raise CohortError(
            f"{name} is {value!r}; it is the number of {what}, a whole number of at least 1"
        )
    if value > MOST:
        raise CohortError(f"{name} is {value}; more than {MOST} {what} cannot be kept")
    return int(value)


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
    matrix = as_matrix(embeddings, names.embedding)
    n = len(matrix)
    columns = Columns(
        label=as_column(label, names.label),
        confounder=as_column(confounder, names.confounder),
        group=as_column(group, names.group),
        sample_id=None if sample_id is None else as_column(sample_id, names.sample_id),
    )
    for column, name in columns.named(names):
        _check_length(column, n, name, names)
    vectors, every_row = in_memory(matrix), np.arange(n)
    return build_scopes(vectors, every_row, columns, [0, n], [names], on_bad_vectors)[0]


def build_scopes(
    vectors: Vectors,
    row: NDArray[np.int64],
    columns: Columns,
    bounds: Sequence[int] | NDArray[np.integer],
    names: Sequence[Names],
    on_bad_vectors: OnBadVectors,
    wholes: NDArray[np.int64] | None = None,
) -> list[Scope]:
    """Validate the rows of many scopes at once and encode them for the search.

    Parameters
    ----------
    vectors : of these rows, and perhaps of others
    row : (n,) which of the vectors is that of each row
    columns : (n,) each; the rows of a scope stand together
    bounds : (s + 1,) first row of each scope, and the end
    names : (s,) what each scope calls its columns, and where it came from
    on_bad_vectors, errors : as in `build_scope`
    wholes : (w + 1,) bounds of the ranges of scopes that have two labels and two confounders
        together; default: every scope by itself
    """
    if on_bad_vectors not in ("error", "drop", "null"):
        raise CohortError(
            f"on_bad_vectors is {on_bad_vectors!r}; it can be 'error', 'drop' or 'null'"
        )
    if not names:
        return []
    texts = columns.as_texts(names[0])
    label, confounder, group = (
        _codes(column) for column in (texts.label, texts.confounder, texts.group)
    )
    rank, usable = _rank(texts.sample_id, len(row)), with_direction(vectors.square[row])
    of_scopes = [slice(start, stop) for start, stop in pairwise(bounds)]
    scopes = [
        Scope(
            vectors, row[some], label[some], confounder[some], group[some], rank[some], usable[some]
        )
        for some in of_scopes
    ]
    if not _look_sound(texts, scopes, bounds, on_bad_vectors):
        for scope, some, scope_names in zip(scopes, of_scopes, names, strict=True):
            _check(scope, texts.slice(some), scope_names, on_bad_vectors)
    names_from = dict(zip(bounds, names, strict=False))  # of scopes without rows, the next one's
    for start, stop in pairwise(bounds if wholes is None else wholes):
        of_whole = slice(start, stop)
        takes_part = usable[of_whole]
        _check_two(label[of_whole][takes_part], confounder[of_whole][takes_part], names_from[start])
    return scopes


def _codes(column: pa.Array) -> NDArray[np.int32]:
    """Whole numbers that tell values apart; -1 for NULL."""
    indices = pc.dictionary_encode(column).indices
    codes: NDArray[np.int32] = pc.fill_null(indices, -1).to_numpy().astype(np.int32)
    return codes


def _rank(ids: pa.Array | None, n: int) -> NDArray[np.int64]:
    if ids is None:
        return np.arange(n)
    rank = np.empty(n, np.int64)
    rank[pc.sort_indices(ids).to_numpy()] = np.arange(n)
    return rank


def _look_sound(
    texts: Columns,
    scopes: list[Scope],
    bounds: Sequence[int] | NDArray[np.integer],
    on_bad_vectors: OnBadVectors,
) -> bool:
    """Tell, without looking at scopes one by one, whether nothing is wrong with any of them."""
    if any(column.null_count for column in texts.present()):
        return False
    if on_bad_vectors == "error" and not all(scope.usable.all() for scope in scopes):
        return False
    if texts.sample_id is None:
        return True
    of_scope = np.repeat(np.arange(len(scopes)), np.diff(bounds))
    within = of_scope * (len(of_scope) + 1) + _codes(texts.sample_id)
    return len(np.unique(within)) == len(within)


def _check(scope: Scope, texts: Columns, names: Names, on_bad_vectors: OnBadVectors) -> None:
    """Say what is wrong with the rows of one scope."""
    ids = texts.sample_id
    if ids is not None:
        _check_ids(ids, names)
    shown = ids if ids is not None else pa.array(range(len(scope.row)))
    for column, name in texts.named(names):
        _check_no_nulls(column, shown, name, names)
    if on_bad_vectors == "error":
        _check_directions(scope.usable, shown, names)


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
        with_null = f"a NULL {names.result} (on_bad_vectors = 'null')"
        keep = f", or keep them with {with_null}" if names.result else ""
        raise CohortError(
            f"{names.prefix}{len(bad)} of {len(usable)} vectors in {names.embedding!r} are NULL, "
            f"hold NaN or inf, or are all zero: {listed(bad)}. Cosine distance is undefined for "
            f"them. Leave the rows out (on_bad_vectors = 'drop', or a filter){keep}"
        )


def _check_two(label: NDArray[np.int32], confounder: NDArray[np.int32], names: Names) -> None:
    for code, column, lacking in (
        (label, names.label, "label, so no sample has an OS neighbour"),
        (confounder, names.confounder, "confounder, so no sample has an SO neighbour"),
    ):
        if len(code) and code.min() == code.max():
            raise CohortError(
                f"{names.prefix}column {column!r} has one value in all {len(code)} rows: there is "
                f"no other {lacking}. A margin needs at least two labels and two confounders"
            )
