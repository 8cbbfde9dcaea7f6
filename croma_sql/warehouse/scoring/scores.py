"""The search over a benchmark and an encoder, kept as Parquet and done once.

A file is up to date when it was made of the vectors, the benchmark's rows and the version that
there are now, and it is as deep as asked. It is written whole or not at all: an interrupted run
goes on where it stopped.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cells import words_of_problems
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
from croma_sql.warehouse.benchmarks.selects import remember
from croma_sql.warehouse.benchmarks.texts import OnUndefined
from croma_sql.warehouse.parquet import read_metadata
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.scoring.edge_tables import GroupWriter, nearest_table, typed_table
from croma_sql.warehouse.scoring.made_of import MADE_OF
from croma_sql.warehouse.scoring.memory import checked_memory
from croma_sql.warehouse.scoring.parts import Part, search_parts
from croma_sql.warehouse.scoring.plan import Work, plan
from croma_sql.warehouse.scoring.schemas import EDGES, Table

PUBLISHED_M = 5  # of the view margins

DEPTH_IN_OTHER = {"typed_neighbours": "m", "neighbours": "k"}  # of the metadata

Outcome = Literal["scored", "up to date", "no vectors", "failed"]
CURES = {
    "bad_vector": "A bad vector is NULL: import it again",
    "zero_distance": "Vectors at distance 0 are equal: leave copies out in the benchmark's WHERE",
}


@dataclass(frozen=True, slots=True)
class Scored:
    """What became of one benchmark under one encoder.

    n : margins asked for; n_undefined : those that are NULL at m = 5
    left_out : benchmark rows whose vector was dropped on import
    remembered : whether NULL margins were kept because the benchmark says so
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
    remembered: bool = False


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
    on_undefined: OnUndefined | None = None,
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
    on_undefined : {'error', 'null'}, optional
        Whether a sample without a margin at m = 5 is an error, or NULL with a reason. A benchmark
        with such samples remembers the choice, in the line ``-- undefined: null`` of its file.
        Default: what it remembers, or 'error'.
    on_progress : callable, optional
        Gets benchmark, encoder and a `croma_sql.Progress` of their search.

    Returns
    -------
    list of Scored

    Raises
    ------
    ScoringError
        What could not be scored and why, after everything else has been; its ``done`` is the list
        of all, with the outcome ``'failed'`` of these.
    """
    root = layout.open_warehouse(warehouse)
    wanted = Wanted(checked_m(m), 0 if k is None else checked_k(k), first_ranks)
    how = _How(
        threads=checked_threads(threads) or available_cores(),
        memory=checked_memory(memory),
        on_undefined="error",
    )
    if on_undefined not in (None, "error", "null"):
        raise ScoringError(f"on_undefined is {on_undefined!r}; it is 'error' or 'null'")
    if wanted.m < PUBLISHED_M:
        raise ScoringError(
            f"m is {m}; scoring keeps at least {PUBLISHED_M} neighbours per type, which the view "
            "margins reads. Smaller m are margins_at(m)"
        )

    def score_one(rows: Benchmark, one: str) -> Scored:
        report = partial(on_progress or _ignore, rows.name, one)
        chosen = on_undefined or rows.bound.on_undefined
        as_chosen = replace(how, on_undefined=chosen)
        if on_undefined == "error":
            remember(root, rows, "error")
        done = _score(root, plan(root, rows, one), wanted, as_chosen, report)
        if on_undefined == "null" and done.n_undefined:
            remember(root, rows, "null")
        return replace(done, remembered=on_undefined is None and done.n_undefined > 0)

    def failed(name: str, one: str) -> Scored:
        return Scored(name, one, "failed")

    return for_every(root, Benchmark, benchmark, encoder, score_one, failed)


def _ignore(*_: object) -> None:
    pass


def _score(
    root: Path, work: Work, wanted: Wanted, how: _How, report: Callable[[Progress], None]
) -> Scored:
    if not work.files:
        return Scored(work.benchmark, work.encoder, "no vectors")
    n, left_out = len(work.rows), work.left_out
    kept = _kept(root, work, wanted)
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


def _kept(root: Path, work: Work, wanted: Wanted) -> _Kept:
    paths = {name: layout.scores_path(root, name, work.benchmark, work.encoder) for name in EDGES}
    there = {name: _about(path) for name, path in paths.items() if path.exists()}
    depth = dict.fromkeys(EDGES, 0)
    up_to_date, n_undefined = True, 0
    for edges, about in there.items():
        whole = all(isinstance(about.get(name), int) for name in ("depth", "n_undefined"))
        fresh = whole and about.get(MADE_OF) == work.made_of
        up_to_date = up_to_date and fresh
        if fresh:
            depth[edges], n_undefined = about["depth"], about["n_undefined"]
        else:
            depth[edges] = max(0, min(_depth(edges, there), len(work.rows)))
    if "neighbours" in there and not depth["neighbours"] and not wanted.k:
        raise ScoringError(
            f"{paths['neighbours']} is damaged, and nothing tells how deep it was. Score with --k "
            "to make it again, or delete the file"
        )
    of_ranks = there.get("typed_neighbours") or there.get("neighbours") or {}
    first_ranks = of_ranks.get("first_ranks") is True
    kept = Wanted(depth["typed_neighbours"], depth["neighbours"], first_ranks)
    return _Kept(kept, up_to_date, n_undefined)


def _about(path: Path) -> dict[str, Any]:
    """Read what a table says of itself; nothing of a damaged one, which is made again."""
    try:
        return read_metadata(path)
    except SourceError:
        return {}


def _depth(edges: Table, there: Mapping[Any, dict[str, Any]]) -> int:
    """Tell how deep a table is that is to be made again; of a damaged one the other knows."""
    name = DEPTH_IN_OTHER[edges]
    told = [there[edges].get("depth"), *(about.get(name) for about in there.values())]
    return next((depth for depth in told if isinstance(depth, int)), 0)


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
            raise ScoringError(_undefined_message(reasons, work))
        made = {
            "format": layout.FORMAT,
            "version": __version__,
            MADE_OF: work.made_of,
            "m": wanted.m,
            "k": wanted.k,
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


def _undefined_message(undefined: pa.Table, work: Work) -> str:
    causes, reasons = [], undefined.column("reason").unique().to_pylist()
    for reason in reasons:
        ids = undefined.filter(pc.equal(undefined.column("reason"), reason)).column("sample_id")
        causes.append(f"{len(ids)} {reason} ({listed(ids.to_pylist())})")
    cures = [CURES[reason] for reason in reasons if reason in CURES]
    return (
        f"{len(undefined)} of {len(work.rows)} samples have no margin at m = {PUBLISHED_M}: "
        f"{'; '.join(causes)}. {'. '.join([*words_of_problems(work.rows, PUBLISHED_M), *cures])}. "
        "Or keep them as NULL with a reason, which the benchmark remembers: --on-undefined null"
    )
