"""The search over a benchmark and an encoder, kept as Parquet and done once.

A file is up to date when its fingerprint is that of the vectors, the benchmark's rows, the depth
and the version now. It is written whole or not at all: an interrupted run goes on where it stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import Names, build_scope, checked_m, checked_threads
from croma_sql.edges import margins_of, typed_lists
from croma_sql.errors import CromaSqlError, ScoringError, listed
from croma_sql.udfs.scope import Edges, Wanted
from croma_sql.udfs.search import search
from croma_sql.vectors import Matrix
from croma_sql.version import __version__
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks import read_benchmark
from croma_sql.warehouse.embedding_files import read_shape, read_vectors
from croma_sql.warehouse.parquet import read_metadata, write_table
from croma_sql.warehouse.plan import Work, plan

PUBLISHED_M = 5  # of the view margins

Outcome = Literal["scored", "up to date", "no vectors"]
OnUndefined = Literal["error", "null"]


@dataclass(frozen=True, slots=True)
class Scored:
    """What became of one benchmark under one encoder.

    n : margins asked for; n_undefined : those that are NULL at m = 5
    left_out : benchmark rows whose vector was dropped on import
    """

    benchmark: str
    encoder: str
    outcome: Outcome
    n: int = 0
    n_undefined: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Vectors of one encoder: row i of ``matrix`` is that of ``ids[i]``; NaN where NULL."""

    ids: pa.Array
    matrix: Matrix


def score(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    m: int = 20,
    threads: int | None = None,
    on_undefined: OnUndefined = "error",
    on_progress: Callable[[str, str, float], None] | None = None,
) -> list[Scored]:
    """Score benchmarks under encoders; what is up to date is skipped.

    Parameters
    ----------
    warehouse : path
    benchmark, encoder : str, optional
        Only this one; default all. An encoder without any vector of a benchmark is passed over.
    m : int, default 20, at least 5
        Depth of the search: neighbours kept per type. Every smaller m is a query afterwards.
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.
    on_undefined : {'error', 'null'}
        Whether a sample without a margin at m = 5 is an error, or NULL with a reason.
    on_progress : callable, optional
        Gets benchmark, encoder and the share of their work done.

    Returns
    -------
    list of Scored

    Raises
    ------
    ScoringError
        What could not be scored and why, after everything else has been.
    """
    root = layout.open_warehouse(warehouse)
    m, threads = checked_m(m), checked_threads(threads)
    if on_undefined not in ("error", "null"):
        raise ScoringError(f"on_undefined is {on_undefined!r}; it is 'error' or 'null'")
    if m < PUBLISHED_M:
        raise ScoringError(
            f"m is {m}; scoring keeps at least {PUBLISHED_M} neighbours per type, which the view "
            "margins reads. Smaller m are margins_at(m)"
        )
    outcomes: list[Scored] = []
    failures: list[str] = []
    for name in _chosen(benchmark, list(layout.benchmarks_files(root)), "benchmark", root):
        try:
            rows = read_benchmark(root, name)
        except CromaSqlError as error:
            failures.append(str(error))
            continue
        for one in _chosen(encoder, encoders(root), "encoder", root):
            report = _reporter(on_progress, name, one)
            try:
                outcomes.append(
                    _score(root, plan(root, rows, one, m), m, threads, on_undefined, report)
                )
            except CromaSqlError as error:
                failures.append(f"benchmark {name!r}, encoder {one!r}: {error}")
    if failures:
        done = f"\n{len(outcomes)} other(s) are done" if outcomes else ""
        raise ScoringError("\n".join(failures) + done)
    return outcomes


def encoders(root: Path) -> list[str]:
    """Names of the encoders that have vectors."""
    return sorted({file.encoder for file in layout.embeddings_files(root)})


def _chosen(one: str | None, known: list[str], what: str, root: Path) -> list[str]:
    if not known:
        raise ScoringError(f"{root} has no {what} yet; add one first")
    if one is None:
        return known
    if one not in known:
        raise ScoringError(f"{root} has no {what} {one!r}; it has {listed(known, show=10)}")
    return [one]


def _reporter(
    on_progress: Callable[[str, str, float], None] | None, benchmark: str, encoder: str
) -> Callable[[float], None]:
    def report(share: float) -> None:
        if on_progress is not None:
            on_progress(benchmark, encoder, share)

    return report


