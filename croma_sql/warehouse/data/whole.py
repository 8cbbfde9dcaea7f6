"""Import the vectors of all samples of a dataset from one source, in one streaming pass."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
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
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.formats import tables
from croma_sql.importers.spellings import lost_zeros
from croma_sql.importers.tables import is_path
from croma_sql.importers.vectors import VectorSource, read_vectors
from croma_sql.places import is_local, place
from croma_sql.vectors import Matrix, OnBadVectors, in_memory, with_direction
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.embedding_files import PRECISIONS, checksum, read_shape
from croma_sql.warehouse.data.imported import Imported
from croma_sql.warehouse.data.samples import (
    check_against_warehouse,
    check_ids,
    sample_ids,
    samples_table,
    write_samples,
)
from croma_sql.warehouse.data.sources import Record, write_sources
from croma_sql.warehouse.parquet import WRITING, metadata
from croma_sql.warehouse.publish import locked, publishing


def import_whole(
    warehouse: str | Path,
    source: Any,
    *,
    encoder: str,
    dataset: str,
    samples: Any,
    ids: Any,
    sample_id: str,
    embedding: str | None,
    on_bad_vectors: OnBadVectors,
    on_progress: Callable[[float], None] | None,
) -> Imported:
    """Import one source that holds the vectors of all samples of a dataset.

    Parameters
    ----------
    warehouse : path; made a warehouse when the source has been recognised
    others : as in `croma_sql.warehouse.data.embeddings.import_embeddings`
    """
    named = {} if embedding is None else {"embedding": embedding}
    vectors = read_vectors(source, sample_id=sample_id, **named)
    table = None if samples is None else samples_table(samples, sample_id=sample_id)
    if table is not None:  # perhaps the same file
        features = [name for name in vectors.features if name in table.column_names]
        table = table.drop_columns(features)
    root = layout.create_warehouse(warehouse)
    path = layout.embeddings_path(root, encoder, dataset)
    manifest = None if table is None else table.column("sample_id").combine_chunks()
    found = _ids_of(vectors, ids, manifest, sample_id)
    origin = _origin(source, vectors.n, embedding) if is_path(source) else None

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
            _replace_parts(root, encoder, dataset, origin and replace(origin, **written))

    expected = check()
    with publishing(path, committing) as file:
        imported, written = _write(file, vectors, found, expected, on_bad_vectors, on_progress)
    return imported


def _origin(source: str | Path, n: int, embedding: str | None) -> Record:
    """Describe a file before it is read."""
    path = place(source)
    size, mtime_ns = size_and_time(path)
    kinds = (name for name, some in tables.FORMATS.items() if path.suffix.lower() in some)
    return Record(
        slide_id=None,
        level="sample",
        format=next(kinds, "npy"),
        embedding=embedding,
        path=str(path.absolute() if is_local(path) else path),
        size=size,
        mtime_ns=mtime_ns,
        first_row=0,
        n=n,
        n_dropped=0,
        n_null=0,
        part=None,
        part_row=0,
        d=0,
        dtype="",
        checksum=0,
        attributes="{}",
    )


def _replace_parts(root: Path, encoder: str, dataset: str, origin: Record | None) -> None:
    """Say where vectors are from that are in place, and remove those that were there in parts."""
    path = layout.sources_path(root, encoder, dataset)
    if origin is None:
        path.unlink(missing_ok=True)
    else:
        write_sources(path, [origin], "")
    for part in layout.parts_there(root, encoder, dataset):
        part.unlink()


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
    missing = known.filter(pc.invert(pc.is_in(known, found)))
    if len(strangers):
        cure = lost_zeros(strangers, missing) or "Add the samples, or remove the vectors"
        raise SourceError(
            f"{name}: {len(strangers)} of {len(found)} vectors have no sample in dataset "
            f"{dataset!r}: {listed(strangers.to_pylist())}. {cure}"
        )
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
) -> tuple[Imported, dict[str, Any]]:
    """Write vectors; tell how many, and what is to be recorded of their source."""
    batches = vectors.batches()
    first = next(batches)
    d, dtype = first.shape[1], first.dtype
    _check_dimension(d, expected, vectors.name)
    kind = pa.list_(pa.from_numpy_dtype(dtype), d)
    schema = pa.schema({"sample_id": pa.string(), "embedding": kind})
    bad: list[str] = []
    done = summed = 0
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
            summed = checksum(matrix, ~usable, summed)
            done += len(matrix)
            if on_progress is not None:
                on_progress(done / vectors.n)
        if len(bad) == done:
            raise SourceError(f"{vectors.name}: not one of the {done} vectors has a direction")
        dropped = bad if on_bad_vectors == "drop" else []
        writer.add_key_value_metadata(metadata({"format": layout.FORMAT, "dropped": dropped}))
    imported = Imported(done - len(dropped), d, str(dtype), len(bad))
    null = {"n_dropped": len(dropped), "n_null": len(bad) - len(dropped)}
    return imported, null | {"d": d, "dtype": str(dtype), "checksum": summed}


def _column(matrix: Matrix, kind: pa.DataType, null: NDArray[np.bool_]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(
        pa.array(matrix.astype(PRECISIONS[str(kind.value_type)], copy=False).reshape(-1)),
        type=kind,
        mask=pa.array(null),
    )
