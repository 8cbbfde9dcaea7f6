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
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs import kernels
from croma_sql.udfs.threads import ForEach, available_cores, cores

SO, OS = 0, 1
BLOCK = 2048
ROWS_PER_TASK = 512
EXACT_PER_TASK = 1 << 29  # multiplications, about a quarter of a second
CENTRE_ROWS = 4096
WORTH_SPREADING = 1 << 26  # multiplications below which a pool costs more than it saves

Int = NDArray[np.int64]
Codes = NDArray[np.int32]
Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scope:
    """Rows scored together, as arrays: what `croma_sql.cohort` has validated.

    vectors : (n, d) float16, float32 or float64, C-contiguous
    label, confounder, group : (n,) int32 codes
    rank : (n,) int64, place of each row in the order that breaks ties
    usable : (n,) bool; the others are neither anchors nor candidates
    """

    vectors: NDArray[np.floating]
    label: Codes
    confounder: Codes
    group: Codes
    rank: Int
    usable: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Edges:
    """Typed neighbours of every row of a scope, nearest first. Axis 0 is SO, OS.

    neighbour : (2, n, min(m, n)) int64, row of the scope, -1 where there are fewer
    distance : (2, n, min(m, n)) float64 cosine distance, NaN where there are fewer
    usable : (n,) bool, as in the scope
    searched_again : rows whose first pass could not be proven (a matter of cost, never of result)
    """

    neighbour: Int
    distance: Float
    usable: NDArray[np.bool_]
    searched_again: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """A scope in the order of the search; everything below is indexed by position in it."""

    stored: NDArray[np.generic]
    square: Float
    order: Int
    rank: Int
    label: Codes
    confounder: Codes
    group: Codes
    residual: NDArray[np.float32]
    half: NDArray[np.float32]
    radius: Float


@dataclass(frozen=True, slots=True)
class _Tile:
    kind: int
    rows: Int
    cols: Int


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
        layout = _lay_out(scope, for_each)
        depth = min(m, len(scope.label))
        best = np.full((2, len(layout.order), depth), np.inf)
        who = np.full((2, len(layout.order), depth), -1, np.int32)
        proven = _search(layout, best, who, for_each, on_progress, block)
        searched_again = 0
        for kind in (SO, OS):
            left = np.flatnonzero(~proven[kind])
            searched_again += len(left)
            _search_again(layout, kind, left, best[kind], who[kind], for_each, block)
    return _in_scope_order(scope, layout.order, best, who, searched_again)


