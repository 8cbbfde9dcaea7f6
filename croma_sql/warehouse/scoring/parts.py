"""Search the rows of a benchmark part by part, so that memory does not grow with the cohort."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import Columns, Names, build_scopes
from croma_sql.udfs.neighbours.search import search, search_all
from croma_sql.udfs.scope import Edges, Int, Neighbours, Progress, Scope, Vectors, Wanted
from croma_sql.warehouse.scoring.memory import Cut, cut
from croma_sql.warehouse.scoring.plan import Work
from croma_sql.warehouse.scoring.vectors import loaded, shape_of, size_of

ROWS_TOGETHER = 8192  # of small scopes, searched side by side
ROWS_PER_PART = 2048  # of a large scope, made into a table at a time

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows, and their neighbours.

    rows : those whose neighbours these are, in the order of the benchmark
    found, scopes : of the scopes they are in; ids : of all rows of these scopes
    anchors : the rows among those of the only scope, or all rows of all
    """

    rows: pa.Table
    found: list[Edges]
    scopes: list[Scope]
    ids: pa.Array
    anchors: slice


def search_parts(
    work: Work, wanted: Wanted, threads: int, memory: int | None, aside: Path, report: OnProgress
) -> Iterator[Part]:
    """Search all rows of ``work``; parts follow one another in its order.

    ``aside`` is the folder for vectors that do not fit into ``memory``.
    """
    shape = shape_of(work.files)
    how = cut(memory, size_of(work, shape), wanted, threads)
    bounds, subsets = _bounds(work.rows, "subset", "matched"), _bounds(work.rows, "subset")
    with loaded(work, shape, None if how.in_memory else aside) as (vectors, row):
        scopes = _scopes(work.rows, bounds, subsets, vectors, row)
        overall = _Overall(report, sum(len(scope.row) ** 2 for scope in scopes))
        for first, last in _batches(bounds, min(ROWS_TOGETHER, how.anchors)):
            rows = work.rows.slice(bounds[first], bounds[last] - bounds[first])
            if last - first > 1:
                yield _together(rows, scopes[first:last], wanted, threads, how, overall)
            else:
                yield from _by_itself(rows, scopes[first], wanted, threads, how, overall)


def _scopes(rows: pa.Table, bounds: Int, subsets: Int, vectors: Vectors, row: Int) -> list[Scope]:
    of_scope = rows.column("subset").take(bounds[:-1]).to_pylist()
    columns = (
        rows.column(name).combine_chunks()
        for name in ("label", "confounder", "group_id", "sample_id")
    )
    names = [Names(where="" if subset is None else f"subset {subset!r}") for subset in of_scope]
    # Only vectors stored as NULL are bad here; others stopped the reading.
    return build_scopes(
        vectors, row, Columns(*columns), bounds, names, on_bad_vectors="null", wholes=subsets
    )


def _bounds(rows: pa.Table, *columns: str) -> Int:
    """First row of each run in which no column changes, and the end; a column may be NULL."""
    changes = np.zeros(max(0, len(rows) - 1), np.bool_)
    for column in columns:
        values = rows.column(column).combine_chunks()
        changes |= np.asarray(pc.fill_null(pc.not_equal(values[1:], values[:-1]), False))
    return np.concatenate([[0], 1 + np.flatnonzero(changes), [len(rows)]]).astype(np.int64)


def _batches(bounds: Int, rows: int) -> Iterator[tuple[int, int]]:
    """Scopes that are searched side by side: as many as have ``rows`` rows, and one at least."""
    first = 0
    for scope, (_, stop) in enumerate(pairwise(bounds)):
        if scope > first and stop - bounds[first] > rows:
            yield first, scope
            first = scope
    yield first, len(bounds) - 1


def _together(
    rows: pa.Table, scopes: list[Scope], wanted: Wanted, threads: int, how: Cut, overall: "_Overall"
) -> Part:
    on_progress = overall.part(sum(len(scope.row) ** 2 for scope in scopes))
    found = search_all(scopes, wanted, threads=threads, on_progress=on_progress, room=how.room)
    return Part(rows, found, scopes, _ids(rows), slice(None))


def _by_itself(
    rows: pa.Table, scope: Scope, wanted: Wanted, threads: int, how: Cut, overall: "_Overall"
) -> Iterator[Part]:
    n = len(rows)
    for start in range(0, n, how.anchors):
        anchors = range(start, min(start + how.anchors, n))
        edges = search(
            scope,
            wanted,
            anchors=anchors if len(anchors) < n else None,
            threads=threads,
            on_progress=overall.part(n * len(anchors)),
            room=how.room,
        )
        for at in range(0, len(anchors), ROWS_PER_PART):
            some = slice(start + at, min(start + at + ROWS_PER_PART, anchors.stop))
            found = _rows_of(edges, slice(at, at + ROWS_PER_PART))
            some_rows = rows.slice(some.start, some.stop - some.start)
            yield Part(some_rows, [found], [scope], _ids(rows), some)


def _rows_of(edges: Edges, rows: slice) -> Edges:
    """Take a range of the anchors."""

    def some(neighbours: Neighbours) -> Neighbours:
        return Neighbours(neighbours.neighbour[rows], neighbours.distance[rows])

    return replace(
        edges,
        so=some(edges.so),
        os=some(edges.os),
        nearest=some(edges.nearest),
        first_so_rank=edges.first_so_rank[rows],
        first_os_rank=edges.first_os_rank[rows],
        usable=edges.usable[rows],
        searched_again=edges.searched_again if rows.start == 0 else 0,  # to be counted once
    )


def _ids(rows: pa.Table) -> pa.Array:
    return rows.column("sample_id").combine_chunks()


class _Overall:
    """Progress of all parts from that of each."""

    def __init__(self, report: OnProgress, cost: int) -> None:
        self._report, self._cost, self._done = report, cost, 0
        self._began = time.monotonic()

    def part(self, cost: int) -> OnProgress:
        """Take up the next part; whatever was before it is done."""
        before, self._done = self._done, self._done + cost

        def on_progress(progress: Progress) -> None:
            share = (before + cost * progress.share) / self._cost
            elapsed = time.monotonic() - self._began
            self._report(Progress(share, progress.rate, elapsed * (1 - share) / max(share, 1e-9)))

        return on_progress
