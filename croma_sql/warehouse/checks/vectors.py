"""Whether files of vectors hold what was imported, and nothing else."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import listed
from croma_sql.vectors import Matrix
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.embedding_files import checksum, read_shape, read_vectors
from croma_sql.warehouse.data.samples import check_ids, read_ids
from croma_sql.warehouse.data.sources import Record, prefix_of, read_sources
from croma_sql.warehouse.parquet import read_footer
from croma_sql.warehouse.slides.pieces import ids_of

AGAIN = "delete it, and import its sources again"
Files = Sequence[layout.EmbeddingsFile]


def check_vectors(root: Path, file: layout.EmbeddingsFile) -> list[str]:
    """Say what is wrong with a file of vectors, reading every byte."""
    sources = layout.sources_path(root, file.encoder, file.dataset)
    if file.part is not None and not file.path.exists():
        return [f"{file.path} is missing, which {sources} lists; import its sources again"]
    shape, n = read_shape(file.path), read_footer(file.path).num_rows
    records = _records(root, file)
    if not records:
        for _ in read_vectors(file.path):  # which names vectors without direction
            pass
        return []
    expected = sum(record.stored for record in records)
    if n != expected or any((r.d, r.dtype) != (shape.d, shape.dtype) for r in records):
        return [
            f"{file.path} has {n} vectors of {shape.d} {shape.dtype} values, {sources} tells of "
            f"{expected} of {records[0].d} {records[0].dtype}; {AGAIN}"
        ]
    prefix = prefix_of(root, file.encoder, file.dataset) or ""
    changed = [
        record.path
        for record, ids, found in _sums(file.path, records)
        if found != record.checksum or not _are_of(record, ids, prefix, shape.dropped)
    ]
    if changed:
        return [
            f"{file.path}: vectors of {len(changed)} source(s) are not those that were imported: "
            f"{listed(changed)}; {AGAIN}"
        ]
    return []


def check_dataset(root: Path, files: Files) -> list[str]:
    """Say what is wrong with all vectors of an encoder and dataset together, by their ids."""
    there = [file.path for file in files if file.path.exists()]
    if not there:
        return []
    folder = there[0] if files[0].part is None else there[0].parent
    d, problems = read_shape(there[0]).d, []
    for other in layout.by_dataset(root):
        if other[0].encoder == files[0].encoder and other[0].dataset > files[0].dataset:
            theirs = other[0].path
            if theirs.exists() and read_shape(theirs).d != d:
                problems.append(
                    f"{folder} has {d} dimensions, {theirs} has {read_shape(theirs).d}; one "
                    "encoder has one dimension"
                )
    ids = pa.concat_arrays([read_ids(path) for path in there])
    check_ids(ids, str(folder), "sample_id")
    samples = layout.samples_files(root).get(files[0].dataset)
    if samples is None:
        return [*problems, f"{folder}: dataset {files[0].dataset!r} has no samples"]
    strangers = ids.filter(pc.invert(pc.is_in(ids, read_ids(samples))))
    if len(strangers):
        problems.append(
            f"{folder}: {len(strangers)} vectors have no sample in {samples}: "
            f"{listed(strangers.to_pylist())}"
        )
    return problems


def _records(root: Path, file: layout.EmbeddingsFile) -> list[Record]:
    """Find what was imported into a file, in the order of its rows; none where nobody knows."""
    records = read_sources(root, file.encoder, file.dataset)
    some = [record for record in records if record.n and record.part == file.part]
    return sorted(some, key=lambda record: (record.part_row, record.stored))


def _sums(path: Path, records: Sequence[Record]) -> Iterator[tuple[Record, pa.Array, int]]:
    """Read the rows of each source, one after the other: their ids, and a checksum."""
    batches = read_vectors(path)
    ids: pa.Array = pa.array([], pa.string())
    matrix: Matrix = np.empty((0, 1))
    for record in records:
        found, left, some = 0, record.stored, [pa.array([], pa.string())]
        while left:
            if not len(ids):
                ids, matrix = next(batches)
            n = min(left, len(ids))
            found = checksum(matrix[:n], np.isnan(matrix[:n, 0]), found)
            some.append(ids[:n].cast(pa.string()))
            ids, matrix, left = ids[n:], matrix[n:], left - n
        yield record, pa.concat_arrays(some), found


def _are_of(record: Record, ids: pa.Array, prefix: str, dropped: Sequence[str]) -> bool:
    """Tell whether rows are called as those of their source are."""
    if record.level == "sample":
        return True
    expected = ids_of(record, prefix)
    if record.n_dropped:
        expected = expected.filter(pc.invert(pc.is_in(expected, pa.array(dropped, pa.string()))))
    return bool(expected.equals(ids))
