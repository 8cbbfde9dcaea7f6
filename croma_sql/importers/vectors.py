"""Embeddings from .npy, Parquet, Arrow, CSV and TSV files, frames and arrays, in batches."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CohortError, CromaSqlError, SourceError, listed
from croma_sql.importers.features import (
    Features,
    choices,
    find_features,
    matrix_of,
    without_vectors,
)
from croma_sql.importers.formats.numpy_arrays import Array, as_vectors, open_array, read_rows
from croma_sql.importers.table_files import BATCH_ROWS, DELIMITED, open_table
from croma_sql.importers.tables import ARROW, PARQUET, as_table, is_path, is_vector, unreadable
from croma_sql.places import is_local, place
from croma_sql.vectors import Matrix, as_matrix

DEFAULT = "embedding"  # the column, where nobody names one
WHOLE = (".npy", *PARQUET, *ARROW, *DELIMITED)


@dataclass(frozen=True, slots=True)
class VectorSource:
    """Where vectors come from.

    name : what to call it in messages
    n : number of vectors
    ids : (n,) text, or None where the source has vectors only
    batches : call it to read (rows, d) matrices, in order
    features : names of the columns, where there is one per feature
    """

    name: str
    n: int
    ids: pa.Array | None
    batches: Callable[[], Iterator[Matrix]]
    features: tuple[str, ...] = ()


def read_vectors(source: Any, *, sample_id: str, embedding: str = DEFAULT) -> VectorSource:
    """Recognise a source of vectors and read its ids.

    Parameters
    ----------
    source : path or URL of .npy, .parquet, .arrow, .feather, .csv or .tsv; a frame; or an (n, d)
        array
    sample_id, embedding : names of its columns, where it has columns. Vectors may be a column per
        feature, too: ``embedding`` is then a pattern such as ``feat_*``, or left out where there is
        one choice (`croma_sql.importers.features.find_features`).

    Raises
    ------
    SourceError
        Not there, of a kind this does not read, cut short, or without those columns.
    """
    if isinstance(source, np.ndarray):
        return VectorSource("the array", len(source), None, lambda: _slices(source, "the array"))
    if not is_path(source):
        return _from_frame(as_table(source), sample_id, embedding)
    path = place(source)
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            return _from_npy(path)
        if suffix in WHOLE:
            return _from_file(path, sample_id, embedding)
    except SourceError:
        raise
    except CromaSqlError as error:
        raise SourceError(f"{path}: {error}") from error
    except (OSError, ValueError, EOFError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
    raise SourceError(
        f"{path}: embeddings are read from .npy, .parquet, .arrow, .feather, .csv or .tsv files; "
        f"{path.suffix or 'a file without suffix'} is none of them"
    )


def check_column(available: list[str], column: str, name: str, option: str) -> None:
    """Refuse a column that is not there, or is there twice, and list those that are."""
    if available.count(column) == 1:
        return
    problem = "more than one column" if column in available else "no column"
    raise SourceError(
        f"{name} has {problem} {column!r}; its columns are {listed(available, show=20)}. "
        f"Name it with {option}"
    )


def _from_npy(path: Path) -> VectorSource:
    name = str(path)
    array = open_array(path)
    shape = array.shape
    if is_local(path) and np.prod(shape):  # of nothing there is no map
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        batches = partial(_slices, matrix, name)
    else:
        batches = partial(_fetched, array)
    if len(shape) != 2 or not shape[1]:
        raise SourceError(
            f"{path} holds an array of shape {shape}; expected (n, d), a vector per row"
        )
    return VectorSource(name, shape[0], None, batches)


def _fetched(array: Array) -> Iterator[Matrix]:
    for start in range(0, array.shape[0], BATCH_ROWS):
        rows = read_rows(array, start, min(start + BATCH_ROWS, array.shape[0]))
        yield as_vectors(rows, array.name)


def _slices(matrix: np.ndarray[Any, Any], name: str) -> Iterator[Matrix]:
    for start in range(0, len(matrix), BATCH_ROWS):
        try:
            yield as_matrix(matrix[start : start + BATCH_ROWS])
        except CohortError as error:
            raise SourceError(f"{name}: {error}") from error


def _from_file(path: Path, sample_id: str, embedding: str) -> VectorSource:
    name, table = str(path), open_table(path)
    check_column(table.schema.names, sample_id, name, "--sample-id")
    features = _features(table.schema, embedding, name, "--embedding")
    ids = table.attributes([sample_id], 0, sys.maxsize, [sample_id]).column(0)

    def batches() -> Iterator[Matrix]:
        return _matrices(table.batches(features.columns, 0, sys.maxsize), name, features)

    ids = as_text(as_column(ids, sample_id), sample_id)
    return VectorSource(name, len(ids), ids, batches, features.columns if features.wide else ())


def _from_frame(table: pa.Table, sample_id: str, embedding: str) -> VectorSource:
    name = "the frame"
    check_column(table.column_names, sample_id, name, "sample_id=")
    features = _features(table.schema, embedding, name, "embedding=")
    ids = as_text(as_column(table.column(sample_id), sample_id), sample_id)

    def batches() -> Iterator[Matrix]:
        columns = table.select(features.columns).to_batches(BATCH_ROWS)
        return _matrices(columns, name, features)

    return VectorSource(name, len(table), ids, batches, features.columns if features.wide else ())


def _features(schema: pa.Schema, embedding: str, name: str, option: str) -> Features:
    """Find the column of that name, else columns of one feature each."""
    wide = None
    if embedding not in schema.names and (embedding == DEFAULT or embedding.endswith("*")):
        numbers = pa.schema([field for field in schema if not is_vector(field.type)])
        wide = find_features(numbers, None if embedding == DEFAULT else embedding, name)
        if wide is None and not choices(schema):
            told = without_vectors(schema, option if option.endswith("=") else f"{option} ")
            raise SourceError(f"{name} holds no vectors; {told}")
    if wide is None:
        check_column(schema.names, embedding, name, option)
    return wide or Features((embedding,), wide=False)


def _matrices(batches: Iterable[pa.RecordBatch], name: str, features: Features) -> Iterator[Matrix]:
    """Read batches of vectors; the first that holds one tells their dimension."""
    before, d, done = 0, 0, 0
    for batch in batches:
        matrix = matrix_of(batch, features, name, first_row=done)
        done += len(matrix)
        if not d and not matrix.shape[1]:
            before += len(matrix)  # no vector so far: their dimension is that of later ones
            continue
        if not d:
            d = matrix.shape[1]
            yield from _missing(before, d, matrix.dtype)
        yield matrix if matrix.shape[1] else next(_missing(len(matrix), d, matrix.dtype))
    if not d:
        raise SourceError(f"{name}: column {features.columns[0]!r} holds no vector at all")


def _missing(n: int, d: int, dtype: np.dtype[Any]) -> Iterator[Matrix]:
    if n:
        yield np.full((n, d), np.nan, dtype)
