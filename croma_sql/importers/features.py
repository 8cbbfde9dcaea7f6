"""Which columns of a table are vectors: one of lists, or a column per feature."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise

import numpy as np
import pyarrow as pa

from croma_sql.errors import CohortError, SourceError, listed
from croma_sql.importers.tables import is_vector
from croma_sql.vectors import Matrix, as_matrix

LEAST = 16  # numbered columns that are features without anyone saying so
COORDINATES = ("coords", "coordinates")

_NUMBERED = re.compile(r"(.*?)([0-9]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Features:
    """The columns of vectors of a table.

    columns : one of lists, or one per feature in the order of their numbers
    wide : whether they are one per feature
    """

    columns: tuple[str, ...]
    wide: bool


def find_features(schema: pa.Schema, embedding: str | None, name: str) -> Features | None:
    """Find the columns of vectors of a table.

    Parameters
    ----------
    schema : of the table
    embedding : a column of lists; or with a ``*`` at its end the columns of numbers that have a
        number there, such as ``feat_*``. Without it: the column ``embedding``, else the only one of
        lists, else at least `LEAST` columns of numbers whose names are one stem and the numbers
        from 0, or 1, on (f0 to f1023, feat_000, or 0 to 1023).
    name : what to call the table in messages

    Returns
    -------
    None where the table holds no vectors and ``embedding`` is None

    Raises
    ------
    SourceError
        There is no such column, or without ``embedding`` more than one choice.
    """
    lists = [field.name for field in schema if _is_list(field)]
    families = _families(schema)
    if embedding is None:
        return _only(schema, name)
    if embedding in lists:
        return Features((embedding,), wide=False)
    if embedding.endswith("*") and embedding[:-1] in families:
        return Features(_in_order(families[embedding[:-1]], name), wide=True)
    there = [*lists, *(f"{stem}*" for stem in families)]
    raise SourceError(
        f"{name} has no vectors under {embedding!r}; "
        + (f"--embedding can be {listed(there, show=10)}" if there else without_vectors(schema))
    )


def choices(schema: pa.Schema) -> list[str]:
    """List what ``embedding`` can be without which nobody would take a table for one of vectors."""
    lists = [field.name for field in schema if _is_list(field)]
    stems = [stem for stem, columns in _families(schema).items() if len(columns) >= LEAST]
    return lists or [f"{stem}*" for stem in stems]


def matrix_of(
    rows: pa.Table | pa.RecordBatch, features: Features, name: str, first_row: int = 0
) -> Matrix:
    """Read the vectors of some rows; a missing value is NaN."""
    if features.wide:
        columns = [rows.column(column) for column in features.columns]
        dtype = np.result_type(*(_dtype(column.type) for column in columns))
        matrix = np.empty((len(rows), len(columns)), dtype)
        for i, column in enumerate(columns):
            matrix[:, i] = np.asarray(column)
        return matrix
    (column,) = features.columns
    try:
        return as_matrix(rows.column(column), column, first_row)
    except CohortError as error:
        raise SourceError(f"{name}: {error}") from error


def without_vectors(schema: pa.Schema, option: str = "--embedding ") -> str:
    """Say why a table holds no vectors, and what to say where it does after all."""
    sizes = {f"{stem}*": len(columns) for stem, columns in _families(schema).items()}
    pattern = max(sizes, key=sizes.__getitem__, default="feat_*")
    return (
        f"its columns are {listed(schema.names, show=20)}. Vectors are a column of lists, or "
        f"numbers in at least {LEAST} columns of one stem and a number each, such as feat_0 to "
        "feat_1023; fewer are named with "
        f"{option}{pattern!r}"
    )


def _only(schema: pa.Schema, name: str) -> Features | None:
    found = choices(schema)
    if "embedding" in found:
        return Features(("embedding",), wide=False)
    if len(found) > 1:
        raise SourceError(
            f"{name} has more than one choice of vectors: {listed(found, show=10)}. Name one with "
            "--embedding"
        )
    if not found or found[0] in schema.names:
        return Features((found[0],), wide=False) if found else None
    columns = _families(schema)[found[0][:-1]]
    ordered = _in_order(columns, name)
    numbers = {number for number, _ in columns}
    start = min(1, *numbers)
    gap = next(number for number in count(start) if number not in numbers)
    if gap < max(numbers):
        raise SourceError(
            f"{name} has columns of numbers {ordered[0]!r} to {ordered[-1]!r}, but not "
            f"{f'{found[0][:-1]}{gap}'!r}. If that is meant, say --embedding {found[0]!r}"
        )
    return Features(ordered, wide=True)


def _families(schema: pa.Schema) -> dict[str, list[tuple[int, str]]]:
    """Columns of numbers whose names end in a number, by what stands before it."""
    families = defaultdict(list)
    for field in schema:
        parts = _NUMBERED.fullmatch(field.name)
        if parts and (pa.types.is_floating(field.type) or pa.types.is_integer(field.type)):
            families[parts[1]].append((int(parts[2]), field.name))
    return dict(families)


def _in_order(columns: Sequence[tuple[int, str]], name: str) -> tuple[str, ...]:
    ordered = sorted(columns)
    for (number, column), (following, other) in pairwise(ordered):
        if number == following:
            raise SourceError(
                f"{name} has features of one number, {column!r} and {other!r}; rename one of them"
            )
    return tuple(column for _, column in ordered)


def _is_list(field: pa.Field) -> bool:
    return is_vector(field.type) and field.name.lower() not in COORDINATES


def _dtype(kind: pa.DataType) -> np.dtype[np.floating]:
    return as_matrix(np.empty((0, 1), kind.to_pandas_dtype())).dtype
