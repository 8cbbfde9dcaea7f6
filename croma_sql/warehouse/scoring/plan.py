"""Which rows of a benchmark an encoder can be scored on, and whether that has been done."""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from croma_sql.errors import BenchmarkError, ScoringError, listed
from croma_sql.places import Version, opened, version_of
from croma_sql.version import __version__
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.designs import filled_cells, lost
from croma_sql.warehouse.benchmarks.margin import Benchmark
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import AnyBenchmark
from croma_sql.warehouse.data.embedding_files import read_shape
from croma_sql.warehouse.data.samples import read_ids
from croma_sql.warehouse.parquet import read_metadata
from croma_sql.warehouse.scoring.schemas import CONSISTENCY, EDGES, SCHEMAS, Table, family_of


@dataclass(frozen=True, slots=True)
class Work:
    """Rows of a benchmark that have a vector under an encoder, and the files that hold them."""

    benchmark: str
    encoder: str
    rows: pa.Table
    left_out: int
    files: list[Path]
    fingerprint: str

    def is_up_to_date(self, path: Path) -> bool:
        """Tell whether a file of scores was made from the same vectors, rows and version."""
        return read_metadata(path).get("fingerprint") == self.fingerprint


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
    """Find the rows that take part, the files that hold their vectors, and the fingerprint.

    Subsets of margins remain complete, or it is an error, so that scores depend on no other row.
    Which units of paired acquisitions remain complete shows when vectors are read, as some may be
    NULL; and which units and acquisitions there should be, only all rows of the benchmark tell.

    Parameters
    ----------
    tables, parameters : what is made, see `fingerprint`
    """
    holders = find_vectors(root, benchmark.rows.column("sample_id").unique(), encoder)
    takes_part = pc.is_in(benchmark.rows.column("sample_id"), holders.ids)
    rows = benchmark.rows.filter(takes_part).combine_chunks()
    if holders.files and len(rows) < len(benchmark.rows) and isinstance(benchmark, Benchmark):
        _check_still_complete(benchmark.rows, rows)
    on_which_it_depends = benchmark.rows if isinstance(benchmark, PairedBenchmark) else rows
    return Work(
        benchmark=benchmark.name,
        encoder=encoder,
        rows=rows,
        left_out=len(benchmark.rows) - len(rows),
        files=holders.files,
        fingerprint=fingerprint(holders.files, on_which_it_depends, tables, parameters),
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


def fingerprint(
    files: list[Path],
    rows: pa.Table,
    tables: tuple[Table, ...],
    parameters: Mapping[str, Any] | None = None,
) -> str:
    """Digest what tables are made of: vectors, rows, parameters and version."""
    kept = [SCHEMAS[table].names for table in tables]
    asked = f" {json.dumps(parameters, sort_keys=True)}" if parameters else ""
    digest = hashlib.sha256(f"{__version__} {layout.FORMAT} {kept}{asked}\n".encode())
    for path in files:
        digest.update(_digest(path, version_of(path)))
    written = io.BytesIO()
    pa.csv.write_csv(rows, written)
    digest.update(written.getbuffer())
    return digest.hexdigest()


def members_fingerprint(benchmark: PairedBenchmark) -> str:
    """Digest what says who is in which unit: the benchmark's rows and the version."""
    return fingerprint([], benchmark.rows, ())


def _check_still_complete(asked: pa.Table, left: pa.Table) -> None:
    faults = lost(filled_cells(asked), filled_cells(left))
    if faults:
        more = "; ..." if len(faults) > 3 else ""
        raise ScoringError(
            f"{len(asked) - len(left)} rows have vectors that were dropped on import, and without "
            f"them {len(faults)} subset(s) are incomplete: {'; '.join(faults[:3])}{more}. Leave "
            "these out in the benchmark's WHERE, or import with --on-bad-vectors null"
        )


@lru_cache(maxsize=1024)
def _digest(path: Path, version: Version) -> bytes:
    """SHA-256 of a file, read once as long as its version stays what it is.

    A part need not be read: it says what it holds, with checksums of its vectors.
    """
    pieces = read_metadata(path).get("pieces") if layout.is_part(path) else None
    if pieces:
        return hashlib.sha256(json.dumps(pieces, sort_keys=True).encode()).digest()
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").digest()


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
