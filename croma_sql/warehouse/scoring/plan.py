"""Which rows of a benchmark an encoder can be scored on, and whether that has been done."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import BenchmarkError, ScoringError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.designs import filled_cells, lost
from croma_sql.warehouse.benchmarks.margin import Benchmark
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import AnyBenchmark
from croma_sql.warehouse.data.embedding_files import read_shape
from croma_sql.warehouse.data.samples import read_ids
from croma_sql.warehouse.parquet import read_metadata
from croma_sql.warehouse.scoring.made_of import MADE_OF, MadeOf, made_of, rows_of
from croma_sql.warehouse.scoring.schemas import CONSISTENCY, EDGES, Table, family_of


@dataclass(frozen=True, slots=True)
class Work:
    """Rows of a benchmark that have a vector under an encoder, and the files that hold them."""

    benchmark: str
    encoder: str
    rows: pa.Table
    left_out: int
    files: list[Path]
    made_of: MadeOf

    def is_up_to_date(self, path: Path) -> bool:
        """Tell whether a file of scores was made from the same vectors, rows and version."""
        return read_metadata(path).get(MADE_OF) == self.made_of


@dataclass(frozen=True, slots=True)
class Holders:
    """Files of an encoder in which samples that are needed stand, or from which they were dropped.

    ids, dropped : of all samples in these files
    """

    files: list[Path]
    ids: pa.Array
    dropped: pa.Array


def plan(
    root: Path,
    benchmark: AnyBenchmark,
    encoder: str,
    tables: tuple[Table, ...] = EDGES,
    parameters: Mapping[str, Any] | None = None,
) -> Work:
    """Find the rows that take part, the files that hold their vectors, and what that is made of.

    Subsets of margins remain complete, or it is an error, so that scores depend on no other row.
    Which units of paired acquisitions remain complete shows when vectors are read, as some may be
    NULL; and which units and acquisitions there should be, only all rows of the benchmark tell.

    Parameters
    ----------
    tables, parameters : what is made, see `croma_sql.warehouse.scoring.made_of`
    """
    holders = find_vectors(root, benchmark.rows.column("sample_id").unique(), encoder)
    takes_part = pc.is_in(benchmark.rows.column("sample_id"), holders.ids)
    rows = benchmark.rows.filter(takes_part).combine_chunks()
    if holders.files and len(rows) < len(benchmark.rows) and isinstance(benchmark, Benchmark):
        _check_still_complete(benchmark.rows, rows)
    return Work(
        benchmark=benchmark.name,
        encoder=encoder,
        rows=rows,
        left_out=len(benchmark.rows) - len(rows),
        files=holders.files,
        made_of=made_of(holders.files, rows_of(benchmark), tables, parameters),
    )


def find_vectors(root: Path, needed: pa.ChunkedArray, encoder: str) -> Holders:
    """Find the files that hold the vectors of samples.

    Raises
    ------
    ScoringError
        Samples that this encoder has neither a vector of nor dropped, where it has any at all.
    """
    files, found, dropped = [], [], []
    for file in layout.embeddings_files(root):
        if file.encoder != encoder:
            continue
        ids = read_ids(file.path)
        left_out = pa.array(read_shape(file.path).dropped, pa.string())
        if _any_in(needed, ids) or _any_in(needed, left_out):
            files.append(file.path)
            found.append(ids)
            dropped.append(left_out)
    with_vector, without = (
        pa.concat_arrays([pa.array([], pa.string()), *arrays]) for arrays in (found, dropped)
    )
    absent = needed.filter(pc.invert(pc.is_in(needed, pa.concat_arrays([with_vector, without]))))
    if files and len(absent):
        raise ScoringError(
            f"{len(absent)} of {len(needed)} samples have no vector: {listed(absent.to_pylist())}. "
            "Import their embeddings, or narrow the benchmark's WHERE"
        )
    return Holders(files, with_vector, without)


def members_made_of(benchmark: PairedBenchmark) -> MadeOf:
    """Describe what says who is in which unit: the benchmark's rows and the version."""
    return made_of([], rows_of(benchmark))


def _check_still_complete(asked: pa.Table, left: pa.Table) -> None:
    faults = lost(filled_cells(asked), filled_cells(left))
    if faults:
        more = "; ..." if len(faults) > 3 else ""
        raise ScoringError(
            f"{len(asked) - len(left)} rows have vectors that were dropped on import, and without "
            f"them {len(faults)} subset(s) are incomplete: {'; '.join(faults[:3])}{more}. Leave "
            "these out in the benchmark's WHERE, or import with --on-bad-vectors null"
        )


def _any_in(values: pa.ChunkedArray, others: pa.Array) -> bool:
    return bool(pc.any(pc.is_in(values, others)).as_py())


def planned(root: Path, file: layout.ScoresFile, benchmark: AnyBenchmark) -> Work:
    """Plan again what a file of scores of a benchmark holds.

    Raises
    ------
    BenchmarkError
        Its benchmark is of another kind by now.
    """
    tables = family_of(file.table)
    if isinstance(benchmark, PairedBenchmark) != (tables == CONSISTENCY):
        raise BenchmarkError(
            f"{file.path}: benchmark {file.benchmark!r} is of another kind now, which has no such "
            "table; delete the file"
        )
    return plan(root, benchmark, file.encoder, tables, read_metadata(file.path).get("parameters"))