def _lay_out(scope: Scope, for_each: ForEach) -> _Layout:
    vectors = scope.vectors
    stored = vectors.view(np.uint16) if vectors.dtype == np.float16 else vectors
    order = np.lexsort((scope.rank, scope.confounder, scope.label))
    order = order[scope.usable[order]]
    n, d = len(order), vectors.shape[1]
    square = np.empty(len(stored))
    for_each(
        lambda rows: kernels.squared_norms(stored, square, rows.start, rows.stop),
        _ranges(len(stored)),
    )
    # Any centre is right; a sample of rows gives one that is good enough to shorten the residuals.
    sample = order[:: max(1, n // CENTRE_ROWS)]
    centre = np.zeros(d)
    kernels.unit_sums(stored, square, sample, centre)
    centre /= max(1, len(sample))
    residual, half = np.empty((n, d), np.float32), np.empty(n, np.float32)
    for_each(
        lambda rows: kernels.residuals(
            stored, square, order, centre, residual, half, rows.start, rows.stop
        ),
        _ranges(n),
    )
    return _Layout(
        stored=stored,
        square=square,
        order=order,
        rank=scope.rank[order],
        label=scope.label[order],
        confounder=scope.confounder[order],
        group=scope.group[order],
        residual=residual,
        half=half,
        radius=np.sqrt(2.0 * half.astype(np.float64)) * (1 + 4 * kernels.ROUNDING),
    )


def _search(
    layout: _Layout,
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
    tiles = list(_tiles(layout.label, layout.confounder, block))
    total = sum(len(tile.rows) * len(tile.cols) for tile in tiles)
    # Neighbouring tiles share rows and would wait for each other's lists: a fixed shuffle.
    np.random.default_rng(0).shuffle(tiles)
    locks = [[threading.Lock() for _ in range(n // block + 1)] for _ in (SO, OS)]
    scratch = threading.local()

    def offer(tile: _Tile) -> None:
        product = _product(layout.residual, tile.rows, tile.cols, scratch, block)
        touched = np.union1d(tile.rows // block, tile.cols // block)
        with ExitStack() as held:
            for lock in touched:  # ascending, so that two tiles cannot wait for each other
                held.enter_context(locks[tile.kind][lock])
            kernels.keep_best(
                product, tile.rows, tile.cols, layout.half, layout.group,
                score[tile.kind], index[tile.kind], floor[tile.kind],
            )  # fmt: skip

    done = 0

    def count(tile: _Tile) -> None:
        nonlocal done
        done += len(tile.rows) * len(tile.cols)
        if on_progress is not None:
            on_progress(done / total)

    for_each(offer, tiles, count)
    proven = np.empty((2, n), np.bool_)

    longest = layout.radius.max(initial=0.0)

    def order_exactly(task: tuple[int, range]) -> None:
        kind, rows = task
        kernels.rerank(
            layout.stored, layout.square, layout.order, layout.rank, score[kind], index[kind],
            layout.radius, longest, best[kind], who[kind], proven[kind], rows.start, rows.stop,
        )  # fmt: skip

    for_each(order_exactly, [(kind, rows) for kind in (SO, OS) for rows in _ranges(n)])
    return proven


def _product(
    residual: NDArray[np.float32], rows: Int, cols: Int, scratch: threading.local, block: int
) -> NDArray[np.float32]:
    """r_rows . r_cols, in this thread's own block of memory."""
    if not hasattr(scratch, "product"):
        scratch.product = np.empty(block * block, np.float32)
    out: NDArray[np.float32] = scratch.product[: len(rows) * len(cols)].reshape(
        len(rows), len(cols)
    )
    np.matmul(_take(residual, rows), _take(residual, cols).T, out=out)
    return out


def _take(residual: NDArray[np.float32], positions: Int) -> NDArray[np.float32]:
    """Rows at ascending positions: a view where they are contiguous, else a copy."""
    first, last = positions[0], positions[-1]
    if last - first + 1 == len(positions):
        return residual[first : last + 1]
    return residual[positions]


def _tiles(label: Codes, confounder: Codes, block: int) -> Iterator[_Tile]:
    """Every pair of positions of one type once, in blocks. Positions are sorted by cell.

    A tile joins rows of one cell with all later cells it shares a type with, so that many small
    cells still make few and large products.
    """
    n = len(label)
    first = np.flatnonzero(
        (np.diff(label, prepend=-1) != 0) | (np.diff(confounder, prepend=-1) != 0)
    )
    bounds = np.append(first, n)
    for cell, (start, stop) in enumerate(pairwise(bounds)):
        later = first[cell + 1 :]
        same_label = label[later] == label[start]
        same_confounder = confounder[later] == confounder[start]
        for kind, partners in (
            (SO, same_label & ~same_confounder),
            (OS, ~same_label & same_confounder),
        ):
            chosen = cell + 1 + np.flatnonzero(partners)
            if not len(chosen):
                continue
            cols = np.concatenate([np.arange(bounds[c], bounds[c + 1]) for c in chosen])
            for some_rows in _pieces(np.arange(start, stop), block):
                for some_cols in _pieces(cols, block):
                    yield _Tile(kind, some_rows, some_cols)


def _pieces(positions: Int, block: int) -> list[Int]:
    """Cut into equal pieces of at most ``block``."""
    return np.array_split(positions, -(-len(positions) // block))


def _ranges(n: int) -> list[range]:
    return [range(start, min(start + ROWS_PER_TASK, n)) for start in range(0, n, ROWS_PER_TASK)]


def _search_again(
    layout: _Layout,
    kind: int,
    left: Int,
    best: Float,
    who: Codes,
    for_each: ForEach,
    block: int,
) -> None:
    """Search the rows ``left`` over every position, measuring exactly whatever could matter."""
    scratch = threading.local()
    n = len(layout.order)

    def search(rows: Int) -> None:
        for cols in _pieces(np.arange(n), block):
            kernels.search_exactly(
                _product(layout.residual, rows, cols, scratch, block), rows, cols[0],
                layout.half, layout.label, layout.confounder, layout.group, kind == SO,
                layout.stored, layout.square, layout.order, layout.rank, layout.radius, best, who,
            )  # fmt: skip

    # In the worst case every pair of a task is measured exactly, and Ctrl-C waits for a task.
    if len(left):
        affordable = EXACT_PER_TASK // layout.residual.size
        for_each(search, _pieces(left, max(1, min(block, ROWS_PER_TASK, affordable))))


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
