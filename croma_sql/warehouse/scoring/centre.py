"""How strongly encoders encode the confounder, kept as Parquet and done once.

The tables of a benchmark under an encoder are up to date when their fingerprint is that of the
vectors, the benchmark's rows, the parameters and the version now. They are published together.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from croma_sql.centre.clustering import Trials
from croma_sql.centre.probes import Folds
from croma_sql.cohort import checked_threads
from croma_sql.errors import SourceError
from croma_sql.udfs.threads import available_cores
from croma_sql.version import __version__
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.every import for_every
from croma_sql.warehouse.benchmarks.margin import Benchmark
from croma_sql.warehouse.parquet import WRITING, metadata, read_metadata
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.scoring.centre_tables import How, Measured, measure
from croma_sql.warehouse.scoring.plan import Work, plan
from croma_sql.warehouse.scoring.schemas import CENTRE, SCHEMAS

Outcome = Literal["measured", "up to date", "no vectors"]
OnShare = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class ScoredCentre:
    """What became of one benchmark under one encoder.

    n : rows measured; left_out : benchmark rows whose vector was dropped on import
    n_quartets : clustered
    not_probed : why targets were not probed, a sentence each
    """

    benchmark: str
    encoder: str
    outcome: Outcome
    n: int = 0
    left_out: int = 0
    n_quartets: int = 0
    not_probed: tuple[str, ...] = ()


def score_centre(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    trials: int = 50,
    k_range: tuple[int, int] = (2, 30),
    folds: int = 5,
    seed: int = 0,
    threads: int | None = None,
    on_progress: Callable[[str, str, float], None] | None = None,
) -> list[ScoredCentre]:
    """Measure how strongly encoders encode the confounder; what is up to date is skipped.

    Silhouettes of confounder and label (`croma_sql.silhouettes`), clusterings of quartets
    (`croma_sql.clustering`) and predictions by probes (`croma_sql.probes`), which the views of
    ``sql/views/centre`` make FM-SI, clustering score and accuracies of. Each subset of a benchmark
    is measured by itself, silhouettes also among those that must match. A subset of two labels and
    two confounders is one quartet, of its name; of any other, all quartets within it are clustered,
    as ``subset: A | B under X | Y``. Without subsets, all quartets of the benchmark are.

    The vectors of a benchmark are held in memory, and beside them two copies in float32 of its
    largest scope, and one or two per thread.

    Parameters
    ----------
    warehouse : path
    benchmark, encoder : str, optional
        Only this one; default all. An encoder without any vector of a benchmark is passed over, and
        so are benchmarks of paired acquisitions.
    trials : int, default 50
        Runs of k-means per quartet.
    k_range : (int, int), default (2, 30)
        Least and largest number of clusters.
    folds : int, default 5
        Parts in which the probes predict. A target with a class in fewer groups, or with a class
        whose groups all come into one fold, is not probed.
    seed : int, default 0
        Of k-means and of the division into folds.
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.
    on_progress : callable, optional
        Gets benchmark, encoder and the share done, in [0, 1].

    Returns
    -------
    list of ScoredCentre

    Raises
    ------
    ScoringError
        What could not be measured and why, after everything else has been.
    StatisticsError
        Options that make no sense.

    Examples
    --------
    >>> import tempfile
    >>> import croma_sql, polars as pl
    >>> warehouse = tempfile.mkdtemp()
    >>> tiles = pl.DataFrame({
    ...     "sample_id": ["1", "2", "3", "4"],
    ...     "class": ["a", "b", "a", "b"],
    ...     "centre": ["x", "x", "y", "y"],
    ...     "embedding": [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]],
    ... })
    >>> done = croma_sql.import_embeddings(
    ...     warehouse, tiles, encoder="e", dataset="d", samples=tiles.drop("embedding")
    ... )
    >>> benchmark = croma_sql.add_benchmark(warehouse, "b", '''
    ...     SELECT sample_id, class AS label, centre AS confounder, sample_id AS group_id
    ...     FROM samples
    ... ''')
    >>> score_centre(warehouse, trials=2, folds=2)[0].n_quartets
    1
    >>> croma_sql.connect(warehouse).sql('''
    ...     SELECT round(fm_si, 6), round(label_silhouette, 6) FROM centre_encoding
    ... ''').fetchall()
    [(0.402597, 0.083333)]
    """
    root = layout.open_warehouse(warehouse)
    how = How(
        Trials(trials, k_range, seed).checked(),
        Folds(folds, seed=seed).checked(),
        checked_threads(threads) or available_cores(),
    )

    def score_one(rows: Benchmark, one: str) -> ScoredCentre:
        report = partial(on_progress or _ignore, rows.name, one)
        return _kept_or_measured(root, rows, one, how, report)

    return for_every(root, Benchmark, benchmark, encoder, score_one)


def _ignore(*_: object) -> None:
    pass


def _kept_or_measured(
    root: Path, benchmark: Benchmark, encoder: str, how: How, report: OnShare
) -> ScoredCentre:
    parameters = _parameters(how)
    work = plan(root, benchmark, encoder, CENTRE, parameters)
    if not work.files:
        return ScoredCentre(benchmark.name, encoder, "no vectors")
    kept = _kept(root, work)
    outcome: Outcome = "up to date"
    if kept is None:
        found = measure(work, how, report)
        kept = {"n_quartets": found.n_quartets, "not_probed": found.not_probed}
        about = {"format": layout.FORMAT, "version": __version__, "fingerprint": work.fingerprint}
        _publish(root, work, found, about | {"parameters": parameters} | kept)
        outcome = "measured"
    return ScoredCentre(
        benchmark.name,
        encoder,
        outcome,
        len(work.rows),
        work.left_out,
        kept["n_quartets"],
        tuple(kept["not_probed"]),
    )


def _parameters(how: How) -> dict[str, Any]:
    parameters = asdict(how.trials) | asdict(how.folds)
    return parameters | {"k_range": list(how.trials.k_range)}


def _kept(root: Path, work: Work) -> dict[str, Any] | None:
    """Give what tables say of themselves that are there and up to date, all of them; else None."""
    about = [
        _metadata_if_any(layout.scores_path(root, table, work.benchmark, work.encoder))
        for table in CENTRE
    ]
    first = about[0]
    whole = isinstance(first.get("n_quartets"), int) and isinstance(first.get("not_probed"), list)
    fresh = first.get("fingerprint") == work.fingerprint
    return first if whole and fresh and all(one == first for one in about) else None


def _metadata_if_any(path: Path) -> dict[str, Any]:
    try:
        return read_metadata(path) if path.exists() else {}
    except SourceError:
        return {}


def _publish(root: Path, work: Work, found: Measured, about: dict[str, Any]) -> None:
    with ExitStack() as files:
        for name in CENTRE:
            path = layout.scores_path(root, name, work.benchmark, work.encoder)
            table: pa.Table = found.tables[name].cast(SCHEMAS[name])
            file = files.enter_context(publishing(path))
            pq.write_table(table.replace_schema_metadata(metadata(about)), file, **WRITING)
