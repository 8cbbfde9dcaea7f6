"""Vectors and columns of the rows that are measured together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.cohort import Columns, Names, as_column, as_text, build_scopes
from croma_sql.errors import CohortError
from croma_sql.udfs import exact
from croma_sql.udfs.scope import Codes, Float, Int, Scope, Stored
from croma_sql.vectors import OnBadVectors, as_matrix, in_memory

ANYTHING = np.zeros(1, np.int64)  # no range of rows that must have two labels and confounders
CENTRE_ROWS = 4096
NAMES = Names(result="")


@dataclass(frozen=True, slots=True)
class Classes:
    """Values of a column, told apart by whole numbers.

    values : text, ascending; code : (n,) int32, place in it of each row's value
    """

    values: NDArray[np.object_]
    code: Codes


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are measured together.

    scope : their vectors, order and usability; its labels and confounders mean nothing here
    columns : as they came in; sample_id, a row number where none was given, among them
    """

    scope: Scope
    columns: dict[str, pa.Array]

    def classes(self, column: str) -> Classes:
        """Tell the values of a column apart, as text."""
        return classes_of(self.columns[column], column)


def classes_of(column: pa.Array | pa.ChunkedArray, name: str) -> Classes:
    """Tell the values of a column apart, as text."""
    text = as_text(column, name).to_numpy(zero_copy_only=False)
    values, code = np.unique(text, return_inverse=True)
    return Classes(values, code.astype(np.int32))


def read_rows(
    embeddings: Any,
    columns: Mapping[str, Any],
    sample_id: Any = None,
    on_bad_vectors: OnBadVectors = "error",
    names: Names = NAMES,
) -> Rows:
    """Validate rows.

    Parameters
    ----------
    embeddings : (n, d) array, or a column of lists
    columns : one to three columns of (n,) values, by name
    sample_id, on_bad_vectors : as in `croma_sql.cohort.build_scope`
    names : what messages call ids and vectors, and where they come from

    Raises
    ------
    CohortError
        Columns of different lengths, NULLs, repeated ids, bad vectors.
    """
    matrix = as_matrix(embeddings, names.embedding)
    read = {name: as_column(values, name) for name, values in columns.items()}
    ids = None if sample_id is None else as_column(sample_id, names.sample_id)
    for name, column in [*read.items(), *([] if ids is None else [(names.sample_id, ids)])]:
        if len(column) != len(matrix):
            raise CohortError(
                f"{names.prefix}{name!r} has {len(column)} rows but there are {len(matrix)} "
                "vectors; every column needs one entry per vector, in the same order"
            )
    label, confounder, group = [*read, *[list(read)[-1]] * (3 - len(read))]  # as a scope has
    scope = build_scopes(
        in_memory(matrix),
        np.arange(len(matrix)),
        Columns(read[label], read[confounder], read[group], ids),
        [0, len(matrix)],
        [replace(names, label=label, confounder=confounder, group=group)],
        on_bad_vectors,
        wholes=ANYTHING,
    )[0]
    return Rows(scope, {"sample_id": pa.array(range(len(matrix))) if ids is None else ids, **read})


def in_order(scope: Scope, rows: Int | None = None) -> Int:
    """Put the usable rows (of some, or all) in the order of their ids, however they came."""
    some = np.arange(len(scope.row)) if rows is None else rows
    some = some[scope.usable[some]]
    ordered: Int = some[np.argsort(scope.rank[some])]
    return ordered


def residuals(scope: Scope, rows: Int) -> NDArray[np.float32]:
    """Subtract from unit vectors of rows (len(rows), d) one that lies among them.

    Euclidean distances between them are sqrt(2 cosine distance), and other vectors crowd in one
    direction as they may, float32 tells them apart.
    """
    stored, place = scope.vectors.take(scope.row)
    square = scope.vectors.square[scope.row]
    centre = _centre(stored, place, square, rows)
    out = np.empty((len(rows), scope.vectors.d), np.float32)
    exact.residuals(stored, place, square, rows, centre, out)
    return out


def _centre(stored: Stored, place: Int, square: Float, rows: Int) -> Float:
    centre = np.zeros(stored.shape[1])
    some = rows[:: max(1, len(rows) // CENTRE_ROWS)]
    exact.unit_sums(stored, place, square, some, centre)
    centre /= max(1, len(some))
    return centre
