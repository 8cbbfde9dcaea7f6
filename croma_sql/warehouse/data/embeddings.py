"""Vectors of an encoder: written in one streaming pass, read back for scoring."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import SourceError, listed
from croma_sql.importers.vectors import VectorSource, read_vectors
from croma_sql.vectors import Matrix, OnBadVectors, in_memory, with_direction
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.embedding_files import PRECISIONS, read_shape
from croma_sql.warehouse.data.samples import (
    check_against_warehouse,
    check_ids,
    sample_ids,
    samples_table,
    write_samples,
)
from croma_sql.warehouse.parquet import WRITING, metadata
from croma_sql.warehouse.publish import locked, publishing


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote; ``bad`` counts vectors left out or written as NULL."""

    n: int
    d: int
    dtype: str
    bad: int


def import_embeddings(
    warehouse: str | Path,
    source: Any,
    *,
    encoder: str,
    dataset: str,
    samples: Any = None,
    ids: Any = None,
    sample_id: str = "sample_id",
    embedding: str = "embedding",
    on_bad_vectors: OnBadVectors = "error",
    on_progress: Callable[[float], None] | None = None,
) -> Imported:
    """Import one vector per sample of a dataset, in the precision they come in.

    Parameters
    ----------
    warehouse : path; made a warehouse if it is new or empty
    source : path to .npy, .parquet, .arrow or .feather, a frame, or an (n, d) array
        A .npy file or an array has no ids: its rows are those of ``ids``, else of ``samples``.
    encoder, dataset : str
    samples : path or frame, optional
        Imported too, as by `import_samples`.
    ids : sequence of n ids, optional
        For sources without ids, in the order of their rows.
    sample_id, embedding : str
        Names of the columns, in ``source`` and in ``samples``.
    on_bad_vectors : {'error', 'drop', 'null'}
        What to do with vectors that are NULL, hold NaN or inf, or are all zero: refuse, leave the
        sample out for this encoder, or keep it with a NULL embedding.
    on_progress : callable, optional
        Gets the share of vectors written, in [0, 1].

    Returns
    -------
    Imported

    Raises
    ------
    SourceError
        See `croma_sql.importers`; also ids that do not match the samples one to one, and dimensions
        that differ within the encoder.
    WarehouseError
        See `croma_sql.warehouse.data.samples.import_samples`.
    """
    if on_bad_vectors not in ("error", "drop", "null"):
        raise SourceError(f"on_bad_vectors is {on_bad_vectors!r}; it is 'error', 'drop' or 'null'")
    vectors = read_vectors(source, sample_id=sample_id, embedding=embedding)
    table = None if samples is None else samples_table(samples, sample_id=sample_id)
    root = layout.create_warehouse(warehouse)
    path = layout.embeddings_path(root, encoder, dataset)
    manifest = None if table is None else table.column("sample_id").combine_chunks()
    found = _ids_of(vectors, ids, manifest, sample_id)

    def check() -> tuple[int, str] | None:
        if table is not None:
            check_against_warehouse(root, table, dataset, replacing=encoder)
        _check_match(found, _known(root, dataset, manifest), vectors.name, dataset)
        return _dimension(root, encoder, dataset)

    @contextmanager
    def committing() -> Iterator[None]:
        with locked(root):
            _check_dimension(imported.d, check(), vectors.name)  # another writer may have come
            if table is not None:  # samples first: vectors without samples are never to be seen
                write_samples(root, table, dataset)
            yield

    expected = check()
    with publishing(path, committing) as file:
        imported = _write(file, vectors, found, expected, on_bad_vectors, on_progress)
    return imported


def _known(root: Path, dataset: str, manifest: pa.Array | None) -> pa.Array:
    """Ids of the dataset as they will be."""
    if manifest is not None:
        return manifest
    if dataset in layout.samples_files(root):
        return sample_ids(root, dataset)
    raise SourceError(
        f"dataset {dataset!r} has no samples yet. Give their ids and attributes with "
        "--samples FILE (Python: samples=), or import them first: croma-sql import samples"
    )


