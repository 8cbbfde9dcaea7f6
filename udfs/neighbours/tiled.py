"""The exact neighbours of one scope, from blocks of matrix products.

 rows sorted by (label, confounder) cell          what is multiplied
 ┌────┬────┬────┐                                 SO: cells of one label, OS: cells of one
 │ SS │ SO │ OS │  upper triangle only:           confounder; the others only where neighbours of
 ├────┼────┼────┤  each block serves its          any type are wanted. A block of about 2048 x 2048
 │    │ SS │ OO │  rows and, transposed,          comes out of one float32 product; one pass offers
 ├────┼────┼────┤  its columns                    it to the lists of its rows and columns
 │    │    │ SS │                                 (`selection.keep_nearest`).
 └────┴────┴────┘

Each list keeps a few candidates more than asked for. They are measured again in float64 from the
stored vectors, and a proven bound on the float32 error says for which rows nothing nearer can have
been left out; the others are searched again, exactly (`selection.search_exactly`). So the result is
the true nearest set whatever the blocks, threads or order of rows were, to the last bit.
"""

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs.neighbours import selection
from croma_sql.udfs.neighbours.arrange import Arranged, Residuals, arrange
from croma_sql.udfs.neighbours.blocks import (
    BLOCKS,
    LEAST_BLOCK,
    Lists,
    OnWork,
    Search,
    bytes_of_blocks,
    fitting_block,
    holding,
    multiply,
)
from croma_sql.udfs.neighbours.first_ranks import Counter
from croma_sql.udfs.neighbours.tiles import OTHER, ROWS_PER_TASK, Tile, pieces, ranges, tiles
from croma_sql.udfs.scope import (
    ANY,
    OS,
    SO,
    Codes,
    Edges,
    Float,
    InMemory,
    Int,
    Neighbours,
    Scope,
    Wanted,
)
from croma_sql.udfs.threads import ForEach

EXACT_PER_TASK = 1 << 29  # multiplications, about a quarter of a second


