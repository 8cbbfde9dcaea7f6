"""The exact m nearest SO and OS neighbours of every sample.

 rows sorted by (label, confounder) cell          what is multiplied
 ┌────┬────┬────┐                                 SO: cells of one label, OS: cells of one
 │ SS │ SO │ OS │  upper triangle only:           confounder. SS and OO blocks never are.
 ├────┼────┼────┤  each block serves its          A block of about 2048 x 2048 comes out of one
 │    │ SS │ OO │  rows and, transposed,          float32 product; one pass offers it to the lists
 ├────┼────┼────┤  its columns                    of its rows and columns (`kernels.keep_best`).
 │    │    │ SS │
 └────┴────┴────┘

Each list keeps a few candidates more than ``m``. They are measured again in float64 from the stored
vectors, and a proven bound on the float32 error says for which rows nothing nearer can have been
left out; the others are searched again, exactly (`kernels.search_exactly`). So the result is the
true nearest set whatever the blocks, threads or order of rows were, to the last bit.
"""

import threading
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs import kernels
from croma_sql.udfs.arrange import Arranged, arrange
from croma_sql.udfs.scope import OS, SO, Codes, Edges, Float, Int, Scope
from croma_sql.udfs.threads import ForEach, available_cores, cores
from croma_sql.udfs.tiles import ROWS_PER_TASK, Tile, pieces, product, ranges, tiles

BLOCK = 2048
EXACT_PER_TASK = 1 << 29  # multiplications, about a quarter of a second
WORTH_SPREADING = 1 << 26  # multiplications below which a pool costs more than it saves


def typed_neighbours(
    scope: Scope,
    m: int,
    *,
    threads: int | None = None,
    on_progress: Callable[[float], None] | None = None,
    block: int = BLOCK,
) -> Edges:
    """Find the ``m`` nearest SO and OS neighbours of every usable row.

    Parameters
    ----------
    scope : Scope
    m : int, at least 1
    threads : int, optional
        Default: every core this process may use.
    on_progress : callable, optional
        Gets the share of the multiply work done, in [0, 1], in the calling thread.
    block : int
        Rows and columns of one matrix product. The result does not depend on it.

    Returns
    -------
    Edges

    Examples
    --------
    >>> import numpy as np
    >>> codes = lambda *values: np.array(values, np.int32)
    >>> scope = Scope(
    ...     vectors=np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]),
    ...     label=codes(0, 0, 1, 1), confounder=codes(0, 1, 0, 1), group=codes(0, 1, 2, 3),
    ...     rank=np.arange(4), usable=np.ones(4, bool))
    >>> typed_neighbours(scope, 1).distance[SO, :, 0].round(2).tolist()
    [0.2, 0.2, 0.2, 0.2]
    """
    small = len(scope.label) ** 2 * scope.vectors.shape[1] < WORTH_SPREADING
    with cores(1 if small else threads or available_cores()) as for_each:
        arranged = arrange(scope, for_each)
        depth = min(m, len(scope.label))
        best = np.full((2, len(arranged.order), depth), np.inf)
        who = np.full((2, len(arranged.order), depth), -1, np.int32)
        proven = _search(arranged, best, who, for_each, on_progress, block)
        searched_again = 0
        for kind in (SO, OS):
            left = np.flatnonzero(~proven[kind])
            searched_again += len(left)
            _search_again(arranged, kind, left, best[kind], who[kind], for_each, block)
    return _in_scope_order(scope, arranged.order, best, who, searched_again)


def _search(
    arranged: Arranged,
    best: Float,
    who: Codes,
    for_each: ForEach,
    on_progress: Callable[[float], None] | None,
    block: int,
) -> NDArray[np.bool_]:
    n, m = best.shape[1:]
    width = min(m + max(8, m // 2), n)
    score = np.full((2, n, width), -np.inf, np.float32)
    index = np.full((2, n, width), -1, np.int32)
    floor = np.full((2, n), -np.inf, np.float32)
    todo = list(tiles(arranged.label, arranged.confounder, block))
    total = sum(len(tile.rows) * len(tile.cols) for tile in todo)
    # Neighbouring tiles share rows and would wait for each other's lists: a fixed shuffle.
    np.random.default_rng(0).shuffle(todo)
    locks = [[threading.Lock() for _ in range(n // block + 1)] for _ in (SO, OS)]
    scratch = threading.local()

    def offer(tile: Tile) -> None:
        products = product(arranged.residual, tile.rows, tile.cols, scratch, block)
        touched = np.union1d(tile.rows // block, tile.cols // block)
        with ExitStack() as held:
            for lock in touched:  # ascending, so that two tiles cannot wait for each other
                held.enter_context(locks[tile.kind][lock])
            kernels.keep_best(
                products, tile.rows, tile.cols, arranged.half, arranged.group,
                score[tile.kind], index[tile.kind], floor[tile.kind],
            )  # fmt: skip

    done = 0

    def count(tile: Tile) -> None:
        nonlocal done
        done += len(tile.rows) * len(tile.cols)
        if on_progress is not None:
            on_progress(done / total)

    for_each(offer, todo, count)
    return _prove(arranged, score, index, best, who, for_each)


def _prove(
    arranged: Arranged,
    score: NDArray[np.float32],
    index: Codes,
    best: Float,
    who: Codes,
    for_each: ForEach,
) -> NDArray[np.bool_]:
    """Measure what the lists kept exactly; tell for which rows that is the true nearest set."""
    n = len(arranged.order)
    proven = np.empty((2, n), np.bool_)
    longest = arranged.radius.max(initial=0.0)

    def order_exactly(task: tuple[int, range]) -> None:
        kind, rows = task
        kernels.rerank(
            arranged.stored, arranged.square, arranged.order, arranged.rank,
            score[kind], index[kind], arranged.radius, longest,
            best[kind], who[kind], proven[kind], rows.start, rows.stop,
        )  # fmt: skip

    for_each(order_exactly, [(kind, rows) for kind in (SO, OS) for rows in ranges(n)])
    return proven


def _search_again(
    arranged: Arranged,
    kind: int,
    left: Int,
    best: Float,
    who: Codes,
    for_each: ForEach,
    block: int,
) -> None:
    """Search the rows ``left`` over every position, measuring exactly whatever could matter."""
    scratch = threading.local()
    n = len(arranged.order)

    def search(rows: Int) -> None:
        for cols in pieces(np.arange(n), block):
            kernels.search_exactly(
                product(arranged.residual, rows, cols, scratch, block), rows, cols[0],
                arranged.half, arranged.label, arranged.confounder, arranged.group, kind == SO,
                arranged.stored, arranged.square, arranged.order, arranged.rank, arranged.radius,
                best, who,
            )  # fmt: skip

    # In the worst case every pair of a task is measured exactly, and Ctrl-C waits for a task.
    if len(left):
        affordable = EXACT_PER_TASK // arranged.residual.size
        for_each(search, pieces(left, max(1, min(block, ROWS_PER_TASK, affordable))))


def _in_scope_order(
    scope: Scope, order: Int, best: Float, who: Codes, searched_again: int
) -> Edges:
    n, m = len(scope.label), best.shape[2]
    neighbour = np.full((2, n, m), -1, np.int64)
    distance = np.full((2, n, m), np.nan)
    found = who >= 0
    neighbour[:, order] = np.where(found, order[who], -1)
    distance[:, order] = np.where(found, best, np.nan)
    return Edges(neighbour, distance, scope.usable, searched_again)
