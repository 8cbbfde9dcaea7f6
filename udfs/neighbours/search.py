"""The exact neighbours of every sample of one scope or of many.

Large scopes are multiplied in blocks on all threads, one scope after the other; middling ones each
on one thread, side by side; small ones in one compiled loop over many (`tiled`, `small`).
"""

from collections.abc import Sequence

import numpy as np

from croma_sql.udfs.neighbours.blocks import BLOCKS
from croma_sql.udfs.neighbours.small import search_small
from croma_sql.udfs.neighbours.tiled import search_tiled
from croma_sql.udfs.neighbours.tiles import count_pairs
from croma_sql.udfs.scope import Edges, Scope, Wanted
from croma_sql.udfs.threads import IsStopped, available_cores, cores, never, one_by_one
from croma_sql.udfs.tracker import OnProgress, Tracker

KEPT = 192 << 20  # bytes of stored vectors up to which their residuals are kept beside them
# Multiplications of all pairs of a scope:
SMALL = 1 << 23  # below, every pair is measured in float64
WORTH_SPREADING = 1 << 26  # below, a pool of threads costs more than it saves
ON_ONE_THREAD = 1 << 33  # up to here a scope may have a thread to itself: a tenth of a second


def search(
    scope: Scope,
    wanted: Wanted,
    *,
    anchors: range | None = None,
    threads: int | None = None,
    on_progress: OnProgress | None = None,
    room: int | None = None,
    block: int | None = None,
) -> Edges:
    """Find the nearest neighbours of the usable rows of a scope.

    Parameters
    ----------
    scope : Scope
    wanted : Wanted
        Which neighbours, and how many.
    anchors : range of rows, optional
        Whose neighbours to find, among all rows; default every row's. Those of a part cost less
        memory and, part by part, up to twice the time.
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.
    on_progress : callable, optional
        Gets a `Progress` as blocks are done, in the calling thread.
    room : int, optional
        Bytes for working copies of the vectors; default enough for the best speed, unless these are
        large. The result does not depend on it.
    block : int, optional
        Rows and columns of one matrix product. The result does not depend on it.

    Returns
    -------
    Edges

    Examples
    --------
    >>> import numpy as np
    >>> from croma_sql.udfs.scope import InMemory
    >>> codes = lambda *values: np.array(values, np.int32)
    >>> z = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]])
    >>> scope = Scope(
    ...     vectors=InMemory(z, np.square(z).sum(axis=1)), row=np.arange(4),
    ...     label=codes(0, 0, 1, 1), confounder=codes(0, 1, 0, 1), group=codes(0, 1, 2, 3),
    ...     rank=np.arange(4), usable=np.ones(4, bool))
    >>> search(scope, Wanted(m=1)).so.distance[:, 0].round(2).tolist()
    [0.2, 0.2, 0.2, 0.2]
    """
    n = len(scope.row)
    if anchors is None and block is None and _cost(scope) < SMALL and scope.in_memory:
        return search_all([scope], wanted, threads=threads, on_progress=on_progress)[0]
    threads = 1 if _cost(scope) < WORTH_SPREADING else threads or available_cores()
    rows = range(n) if anchors is None else anchors
    tracker = Tracker(on_progress, _pairs_due(scope, wanted, rows))
    with cores(threads) as for_each:
        return search_tiled(
            scope, wanted, rows, for_each, threads, tracker.on_work, room or _room(scope), block
        )


def search_all(
    scopes: Sequence[Scope],
    wanted: Wanted,
    *,
    threads: int | None = None,
    on_progress: OnProgress | None = None,
    room: int | None = None,
    is_stopped: IsStopped = never,
) -> list[Edges]:
    """Search many scopes, each by itself; parameters as in `search`.

    Parameters
    ----------
    is_stopped : callable, optional
        Asked often; once it says so, the search raises KeyboardInterrupt.

    Returns
    -------
    list of Edges, one per scope
    """
    threads = threads or available_cores()
    if sum(map(_cost, scopes)) < WORTH_SPREADING:
        threads = 1
    every_row = [range(len(scope.row)) for scope in scopes]
    due = [_pairs_due(scope, wanted, rows) for scope, rows in zip(scopes, every_row, strict=True)]
    tracker = Tracker(on_progress, sum(due))
    small = [i for i, scope in enumerate(scopes) if _cost(scope) < SMALL and scope.in_memory]
    rest = sorted(set(range(len(scopes))).difference(small))
    alone = [i for i in rest if _cost(scopes[i]) <= ON_ONE_THREAD]
    if len(alone) < threads:
        alone = []  # too few to keep every thread busy
    found: dict[int, Edges] = {}

    def search_alone(i: int) -> None:
        own = (room or _room(scopes[i]) * threads) // threads
        found[i] = search_tiled(scopes[i], wanted, every_row[i], one_by_one, 1, _unheard, own)

    with cores(threads, is_stopped) as for_each:
        for batch in _batches(scopes, small):
            edges = search_small([scopes[i] for i in batch], wanted, for_each)
            found.update(zip(batch, edges, strict=True))
            tracker.on_work(sum(due[i] for i in batch), 0)
        for_each(search_alone, alone, lambda i: tracker.on_work(due[i], 0))
        for i in sorted(set(rest).difference(alone)):
            found[i] = search_tiled(
                scopes[i],
                wanted,
                every_row[i],
                for_each,
                threads,
                tracker.on_work,
                room or _room(scopes[i]),
            )
    return [found[i] for i in range(len(scopes))]


def _batches(scopes: Sequence[Scope], chosen: list[int]) -> list[list[int]]:
    """Group scopes whose vectors lie in one matrix."""
    batches: dict[int, list[int]] = {}
    for i in chosen:
        batches.setdefault(id(scopes[i].vectors), []).append(i)
    return list(batches.values())


def _room(scope: Scope) -> int:
    """Blocks; and residuals beside the vectors, unless that would double what is large already."""
    n, d = len(scope.row), scope.vectors.d
    residuals = 4 * n * d if n * d * scope.vectors.itemsize <= KEPT else 0
    return BLOCKS + residuals


def _cost(scope: Scope) -> int:
    return len(scope.row) ** 2 * scope.vectors.d


def _pairs_due(scope: Scope, wanted: Wanted, anchors: range) -> int:
    is_anchor = np.zeros(len(scope.row), np.bool_)
    is_anchor[anchors.start : anchors.stop] = True
    usable = scope.usable
    label, confounder = scope.label[usable], scope.confounder[usable]
    return count_pairs(label, confounder, is_anchor[usable], every=wanted.every_pair)


def _unheard(done: int, due: int) -> None:
    """Drop what a scope on one thread reports: the whole of it counts when it is done."""
