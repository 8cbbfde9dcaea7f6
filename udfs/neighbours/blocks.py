"""What a search by blocks works on, and multiplying a list of tiles."""

import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs.neighbours.arrange import Arranged, Residuals
from croma_sql.udfs.neighbours.tiles import Tile
from croma_sql.udfs.scope import Codes, Float, Int
from croma_sql.udfs.threads import ForEach

BLOCK = 2048
LEAST_BLOCK = 256
BLOCKS = 256 << 20  # bytes that the blocks of all threads take together at the most

OnWork = Callable[[int, int], None]  # gets distances done, and distances found to be due


@dataclass(frozen=True, slots=True)
class Lists:
    """Candidates of one type (see `selection`), and what has been measured exactly of them."""

    key: NDArray[np.uint64]
    count: Codes
    limit: NDArray[np.float32]
    best: Float
    who: Codes
    proven: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Search:
    """One search: what it reads, the samples whose neighbours are wanted, and how to work.

    anchors : (a,) positions; slot : (n,) int32, row of a position among the anchors
    """

    arranged: Arranged
    residuals: Residuals
    anchors: Int
    slot: Codes
    for_each: ForEach
    on_work: OnWork
    block: int
    rows_per_task: int
    locks: list[threading.Lock]


def bytes_of_blocks(block: int, d: int, threads: int, *, stored_too: bool) -> int:
    """Residuals of rows and columns and their product, per thread; also as stored, if read anew."""
    return threads * ((16 if stored_too else 8) * block * d + 4 * block**2)


def fitting_block(d: int, threads: int, room: int, *, stored_too: bool) -> int:
    """Rows of a block such that the blocks of all threads fit."""
    block = BLOCK
    while block > LEAST_BLOCK and bytes_of_blocks(block, d, threads, stored_too=stored_too) > room:
        block -= LEAST_BLOCK // 4
    return block


def multiply(work: Search, offer: Callable[[Tile], None], todo: Iterable[Tile]) -> None:
    """Spread tiles over the threads, and report what is done."""
    shuffled = list(todo)
    # Neighbouring tiles share rows and would wait for each other's lists: a fixed shuffle. The
    # smallest come last, so that no thread is left with a large one at the end.
    np.random.default_rng(0).shuffle(shuffled)
    shuffled.sort(key=lambda tile: -tile.pairs)
    work.for_each(offer, shuffled, lambda tile: work.on_work(tile.pairs, 0))


def holding(work: Search, tile: Tile) -> ExitStack:
    """Lock the lists of a tile's rows and columns."""
    held = ExitStack()
    for lock in np.union1d(tile.rows // work.block, tile.cols // work.block):
        held.enter_context(work.locks[lock])  # ascending: two tiles cannot wait for each other
    return held
