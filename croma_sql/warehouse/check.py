"""Whether every file of a warehouse is as it should be."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from croma_sql.errors import CromaSqlError, WarehouseError, listed
from croma_sql.importers.tables import unreadable
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks import read_benchmark
from croma_sql.warehouse.embedding_files import read_batches, read_shape
from croma_sql.warehouse.samples import check_ids, read_ids

SCORES_COLUMNS = {
    "subset": pa.string(),
    "sample_id": pa.string(),
    "label": pa.string(),
    "confounder": pa.string(),
    "group_id": pa.string(),
    "usable": pa.bool_(),
    "depth": pa.int32(),
    "so_id": pa.list_(pa.string()),
    "so_distance": pa.list_(pa.float64()),
    "os_id": pa.list_(pa.string()),
    "os_distance": pa.list_(pa.float64()),
}


def check(warehouse: str | Path, on_progress: Callable[[float], None] | None = None) -> list[str]:
    """Verify every file of a warehouse against the contract.

    Returns
    -------
    list of str
        What is wrong, one sentence a fault, naming the file; empty if nothing is. Scores that are
        merely out of date are no fault: `info` tells.
    """
    root = layout.open_warehouse(warehouse)
    try:
        steps = list(_checks(root))
    except WarehouseError as error:  # a link that leads outside: nothing may be read through it
        return [str(error)]
    problems = []
    for done, step in enumerate(steps):
        try:
            problems += step()
        except CromaSqlError as error:
            problems.append(str(error))
        if on_progress is not None:
            on_progress((done + 1) / len(steps))
    return problems


def _checks(root: Path) -> Iterator[Callable[[], list[str]]]:
    owner: dict[str, str] = {}
    for name, path in layout.samples_files(root).items():
        yield partial(_check_samples, name, path, owner)
    for embeddings in layout.embeddings_files(root):
        yield partial(_check_embeddings, root, embeddings)
    for name in layout.benchmarks_files(root):
        yield partial(_check_benchmark, root, name)
    for scores in layout.typed_neighbours_files(root):
        yield partial(_check_scores, root, scores)


def _check_benchmark(root: Path, name: str) -> list[str]:
    read_benchmark(root, name)  # its errors are the faults
    return []


def _check_samples(name: str, path: Path, owner: dict[str, str]) -> list[str]:
    try:
        table = pq.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
    if "sample_id" not in table.column_names or table.schema.field("sample_id").type != pa.string():
        return [f"{path}: column 'sample_id' is missing or is not text"]
    ids = table.column("sample_id").combine_chunks()
    check_ids(ids, str(path), "sample_id")
    shared = [sample for sample in ids.to_pylist() if owner.setdefault(sample, name) != name]
    if shared:
        return [
            f"{path}: {len(shared)} sample_id(s) are in dataset {owner[shared[0]]!r} too: "
            f"{listed(shared)}; ids are unique in a warehouse"
        ]
    return []


def _check_embeddings(root: Path, file: layout.EmbeddingsFile) -> list[str]:
    shape = read_shape(file.path)
    problems = [
        f"{file.path} has {shape.d} dimensions, {other.path} has {read_shape(other.path).d}; "
        "one encoder has one dimension"
        for other in layout.embeddings_files(root)
        if other.encoder == file.encoder and read_shape(other.path).d != shape.d
    ]
    for _ in read_batches(file.path):  # reads every byte, and names vectors without direction
        pass
    ids = read_ids(file.path)
    check_ids(ids, str(file.path), "sample_id")
    samples = layout.samples_files(root).get(file.dataset)
    if samples is None:
        return [*problems, f"{file.path}: dataset {file.dataset!r} has no samples"]
    known = read_ids(samples)
    strangers = ids.filter(pc.invert(pc.is_in(ids, known)))
    if len(strangers):
        problems.append(
            f"{file.path}: {len(strangers)} vectors have no sample in {samples}: "
            f"{listed(strangers.to_pylist())}"
        )
    covered = pa.concat_arrays([ids, pa.array(shape.dropped, pa.string())])
    missing = known.filter(pc.invert(pc.is_in(known, covered)))
    if len(missing):
        problems.append(
            f"{file.path}: {len(missing)} samples of {samples} have no vector: "
            f"{listed(missing.to_pylist())}"
        )
    return problems


def _check_scores(root: Path, file: layout.ScoresFile) -> list[str]:
    try:
        table = pq.read_table(file.path, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(file.path, error) from error
    if {field.name: field.type for field in table.schema} != SCORES_COLUMNS:
        raise WarehouseError(f"{file.path} has other columns than scores have; score again")
    problems = []
    if file.benchmark not in layout.benchmarks_files(root):
        problems.append(f"{file.path}: there is no benchmark {file.benchmark!r} (any more)")
    if file.encoder not in {embeddings.encoder for embeddings in layout.embeddings_files(root)}:
        problems.append(f"{file.path}: there are no embeddings of {file.encoder!r} (any more)")
    return problems
