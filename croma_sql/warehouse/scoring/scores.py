"""The search over a benchmark and an encoder, kept as Parquet and done once.

A file is up to date when its fingerprint is that of the vectors, the benchmark's rows and the
version now, and it is as deep as asked. It is written whole or not at all: an interrupted run goes
on where it stopped.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import checked_k, checked_m, checked_threads
from croma_sql.edges import margins_of
from croma_sql.errors import ScoringError, SourceError, listed
from croma_sql.places import scratch
from croma_sql.udfs.scope import Edges, Progress, Wanted
from croma_sql.udfs.threads import available_cores
from croma_sql.version import __version__
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.every import for_every
from croma_sql.warehouse.benchmarks.margin import Benchmark
from croma_sql.warehouse.parquet import read_footer, read_metadata
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.scoring.edge_tables import GroupWriter, nearest_table, typed_table
from croma_sql.warehouse.scoring.memory import checked_memory
from croma_sql.warehouse.scoring.parts import Part, search_parts
from croma_sql.warehouse.scoring.plan import Work, plan
from croma_sql.warehouse.scoring.schemas import EDGES

PUBLISHED_M = 5  # of the view margins

Outcome = Literal["scored", "up to date", "no vectors"]
OnUndefined = Literal["error", "null"]


@dataclass(frozen=True, slots=True)
class Scored:
    """What became of one benchmark under one encoder.

    n : margins asked for; n_undefined : those that are NULL at m = 5
    left_out : benchmark rows whose vector was dropped on import
    searched_again : lists of neighbours that float32 could not separate, so that they were searched
        a second time, in float64. It depends on how the work was cut; the result never does.
    """

    benchmark: str
    encoder: str
    outcome: Outcome
    n: int = 0
    n_undefined: int = 0
    left_out: int = 0
    searched_again: int = 0


@dataclass(frozen=True, slots=True)
class _How:
    threads: int
    memory: int | None
    on_undefined: OnUndefined


def score(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    m: int = 20,
    k: int | None = None,
    first_ranks: bool = False,
    threads: int | None = None,
    memory: int | str | None = None,
    on_undefined: OnUndefined = "error",
    on_progress: Callable[[str, str, Progress], None] | None = None,
) -> list[Scored]:
    """Score benchmarks under encoders; what is up to date is skipped.

    Parameters
    ----------
    warehouse : path
    benchmark, encoder : str, optional
        Only this one; default all. An encoder without any vector of a benchmark is passed over, and
        so are benchmarks of paired acquisitions, which `score_consistency` is for.
    m : int, default 20, at least 5
        Depth of the search: neighbours kept per type. Every smaller m is a query afterwards.
    k : int, optional
        Also keep the k nearest neighbours of any type, for which every pair is measured: about
        twice the work. Every smaller k is a query afterwards.
    first_ranks : bool
        Also keep where the first SO and OS stand among all eligible candidates.
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.
    memory : int or str, optional
        Bytes, or a size such as ``'4GB'``, that scoring may take beside what it takes for the
        smallest cohort: about 400 MB of Python, DuckDB, Polars and compiled code.
        Vectors that do not fit are set aside in the warehouse folder and read block by block; of a
        warehouse on object storage, in the folder for temporary files (TMPDIR).
        Default: the float32 matrix and about 400 MB. The result does not depend on it.
    on_undefined : {'error', 'null'}
        Whether a sample without a margin at m = 5 is an error, or NULL with a reason.
    on_progress : callable, optional
        Gets benchmark, encoder and a `croma_sql.Progress` of their search.

    Returns
    -------
    list of Scored

    Raises
    ------
    ScoringError
        What could not be scored and why, after everything else has been.
    """
    root = layout.open_warehouse(warehouse)
    wanted = Wanted(checked_m(m), 0 if k is None else checked_k(k), first_ranks)
    how = _How(
        threads=checked_threads(threads) or available_cores(),
        memory=checked_memory(memory),
        on_undefined=on_undefined,
    )
    if on_undefined not in ("error", "null"):
        raise ScoringError(f"on_undefined is {on_undefined!r}; it is 'error' or 'null'")
    if wanted.m < PUBLISHED_M:
        raise ScoringError(
            f"m is {m}; scoring keeps at least {PUBLISHED_M} neighbours per type, which the view "
            "margins reads. Smaller m are margins_at(m)"
        )

    def score_one(rows: Benchmark, one: str) -> Scored:
        report = partial(on_progress or _ignore, rows.name, one)
        return _score(root, plan(root, rows, one), wanted, how, report)

    return for_every(root, Benchmark, benchmark, encoder, score_one)


def _ignore(*_: object) -> None:
    pass


def _score(
    root: Path, work: Work, wanted: Wanted, how: _How, report: Callable[[Progress], None]
) -> Scored:
    if not work.files:
        return Scored(work.benchmark, work.encoder, "no vectors")
    n, left_out = len(work.rows), work.left_out
    kept = _kept(root, work)
    if not wanted.k:
        _check_readable(layout.scores_path(root, "neighbours", work.benchmark, work.encoder))
    deepest = Wanted(
        max(wanted.m, kept.wanted.m),
        max(wanted.k, kept.wanted.k),
        wanted.first_ranks or kept.wanted.first_ranks,
    )
    may_stay = how.on_undefined == "null" or not kept.n_undefined
    if kept.up_to_date and kept.wanted == deepest and may_stay:
        return Scored(work.benchmark, work.encoder, "up to date", n, kept.n_undefined, left_out)
    n_undefined, again = _write_scores(root, work, deepest, how, report)
    return Scored(work.benchmark, work.encoder, "scored", n, n_undefined, left_out, again)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is there already.

    wanted : what it was made for, up to date or not: nothing that was kept gets lost
    up_to_date : all of it
    n_undefined : margins that are NULL in it
    """

    wanted: Wanted
    up_to_date: bool
    n_undefined: int