def _ids_of(vectors: VectorSource, ids: Any, manifest: pa.Array | None, column: str) -> pa.Array:
    """Ids of the vectors: their own, those given, or those of a manifest in the same order."""
    if vectors.ids is not None:
        found = vectors.ids
    elif ids is not None:
        found = as_text(as_column(ids, "ids"), "ids")
    elif manifest is not None:
        found = manifest
    else:
        raise SourceError(
            f"{vectors.name} holds vectors without ids. Give the manifest whose rows are in the "
            "same order with --samples FILE (Python: samples= or ids=)"
        )
    if len(found) != vectors.n:
        raise SourceError(
            f"{vectors.name} has {vectors.n} vectors but {len(found)} ids were given; "
            "row i of one belongs to row i of the other"
        )
    check_ids(found, vectors.name, column)
    return found


def _check_match(found: pa.Array, known: pa.Array, name: str, dataset: str) -> None:
    strangers = found.filter(pc.invert(pc.is_in(found, known)))
    if len(strangers):
        raise SourceError(
            f"{name}: {len(strangers)} of {len(found)} vectors have no sample in dataset "
            f"{dataset!r}: {listed(strangers.to_pylist())}. Add the samples, or remove the vectors"
        )
    missing = known.filter(pc.invert(pc.is_in(known, found)))
    if len(missing):
        raise SourceError(
            f"{name}: {len(missing)} of {len(known)} samples of dataset {dataset!r} have no "
            f"vector: {listed(missing.to_pylist())}. Every sample needs one; import other samples "
            "as another dataset"
        )


def _dimension(root: Path, encoder: str, dataset: str) -> tuple[int, str] | None:
    """Dimension that the encoder has in another dataset, and which."""
    for file in layout.embeddings_files(root):
        if file.encoder == encoder and file.dataset != dataset:
            return read_shape(file.path).d, file.dataset
    return None


def _check_dimension(d: int, expected: tuple[int, str] | None, name: str) -> None:
    if expected is not None and expected[0] != d:
        raise SourceError(
            f"{name} has vectors of {d} dimensions, but the same encoder has {expected[0]} in "
            f"dataset {expected[1]!r}; give other vectors another encoder name"
        )


def _write(
    file: BinaryIO,
    vectors: VectorSource,
    ids: pa.Array,
    expected: tuple[int, str] | None,
    on_bad_vectors: OnBadVectors,
    on_progress: Callable[[float], None] | None,
) -> Imported:
    batches = vectors.batches()
    first = next(batches)
    d, dtype = first.shape[1], first.dtype
    _check_dimension(d, expected, vectors.name)
    kind = pa.list_(pa.from_numpy_dtype(dtype), d)
    schema = pa.schema({"sample_id": pa.string(), "embedding": kind})
    bad: list[str] = []
    done = 0
    with pq.ParquetWriter(
        file, schema, use_dictionary=False, write_statistics=["sample_id"], **WRITING
    ) as writer:
        for matrix in chain([first], batches):
            if matrix.shape[1] != d:
                raise SourceError(
                    f"{vectors.name}: vectors have {d} dimensions up to row {done} and "
                    f"{matrix.shape[1]} after; one encoder has one dimension"
                )
            some_ids = ids.slice(done, len(matrix))
            usable = with_direction(in_memory(matrix).square)
            bad += some_ids.filter(pa.array(~usable)).to_pylist()
            if bad and on_bad_vectors == "error":
                raise SourceError(
                    f"{vectors.name}: {len(bad)} of the first {done + len(matrix)} vectors are "
                    f"NULL, hold NaN or inf, or are all zero: {listed(bad)}. Leave their samples "
                    "out for this encoder with --on-bad-vectors drop, or keep them with a NULL "
                    "margin: --on-bad-vectors null"
                )
            table = pa.table([some_ids, _column(matrix, kind, ~usable)], schema=schema)
            writer.write_table(
                table.filter(pa.array(usable)) if on_bad_vectors == "drop" else table
            )
            done += len(matrix)
            if on_progress is not None:
                on_progress(done / vectors.n)
        if len(bad) == done:
            raise SourceError(f"{vectors.name}: not one of the {done} vectors has a direction")
        dropped = bad if on_bad_vectors == "drop" else []
        writer.add_key_value_metadata(metadata({"format": layout.FORMAT, "dropped": dropped}))
    return Imported(done - len(dropped), d, str(dtype), len(bad))


def _column(matrix: Matrix, kind: pa.DataType, null: NDArray[np.bool_]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(
        pa.array(matrix.astype(PRECISIONS[str(kind.value_type)], copy=False).reshape(-1)),
        type=kind,
        mask=pa.array(null),
    )