def search_tiled(
    scope: Scope,
    wanted: Wanted,
    anchors: range,
    for_each: ForEach,
    threads: int,
    on_work: OnWork,
    room: int,
    block: int | None = None,
) -> Edges:
    """Find the neighbours of ``anchors``, a range of rows, among all rows of a scope.

    ``room`` is the memory in bytes that blocks, and residuals if they are kept, may take.
    """
    n, d = len(scope.row), scope.vectors.d
    if block is None:
        block = fitting_block(d, threads, min(BLOCKS, room), stored_too=not scope.in_memory)
    for_blocks = bytes_of_blocks(block, d, threads, stored_too=not scope.in_memory)
    arranged = arrange(scope, for_each)
    is_anchor = (arranged.order >= anchors.start) & (arranged.order < anchors.stop)
    positions = np.flatnonzero(is_anchor)
    slot = np.cumsum(is_anchor, dtype=np.int32) - 1
    work = Search(
        arranged=arranged,
        residuals=Residuals(arranged, for_each, keep=4 * n * d <= room - for_blocks),
        anchors=positions,
        slot=slot,
        for_each=for_each,
        on_work=on_work,
        block=block,
        rows_per_task=_rows_per_task(scope, wanted, room // threads),
        locks=[threading.Lock() for _ in range(len(arranged.order) // block + 1)],
    )
    depths = {SO: min(wanted.m, n), OS: min(wanted.m, n)}
    if wanted.k:
        depths[ANY] = min(wanted.k, n)
    lists = {kind: _empty_lists(is_anchor, depth) for kind, depth in depths.items()}
    todo = list(
        tiles(arranged.label, arranged.confounder, is_anchor, block, every=wanted.every_pair)
    )
    if wanted.first_ranks:
        typed = [tile for tile in todo if tile.kind != OTHER]
        _fill(work, lists, typed)
        searched_again = _settle_typed(work, lists)
        count = Counter(work, lists)
        _fill(work, lists, [tile for tile in todo if tile.kind == OTHER], count)
        searched_again += _settle_any(work, lists)
        first = count.ranks(typed)
    else:
        _fill(work, lists, todo)
        searched_again = _settle_typed(work, lists) + _settle_any(work, lists)
        first = np.zeros((2, len(positions)), np.int64)
    return _in_scope_order(scope, work, anchors, lists, first, searched_again)


def bytes_per_anchor(wanted: Wanted) -> int:
    """Memory that the search and its result take per sample whose neighbours are wanted."""
    lists = [wanted.m, wanted.m, *([wanted.k] if wanted.k else [])]
    return sum(16 * _width(depth) + 24 * depth + 8 for depth in lists) + 64


def least_room(d: int, itemsize: int, wanted: Wanted, threads: int) -> int:
    """Memory below which not even the smallest blocks fit, nor the candidates of one sample."""
    candidates = threads * _bytes_of_candidates(wanted, d, itemsize)
    return max(bytes_of_blocks(LEAST_BLOCK, d, threads, stored_too=True), candidates)


def _rows_per_task(scope: Scope, wanted: Wanted, room: int) -> int:
    """Rows that are measured exactly at a time: their candidates must fit where they are read."""
    if scope.in_memory:
        return ROWS_PER_TASK
    fits = room // _bytes_of_candidates(wanted, scope.vectors.d, scope.vectors.itemsize)
    return max(1, min(ROWS_PER_TASK, fits))


def _bytes_of_candidates(wanted: Wanted, d: int, itemsize: int) -> int:
    return 2 * _width(max(wanted.m, wanted.k)) * d * itemsize


def _width(depth: int) -> int:
    """Candidates kept of a type, so that the float32 error rarely costs a row a second search."""
    return depth + max(8, depth // 8)


def _empty_lists(is_anchor: NDArray[np.bool_], depth: int) -> Lists:
    a = int(is_anchor.sum())
    width = min(_width(depth), len(is_anchor))
    return Lists(
        key=np.empty((a, max(2, 2 * width)), np.uint64),
        count=np.zeros(a, np.int32),
        limit=np.where(is_anchor, np.float32(np.inf), np.float32(-1.0)),
        best=np.full((a, depth), np.inf),
        who=np.full((a, depth), -1, np.int32),
        proven=np.zeros(a, np.bool_),
    )


def _fill(
    work: Search, lists: dict[int, Lists], todo: Iterable[Tile], count: Counter | None = None
) -> None:
    """Multiply tiles and offer each to the lists of its type and to those of any type."""
    arranged = work.arranged

    def offer(tile: Tile) -> None:
        product = work.residuals.product(tile.rows, tile.cols)
        with holding(work, tile):
            for kind in (tile.kind, ANY):
                if kind in lists:
                    wanted = lists[kind]
                    selection.keep_nearest(
                        product, tile.rows, tile.cols, arranged.half, arranged.group,
                        work.slot, wanted.key, wanted.count, wanted.limit,
                    )  # fmt: skip
            if count is not None:
                count.add(tile, product, (SO, OS))

    multiply(work, offer, todo)


def _settle_typed(work: Search, lists: dict[int, Lists]) -> int:
    nobody = np.empty((len(work.anchors), 0))
    return _settle(work, lists, (SO, OS), nobody, nobody.astype(np.int32))


def _settle_any(work: Search, lists: dict[int, Lists]) -> int:
    """Typed neighbours, which are often among the nearest of any type, are not measured again."""
    if ANY not in lists:
        return 0
    known_best = np.hstack([lists[kind].best for kind in (SO, OS)])
    known_who = np.hstack([lists[kind].who for kind in (SO, OS)])
    return _settle(work, lists, (ANY,), known_best, known_who)


def _settle(
    work: Search,
    lists: dict[int, Lists],
    settled: tuple[int, ...],
    known_best: Float,
    known_who: Codes,
) -> int:
    """Make lists exact; returns how many rows had to be searched again."""
    _order(work, lists, settled, known_best, known_who)
    searched_again = 0
    for kind in settled:
        left = np.flatnonzero(~lists[kind].proven)
        searched_again += len(left)
        _search_again(work, lists[kind], kind, work.anchors[left])
    return searched_again


def _order(
    work: Search,
    lists: dict[int, Lists],
    kinds: tuple[int, ...],
    known_best: Float,
    known_who: Codes,
) -> None:
    """Measure what the lists kept exactly; tell for which rows that is the true nearest set."""
    arranged = work.arranged
    longest = arranged.radius.max(initial=0.0)

    def order(task: tuple[int, range]) -> None:
        kind, rows = task
        some = lists[kind]
        near = arranged.near(
            work.anchors[rows.start : rows.stop], *_candidates(arranged, some, rows)
        )
        selection.order_exactly(
            *near, arranged.square, arranged.rank, work.anchors,
            some.key, some.count, some.limit, arranged.radius, longest, known_best, known_who,
            some.best, some.who, some.proven, rows.start, rows.stop,
        )  # fmt: skip

    work.for_each(
        order,
        [(kind, rows) for kind in kinds for rows in ranges(len(work.anchors), work.rows_per_task)],
    )


def _candidates(arranged: Arranged, lists: Lists, rows: range) -> list[NDArray[np.uint32]]:
    if isinstance(arranged.vectors, InMemory):
        return []  # they are all there
    kept = np.arange(lists.key.shape[1]) < lists.count[rows.start : rows.stop, None]
    return [selection.positions(lists.key[rows.start : rows.stop][kept])]


def _search_again(work: Search, lists: Lists, kind: int, left: Int) -> None:
    """Search the positions ``left`` over every position, measuring whatever could matter."""
    arranged = work.arranged
    n = len(arranged.order)

    def search(rows: Int) -> None:
        for cols in pieces(np.arange(n), work.block):
            selection.search_exactly(
                work.residuals.product(rows, cols), rows, cols[0],
                arranged.half, arranged.label, arranged.confounder, arranged.group, kind,
                *arranged.near(rows, cols), arranged.square, arranged.rank, arranged.radius,
                work.slot, lists.best, lists.who,
            )  # fmt: skip

    # In the worst case every pair of a task is measured exactly, and Ctrl-C waits for a task.
    affordable = EXACT_PER_TASK // max(1, n * arranged.vectors.d)
    work.on_work(0, len(left) * n)
    work.for_each(
        search,
        pieces(left, max(1, min(work.block, ROWS_PER_TASK, affordable))),
        lambda rows: work.on_work(len(rows) * n, 0),
    )


def _in_scope_order(
    scope: Scope,
    work: Search,
    anchors: range,
    lists: dict[int, Lists],
    first: Int,
    searched_again: int,
) -> Edges:
    order = work.arranged.order
    rows = order[work.anchors] - anchors.start

    def placed(kind: int) -> Neighbours:
        depth = lists[kind].best.shape[1] if kind in lists else 0
        neighbour = np.full((len(anchors), depth), -1, np.int32)
        distance = np.full((len(anchors), depth), np.nan)

        def place(some: range) -> None:
            selection.place(
                order, work.anchors, anchors.start, lists[kind].best, lists[kind].who,
                neighbour, distance, some.start, some.stop,
            )  # fmt: skip

        if depth:
            work.for_each(place, ranges(len(rows)))
        return Neighbours(neighbour, distance)

    first_rank = np.zeros((2, len(anchors)), np.int64)
    first_rank[:, rows] = first
    return Edges(
        so=placed(SO),
        os=placed(OS),
        nearest=placed(ANY),
        first_so_rank=first_rank[SO],
        first_os_rank=first_rank[OS],
        usable=scope.usable[anchors.start : anchors.stop],
        searched_again=searched_again,
    )
