"""Embeddings from .npy, Parquet and Arrow files, frames and arrays, in batches."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CohortError, CromaSqlError, SourceError, listed
from croma_sql.importers.tables import ARROW, PARQUET, as_table, unreadable
from croma_sql.vectors import Matrix, as_matrix

BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True)
class VectorSource:
    """Where vectors come from.

    name : what to call it in messages
    n : number of vectors
    ids : (n,) text, or None where the source has vectors only
    batches : call it to read (rows, d) matrices, in order
    """

    name: str
    n: int
    ids: pa.Array | None
    batches: Callable[[], Iterator[Matrix]]


def read_vectors(source: Any, *, sample_id: str, embedding: str) -> VectorSource:
    """Recognise a source of vectors and read its ids.

    Parameters
    ----------
    source : path to .npy, .parquet, .arrow or .feather; a frame; or an (n, d) array
    sample_id, embedding : names of its columns, where it has columns

    Raises
    ------
    SourceError
        Not there, of a kind this does not read, cut short, or without those columns.
    """
    if isinstance(source, np.ndarray):
        return VectorSource("the array", len(source), None, lambda: _slices(source, "the array"))
    if not isinstance(source, str | Path):
        return _from_table(as_table(source), "the frame", sample_id, embedding)
    path = Path(source)
    try:
        if path.suffix.lower() == ".npy":
            return _from_npy(path)
        if path.suffix.lower() in PARQUET:
            return _from_parquet(path, sample_id, embedding)
        if path.suffix.lower() in ARROW:
            return _from_table(pa.feather.read_table(path), str(path), sample_id, embedding)
    except SourceError:
        raise
    except CromaSqlError as error:
        raise SourceError(f"{path}: {error}") from error
    except (OSError, ValueError, EOFError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
    raise SourceError(
        f"{path}: embeddings are read from .npy, .parquet, .arrow or .feather files; "
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
    matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise SourceError(
            f"{path} holds an array of shape {matrix.shape}; expected (n, d), a vector per row"
        )
    return VectorSource(str(path), len(matrix), None, lambda: _slices(matrix, str(path)))


def _slices(matrix: np.ndarray[Any, Any], name: str) -> Iterator[Matrix]:
    for start in range(0, len(matrix), BATCH_ROWS):
        try:
            yield as_matrix(matrix[start : start + BATCH_ROWS])
        except CohortError as error:
            raise SourceError(f"{name}: {error}") from error


def _from_parquet(path: Path, sample_id: str, embedding: str) -> VectorSource:
    with pq.ParquetFile(path) as file:
        available = file.schema_arrow.names
        check_column(available, sample_id, str(path), "--sample-id")
        check_column(available, embedding, str(path), "--embedding")
        ids = file.read(columns=[sample_id]).column(0)

    def batches() -> Iterator[Matrix]:
        try:  # unbuffered is the leanest way to read: no column is read ahead as a whole
            with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
                columns = file.iter_batches(BATCH_ROWS, columns=[embedding])
                yield from _matrices((batch.column(0) for batch in columns), str(path), embedding)
        except (OSError, pa.ArrowException) as error:
            raise unreadable(path, error) from error

    return VectorSource(str(path), len(ids), as_text(as_column(ids, sample_id), sample_id), batches)


def _from_table(table: pa.Table, name: str, sample_id: str, embedding: str) -> VectorSource:
    check_column(table.column_names, sample_id, name, "sample_id=")
    check_column(table.column_names, embedding, name, "embedding=")
    ids = as_text(as_column(table.column(sample_id), sample_id), sample_id)

    def batches() -> Iterator[Matrix]:
        columns = table.select([embedding]).to_batches(BATCH_ROWS)
        return _matrices((batch.column(0) for batch in columns), name, embedding)

    return VectorSource(name, len(table), ids, batches)


def _matrices(columns: Iterable[pa.Array], name: str, embedding: str) -> Iterator[Matrix]:
    """Read batches of a column; the first that holds a vector tells their dimension."""
    before, d, done = 0, 0, 0
    for column in columns:
        try:
            matrix = as_matrix(column, embedding, first_row=done)
        except CohortError as error:
            raise SourceError(f"{name}: {error}") from error
        done += len(matrix)
        if not d and not matrix.shape[1]:
            before += len(matrix)  # no vector so far: their dimension is that of later ones
            continue
        if not d:
            d = matrix.shape[1]
            yield from _missing(before, d, matrix.dtype)
        yield matrix if matrix.shape[1] else next(_missing(len(matrix), d, matrix.dtype))
    if not d:
        raise SourceError(f"{name}: column {embedding!r} holds no vector at all")


def _missing(n: int, d: int, dtype: np.dtype[Any]) -> Iterator[Matrix]:
    if n:
        yield np.full((n, d), np.nan, dtype)