def _score(
    root: Path,
    work: Work,
    m: int,
    threads: int | None,
    on_undefined: OnUndefined,
    report: Callable[[float], None],
) -> Scored:
    if not work.files:
        return Scored(work.benchmark, work.encoder, "no vectors")
    path = layout.typed_neighbours_path(root, work.benchmark, work.encoder)
    n, left_out = len(work.rows), work.left_out
    if path.exists() and work.is_up_to_date(path):
        n_undefined = read_metadata(path)["n_undefined"]
        if not n_undefined or on_undefined == "null":
            return Scored(work.benchmark, work.encoder, "up to date", n, n_undefined, left_out)
    report(0.0)
    vectors = _load(work)
    tables, undefined = [], []
    scopes = _scopes(work.rows)
    for done, rows in enumerate(scopes):
        part = partial(_report_part, report, done, len(scopes))
        edges = _search(rows, vectors, m, threads, part)
        tables.append(_table(rows, edges, m))
        undefined.append(_undefined(rows, edges))
    reasons = pa.concat_tables(undefined)
    if len(reasons) and on_undefined == "error":
        raise ScoringError(_undefined_message(reasons, n))
    about = {
        "format": layout.FORMAT,
        "version": __version__,
        "fingerprint": work.fingerprint,
        "depth": m,
        "n_undefined": len(reasons),
    }
    write_table(path, pa.concat_tables(tables).combine_chunks(), about)
    return Scored(work.benchmark, work.encoder, "scored", n, len(reasons), left_out)


def _report_part(report: Callable[[float], None], done: int, parts: int, share: float) -> None:
    report((done + share) / parts)


def _load(work: Work) -> _Vectors:
    """Read the vectors of the rows that take part, once each, into one matrix."""
    shapes = [read_shape(path) for path in work.files]
    if len({shape.d for shape in shapes}) > 1:
        found = ", ".join(
            f"{shape.d} in {path}" for shape, path in zip(shapes, work.files, strict=True)
        )
        raise ScoringError(f"vectors differ in dimension: {found}. One encoder has one dimension")
    ids = work.rows.column("sample_id").unique()
    dtype = np.result_type(*(np.dtype(shape.dtype) for shape in shapes))
    matrix = np.empty((len(ids), shapes[0].d), dtype)
    for path in work.files:
        for some_ids, batch in read_vectors(path):
            place = pc.index_in(some_ids, ids)
            wanted = np.asarray(pc.is_valid(place))
            matrix[place.drop_null().to_numpy()] = batch[wanted]
    return _Vectors(ids, matrix)


def _scopes(rows: pa.Table) -> list[pa.Table]:
    """Rows of each subset, in order; rows are sorted by subset."""
    subset = rows.column("subset").combine_chunks()
    bounds = np.flatnonzero(np.asarray(pc.fill_null(pc.not_equal(subset[1:], subset[:-1]), False)))
    starts = [0, *(bounds + 1)]
    return [
        rows.slice(start, stop - start)
        for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True)
    ]


def _search(
    rows: pa.Table,
    vectors: _Vectors,
    m: int,
    threads: int | None,
    report: Callable[[float], None],
) -> Edges:
    place = pc.index_in(rows.column("sample_id"), vectors.ids).to_numpy()
    all_in_order = len(place) == len(vectors.ids) and bool((np.diff(place) == 1).all())
    subset = rows.column("subset")[0].as_py()
    scope = build_scope(
        vectors.matrix if all_in_order else vectors.matrix[place],  # one scope needs no copy
        *(rows.column(name) for name in ("label", "confounder", "group_id", "sample_id")),
        names=Names(where="" if subset is None else f"subset {subset!r}"),
        on_bad_vectors="null",  # only those stored as NULL are left; others stopped `read_vectors`
    )
    return search(scope, Wanted(m), threads=threads, on_progress=lambda done: report(done.share))


def _table(rows: pa.Table, edges: Edges, depth: int) -> pa.Table:
    lists = typed_lists([edges], rows.column("sample_id").combine_chunks())
    columns = {name: rows.column(name) for name in rows.column_names}
    columns["usable"] = pa.array(edges.usable)
    columns["depth"] = pa.array(np.full(len(rows), depth, np.int32))
    columns |= dict(zip(lists.type.names, lists.flatten(), strict=True))
    return pa.table(columns)


def _undefined(rows: pa.Table, edges: Edges) -> pa.Table:
    """Find the samples without a margin at the published m, and why."""
    reason = pa.array(margins_of(edges, PUBLISHED_M).undefined_reason, pa.string())
    table = pa.table({"sample_id": rows.column("sample_id"), "reason": reason})
    return table.filter(pc.is_valid(table.column("reason")))


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
