"""Units of paired benchmarks compared across their acquisitions, kept as Parquet and done once.

The tables of a benchmark under an encoder are up to date when their fingerprint is that of the
vectors, the benchmark's rows, the parameters and the version now. They are published together.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from croma_sql.acquisitions.compared import MOST_PERMUTED, check_size, checked_options, tables
from croma_sql.cohort import checked_threads
from croma_sql.errors import ScoringError, SourceError
from croma_sql.udfs.acquisitions.compare import compare
from croma_sql.udfs.scope import Progress
from croma_sql.udfs.threads import available_cores
from croma_sql.version import __version__
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.every import for_every
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.parquet import WRITING, metadata, read_metadata
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.scoring.complete_units import COUNTS, Incomplete, complete_units
from croma_sql.warehouse.scoring.plan import fingerprint, members_fingerprint, plan
from croma_sql.warehouse.scoring.schemas import CONSISTENCY, MEMBERS, SCHEMAS

Outcome = Literal["compared", "up to date", "no vectors"]


@dataclass(frozen=True, slots=True)
class ScoredConsistency:
    """What became of one paired benchmark under one encoder.

    n_units, n_acquisitions : compared with each other
    n_incomplete : units left out because they lack an acquisition
    left_out : samples whose vector is NULL or was dropped on import
    """

    benchmark: str
    encoder: str
    outcome: Outcome
    n_units: int = 0
    n_acquisitions: int = 0
    n_incomplete: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _How:
    incomplete: Incomplete
    permutations: int
    seed: int
    depth: int
    threads: int

    def beside(self, kept: Mapping[str, int], n_units: int) -> "_How":
        """Lose nothing of what was kept: a greater depth, or more permutations of the seed.

        Where no p is asked for, those of any seed stay.
        """
        how = replace(self, depth=max(self.depth, kept.get("depth", 0)))
        seed, permutations = kept.get("seed", self.seed), kept.get("permutations", 0)
        if (self.permutations and seed != self.seed) or n_units > MOST_PERMUTED:
            return how
        return replace(how, seed=seed, permutations=max(self.permutations, permutations))

    def parameters(self, n_units: int) -> dict[str, int]:
        """Give what results of so many units depend on."""
        depth = min(self.depth, n_units - 1)
        return {"permutations": self.permutations, "seed": self.seed, "depth": depth}


def score_consistency(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    incomplete: Incomplete = "error",
    permutations: int = 999,
    seed: int = 0,
    depth: int | None = None,
    threads: int | None = None,
    on_progress: Callable[[str, str, Progress | float], None] | None = None,
) -> list[ScoredConsistency]:
    """Compare the units of paired benchmarks across acquisitions; what is up to date is skipped.

    The vector of a unit under an acquisition is the mean of the stored vectors of its samples. They
    are read once, in a stream; what is held is a vector for each unit and acquisition.

    Parameters
    ----------
    warehouse : path
    benchmark, encoder : str, optional
        Only this one; default all. An encoder without any vector of a benchmark is passed over, and
        so are benchmarks of margins.
    incomplete : {'error', 'drop'}
        Whether units that lack an acquisition are an error, or left out and counted. A sample whose
        vector is NULL, or was dropped on import, is as good as missing.
    permutations : int, default 999
        Of units, for the p of Mantel's r; 0: no p, and no matrix of all pairs of units in memory.
        Where more of the same seed were kept, as many are made again, and 0 leaves what was kept.
    seed : int, default 0
        Of the permutations.
    depth : int, optional
        Neighbours up to which neighbourhoods are compared, so that every smaller K is a query
        afterwards. Default 1000. Where a benchmark has fewer other units, all of them; and a
        greater depth that was kept remains.
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.
    on_progress : callable, optional
        Gets benchmark, encoder, and the share of vectors read, then a `croma_sql.Progress` of their
        comparison.

    Returns
    -------
    list of ScoredConsistency

    Raises
    ------
    ScoringError
        What could not be compared and why, after everything else has been.

    Examples
    --------
    >>> import tempfile
    >>> import croma_sql, polars as pl
    >>> warehouse = tempfile.mkdtemp()
    >>> tiles = pl.DataFrame({
    ...     "sample_id": ["p AT2", "p GT450", "q AT2", "q GT450"],
    ...     "patient": ["p", "p", "q", "q"],
    ...     "scanner": ["AT2", "GT450", "AT2", "GT450"],
    ...     "embedding": [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.0, 2.0]],
    ... })
    >>> done = croma_sql.import_embeddings(
    ...     warehouse, tiles, encoder="e", dataset="d", samples=tiles.drop("embedding")
    ... )
    >>> benchmark = croma_sql.add_benchmark(warehouse, "scanners", '''
    ...     SELECT sample_id, patient AS unit, scanner AS acquisition FROM samples
    ... ''')
    >>> score_consistency(warehouse)[0].n_units
    2
    >>> croma_sql.connect(warehouse).sql('''
    ...     SELECT unit, round(distance, 6) FROM unit_pair_files WHERE acquisition_a = 'AT2'
    ... ''').fetchall()
    [('p', 0.2), ('q', 0.0)]
    """
    root = layout.open_warehouse(warehouse)
    if incomplete not in ("error", "drop"):
        raise ScoringError(f"incomplete is {incomplete!r}; it is 'error' or 'drop'")
    asked = checked_options(permutations, seed, depth)
    how = _How(incomplete, *asked, checked_threads(threads) or available_cores())

    def compare_one(rows: PairedBenchmark, one: str) -> ScoredConsistency:
        report = partial(on_progress or _ignore, rows.name, one)
        return _kept_or_compared(root, rows, one, how, report)

    return for_every(root, PairedBenchmark, benchmark, encoder, compare_one)


def _ignore(*_: object) -> None:
    pass


def _kept_or_compared(
    root: Path,
    benchmark: PairedBenchmark,
    encoder: str,
    how: _How,
    report: Callable[[Progress | float], None],
) -> ScoredConsistency:
    kept, there = _Kept.of(root, benchmark.name, encoder), benchmark.counts()
    n_complete = there["units"] - there["incomplete"]
    how = how.beside(kept.parameters, n_complete)
    parameters = how.parameters(kept.n_units or n_complete)
    work = plan(root, benchmark, encoder, CONSISTENCY, parameters)
    if not work.files:
        return ScoredConsistency(benchmark.name, encoder, "no vectors")
    if kept.is_of(work.fingerprint) and (how.incomplete == "drop" or not kept.n_incomplete):
        with ExitStack() as files:
            _publish_members(root, benchmark, files)
        return ScoredConsistency(benchmark.name, encoder, "up to date", **kept.counts)
    check_size(n_complete, how.permutations)
    found, counts = complete_units(work, benchmark, how.incomplete, report)
    parameters = how.parameters(len(found.units))
    compared = compare(
        found.means,
        parameters["depth"],
        how.permutations,
        how.seed,
        how.threads,
        on_progress=report,
    )
    made = tables(
        compared,
        found.units,
        found.acquisitions,
        found.n_samples,
        depth=parameters["depth"],
        permutations=how.permutations,
    )
    done = fingerprint(work.files, benchmark.rows, CONSISTENCY, parameters)
    about = _about(done) | {"parameters": parameters, "depth": parameters["depth"]} | counts
    with ExitStack() as files:
        for table in CONSISTENCY:
            path = layout.scores_path(root, table, work.benchmark, work.encoder)
            frame = getattr(made, table).to_arrow().cast(SCHEMAS[table])
            _publish(path, frame, about, files)
        _publish_members(root, benchmark, files)
    return ScoredConsistency(benchmark.name, encoder, "compared", **counts)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the tables that are there say of themselves; empty where one is missing or damaged."""

    about: list[dict[str, Any]]

    @classmethod
    def of(cls, root: Path, benchmark: str, encoder: str) -> "_Kept":
        paths = [layout.scores_path(root, table, benchmark, encoder) for table in CONSISTENCY]
        return cls([_metadata_if_any(path) for path in paths])

    def is_of(self, fingerprint: str) -> bool:
        first = self.about[0]
        whole = all(isinstance(first.get(name), int) for name in COUNTS)
        return (
            whole
            and all(one == first for one in self.about)
            and first.get("fingerprint") == fingerprint
        )

    @property
    def counts(self) -> dict[str, int]:
        return {name: self.about[0][name] for name in COUNTS}

    @property
    def n_incomplete(self) -> int:
        return self.counts["n_incomplete"]

    @property
    def n_units(self) -> int:
        n = self.about[0].get("n_units")
        return n if isinstance(n, int) else 0

    @property
    def parameters(self) -> dict[str, int]:
        """What they were made with, as far as any of them tells."""
        told = [about.get("parameters") for about in self.about]
        first = next((one for one in told if isinstance(one, dict)), {})
        return {name: value for name, value in first.items() if type(value) is int}


def _metadata_if_any(path: Path) -> dict[str, Any]:
    try:
        return read_metadata(path) if path.exists() else {}
    except SourceError:
        return {}


def _about(fingerprint: str) -> dict[str, Any]:
    return {"format": layout.FORMAT, "version": __version__, "fingerprint": fingerprint}


def _publish_members(root: Path, benchmark: PairedBenchmark, files: ExitStack) -> None:
    """Write who is in which unit, unless that is there."""
    path = layout.members_path(root, benchmark.name)
    about = _about(members_fingerprint(benchmark))
    if _metadata_if_any(path) != about:
        _publish(path, benchmark.rows.cast(MEMBERS), about, files)


def _publish(path: Path, table: pa.Table, about: dict[str, Any], files: ExitStack) -> None:
    file = files.enter_context(publishing(path))
    pq.write_table(table.replace_schema_metadata(metadata(about)), file, **WRITING)
