"""Which rows of a benchmark an encoder can be scored on, and whether that has been done."""

import hashlib
import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from croma_sql.errors import ScoringError, listed
from croma_sql.version import __version__
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks import Benchmark, read_benchmark
from croma_sql.warehouse.designs import filled_cells, lost
from croma_sql.warehouse.embedding_files import read_shape
from croma_sql.warehouse.parquet import read_metadata
from croma_sql.warehouse.samples import read_ids
from croma_sql.warehouse.score_schemas import SCHEMAS


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
        """Tell whether a scores file was made from the same vectors, rows and version."""
        about = read_metadata(path)
        whole = all(isinstance(about.get(name), int) for name in ("depth", "n_undefined"))
        return whole and about.get("fingerprint") == self.fingerprint


def plan(root: Path, benchmark: Benchmark, encoder: str) -> Work:
    """Find the rows that take part, the files that hold their vectors, and the fingerprint."""
    needed = benchmark.rows.column("sample_id").unique()
    files, found, dropped = [], [], []
    for file in layout.embeddings_files(root):
        if file.encoder != encoder:
            continue
        ids = read_ids(file.path)
        left_out = pa.array(read_shape(file.path).dropped, pa.string())
        if _any_in(needed, ids) or _any_in(needed, left_out):
            files.append(file)
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
    takes_part = pc.is_in(benchmark.rows.column("sample_id"), with_vector)
    rows = benchmark.rows.filter(takes_part).combine_chunks()
    if files and len(rows) < len(benchmark.rows):
        _check_still_complete(benchmark.rows, rows)
    kept = [schema.names for schema in SCHEMAS.values()]
    digest = hashlib.sha256(f"{__version__} {layout.FORMAT} {kept}\n".encode())
    for file in files:
        stat = file.path.stat()
        digest.update(_digest(file.path, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    written = io.BytesIO()
    pa.csv.write_csv(rows, written)
    digest.update(written.getbuffer())
    return Work(
        benchmark=benchmark.name,
        encoder=encoder,
        rows=rows,
        left_out=len(benchmark.rows) - len(rows),
        files=[file.path for file in files],
        fingerprint=digest.hexdigest(),
    )


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
def _digest(path: Path, *_: int) -> bytes:
    """SHA-256 of a file, read once as long as its inode, size and time stay what they are."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _any_in(values: pa.ChunkedArray, others: pa.Array) -> bool:
    return bool(pc.any(pc.is_in(values, others)).as_py())


def planned(root: Path, file: layout.ScoresFile) -> Work:
    """Plan again what a scores file holds."""
    return plan(root, read_benchmark(root, file.benchmark), file.encoder)
