"""Whether files of scores hold what tables of their name can hold."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from croma_sql.errors import ScoringError
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import AnyBenchmark
from croma_sql.warehouse.checks.units import Shape, has_units_of, impossible_row
from croma_sql.warehouse.checks.values import impossible_value
from croma_sql.warehouse.parquet import read_metadata, read_table
from croma_sql.warehouse.scoring.plan import Work, members_fingerprint, planned
from croma_sql.warehouse.scoring.schemas import CONSISTENCY, EDGES, MEMBERS, SCHEMAS

AGAIN = "delete it and score again"
Read = Callable[[str], AnyBenchmark]


def check_scores(root: Path, read: Read, file: layout.ScoresFile) -> list[str]:
    """Say what is wrong with a file of scores; ``read`` gives a benchmark by its name."""
    table = read_table(file.path)
    if not table.schema.equals(SCHEMAS[file.table]):
        return [f"{file.path} has other columns than scores have; {AGAIN}"]
    if file.benchmark not in layout.benchmarks_files(root):
        return [f"{file.path}: there is no benchmark {file.benchmark!r} (any more)"]
    if file.encoder not in {embeddings.encoder for embeddings in layout.embeddings_files(root)}:
        return [f"{file.path}: there are no embeddings of {file.encoder!r} (any more)"]
    benchmark, shape = read(file.benchmark), Shape.of(read_metadata(file.path))
    try:
        work = planned(root, file, benchmark)
    except ScoringError:  # samples without a vector yet: out of date, which is no fault
        return _impossible(file, table, shape)
    is_fresh = work.is_up_to_date(file.path)
    if is_fresh and not _has_rows_of(work, benchmark, file, table, shape):
        return [f"{file.path} does not hold the rows of its benchmark; {AGAIN}"]
    return _impossible(file, table, shape)


def check_members(root: Path, read: Read, benchmark: str, path: Path) -> list[str]:
    """Say what is wrong with a file of who is in which unit."""
    table = read_table(path)
    if not table.schema.equals(MEMBERS):
        return [f"{path} has other columns than members have; {AGAIN}"]
    if benchmark not in layout.benchmarks_files(root):
        return [f"{path}: there is no benchmark {benchmark!r} (any more)"]
    found = read(benchmark)
    if not isinstance(found, PairedBenchmark):
        return [f"{path}: benchmark {benchmark!r} has no units (any more); delete the file"]
    is_fresh = read_metadata(path).get("fingerprint") == members_fingerprint(found)
    if is_fresh and not table.replace_schema_metadata(None).equals(found.rows):
        return [f"{path} does not hold the rows of its benchmark; {AGAIN}"]
    return []


def _impossible(file: layout.ScoresFile, table: pa.Table, shape: Shape | None) -> list[str]:
    fault = impossible_value(file.table, table)
    if fault is None and file.table in CONSISTENCY and shape is not None:
        fault = impossible_row(file.table, table, shape)
    return [f"{file.path}: {fault}; {AGAIN}"] if fault else []


def _has_rows_of(
    work: Work,
    benchmark: AnyBenchmark,
    file: layout.ScoresFile,
    table: pa.Table,
    shape: Shape | None,
) -> bool:
    if file.table in (*EDGES, "silhouettes"):
        rows = table.select(work.rows.column_names).replace_schema_metadata(None)
        return bool(rows.equals(work.rows))
    if not isinstance(benchmark, PairedBenchmark):
        return True
    return shape is not None and has_units_of(work, benchmark, file.table, table, shape)
