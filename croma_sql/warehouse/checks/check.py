"""Whether every file of a warehouse is as it should be."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pyarrow as pa

from croma_sql.errors import CromaSqlError, SourceError, WarehouseError, listed
from croma_sql.places import frozen
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.selects import read_benchmark
from croma_sql.warehouse.checks.families import (
    check_family,
    families,
    lost_members,
    name_lost_members,
)
from croma_sql.warehouse.checks.scores import Read, check_members, check_scores
from croma_sql.warehouse.checks.sources import check_sources, name_leftover
from croma_sql.warehouse.checks.vectors import check_dataset, check_vectors
from croma_sql.warehouse.data.encoders import validated
from croma_sql.warehouse.data.samples import check_ids, check_names, read_ids
from croma_sql.warehouse.parquet import read_table


def check(warehouse: str | Path, on_progress: Callable[[float], None] | None = None) -> list[str]:
    """Verify every file of a warehouse against the contract.

    Parameters
    ----------
    warehouse : path
    on_progress : callable, optional
        Gets the share of files verified, in [0, 1].

    Returns
    -------
    list of str
        What is wrong, one sentence a fault, naming the file; empty if nothing is. Scores that are
        out of date are no fault (`info` tells), nor are samples without a vector (`score` names
        those that a benchmark needs).
    """
    root = frozen(layout.open_warehouse(warehouse))
    try:
        steps = list(_checks(root))
    except (WarehouseError, SourceError) as error:  # a link that leads outside: nothing may be read
        return [str(error)]  # through it; or what tells which vectors are in force is damaged
    problems = []
    for done, (what, step) in enumerate(steps):
        try:
            problems += step()
        except CromaSqlError as error:
            problems.append(str(error))
        except Exception as error:  # a file may be damaged in ways that nobody thought of
            problems.append(f"{what} cannot be checked ({type(error).__name__}: {error})")
        if on_progress is not None:
            on_progress((done + 1) / len(steps))
    return list(dict.fromkeys(problems))


def _checks(root: Path) -> Iterator[tuple[object, Callable[[], list[str]]]]:
    owner: dict[str, str] = {}
    read = cache(partial(read_benchmark, root))
    for name, path in layout.samples_files(root).items():
        yield path, partial(_check_samples, name, path, owner)
    for path in layout.encoders_files(root):
        yield path, partial(_check_encoders, path)
    for sources in layout.sources_files(root):
        yield sources.path, partial(check_sources, root, sources)
    for files in layout.by_dataset(root):
        for file in files:
            yield file.path, partial(check_vectors, root, file)
        yield files[0].path, partial(check_dataset, root, files)
    for name, path in layout.benchmarks_files(root).items():
        yield path, partial(_check_benchmark, read, name)
    for scores in layout.scores_files(root):
        yield scores.path, partial(check_scores, root, read, scores)
    for family in families(root):
        yield family, partial(check_family, root, family)
    for path in lost_members(root):
        yield path, partial(name_lost_members, path)
    for name, path in layout.members_files(root).items():
        yield path, partial(check_members, root, read, name, path)
    for path in layout.leftovers(root):
        yield path, partial(name_leftover, path)
    for path in layout.strays(root):
        yield path, partial(_name_stray, path)


def _name_stray(path: Path) -> list[str]:
    return [f"{path} is not a file that a warehouse has there; move it away, or import it"]


def _check_encoders(path: Path) -> list[str]:
    table = read_table(path)
    if "encoder" not in table.column_names or not _is_text(table.schema.field("encoder").type):
        return [f"{path}: column 'encoder' is missing or is not text; import the encoders again"]
    validated(table, str(path), "encoder")
    if any(
        field.name.lower() == "is_control" and field.type != pa.bool_() for field in table.schema
    ):
        return [f"{path}: column 'is_control' is not boolean; import the encoders again"]
    return []


def _check_benchmark(read: Read, name: str) -> list[str]:
    read(name)  # its errors are the faults
    return []


def _check_samples(name: str, path: Path, owner: dict[str, str]) -> list[str]:
    table = read_table(path)
    if "sample_id" not in table.column_names or not _is_text(table.schema.field("sample_id").type):
        return [f"{path}: column 'sample_id' is missing or is not text"]
    check_names(table.column_names, str(path))
    ids = read_ids(path)
    check_ids(ids, str(path), "sample_id")
    shared = [sample for sample in ids.to_pylist() if owner.setdefault(sample, name) != name]
    if shared:
        return [
            f"{path}: {len(shared)} sample_id(s) are in dataset {owner[shared[0]]!r} too: "
            f"{listed(shared)}; ids are unique in a warehouse"
        ]
    return []


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
    return any(is_text(kind) for is_text in text)