def _kept(root: Path, work: Work) -> _Kept:
    depth = dict.fromkeys(EDGES, 0)
    up_to_date, n_undefined, first_ranks = True, 0, False
    for edges in EDGES:
        path = layout.scores_path(root, edges, work.benchmark, work.encoder)
        if not path.exists():
            continue
        about = read_metadata(path)
        whole = all(isinstance(about.get(name), int) for name in ("depth", "n_undefined"))
        fresh = whole and work.is_up_to_date(path)
        up_to_date = up_to_date and fresh
        if edges == "typed_neighbours":
            first_ranks = about.get("first_ranks") is True
        if fresh:
            depth[edges], n_undefined = about["depth"], about["n_undefined"]
        elif isinstance(about.get("depth"), int):
            depth[edges] = max(0, min(about["depth"], len(work.rows)))
    kept = Wanted(depth["typed_neighbours"], depth["neighbours"], first_ranks)
    return _Kept(kept, up_to_date, n_undefined)


def _check_readable(neighbours: Path) -> None:
    """Refuse what can neither be kept nor, since no k was asked for, be made again."""
    if neighbours.exists():
        try:
            read_footer(neighbours)
        except SourceError as error:
            raise ScoringError(
                f"{error}. Score with --k to make it again, or delete the file"
            ) from error


def _write_scores(
    root: Path, work: Work, wanted: Wanted, how: _How, report: Callable[[Progress], None]
) -> tuple[int, int]:
    """Search and publish; returns how many margins are undefined, and lists searched again."""
    undefined, searched_again = [], 0
    with ExitStack() as files:
        writers = {}
        for edges in EDGES:
            if edges == "typed_neighbours" or wanted.k:
                path = layout.scores_path(root, edges, work.benchmark, work.encoder)
                file = files.enter_context(publishing(path))
                writers[edges] = files.enter_context(GroupWriter(file, edges))
        for part in search_parts(work, wanted, how.threads, how.memory, scratch(root), report):
            undefined.append(_undefined(part))
            searched_again += sum(edges.searched_again for edges in part.found)
            writers["typed_neighbours"].write(typed_table(part, wanted))
            if wanted.k:
                writers["neighbours"].write(nearest_table(part, wanted))
            pa.default_memory_pool().release_unused()
        reasons = pa.concat_tables(undefined)
        if len(reasons) and how.on_undefined == "error":
            raise ScoringError(_undefined_message(reasons, len(work.rows)))
        made = {
            "format": layout.FORMAT,
            "version": __version__,
            "fingerprint": work.fingerprint,
            "n_undefined": len(reasons),
            "first_ranks": wanted.first_ranks,
        }
        writers["typed_neighbours"].finish(made | {"depth": wanted.m})
        if wanted.k:
            writers["neighbours"].finish(made | {"depth": wanted.k})
    return len(reasons), searched_again


def _undefined(part: Part) -> pa.Table:
    """Find the samples without a margin at the published m, and why."""
    reasons = [reason for edges in part.found for reason in _reasons(edges)]
    table = pa.table(
        {"sample_id": part.rows.column("sample_id"), "reason": pa.array(reasons, pa.string())}
    )
    return table.filter(pc.is_valid(table.column("reason")))


def _reasons(edges: Edges) -> list[str | None]:
    reasons: list[str | None] = margins_of(edges, PUBLISHED_M).undefined_reason.tolist()
    return reasons


def _undefined_message(undefined: pa.Table, n: int) -> str:
    causes = []
    for reason in undefined.column("reason").unique().to_pylist():
        ids = undefined.filter(pc.equal(undefined.column("reason"), reason)).column("sample_id")
        causes.append(f"{len(ids)} {reason} ({listed(ids.to_pylist())})")
    return (
        f"{len(undefined)} of {n} samples have no margin at m = {PUBLISHED_M}: {'; '.join(causes)}"
        ". Narrow the benchmark to cells with enough samples in other groups, or keep them as NULL "
        "with a reason: --on-undefined null"
    )
