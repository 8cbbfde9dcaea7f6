"""Where the first SO and the first OS stand among all eligible candidates of a sample."""

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs.neighbours import ranks
from croma_sql.udfs.neighbours.blocks import Lists, Search, holding, multiply
from croma_sql.udfs.neighbours.tiles import Tile
from croma_sql.udfs.scope import OS, SO, Int


class Counter:
    """Ranks of the first SO and OS among all eligible candidates; the typed lists are settled.

    Nobody of a type is nearer than the first of that type. So the first SO needs counts over OS,
    which its list of OS may already give, and over the pairs that are neither.
    """

    def __init__(self, work: Search, lists: dict[int, Lists]) -> None:
        self._work, self._lists = work, lists
        self._first = np.stack([lists[kind].best[:, 0] for kind in (SO, OS)])
        self._position = np.stack([lists[kind].who[:, 0] for kind in (SO, OS)])
        self._nearer = np.zeros((2, len(work.anchors)), np.int64)
        self._sure, self._unsure = self._thresholds(np.isfinite(self._first))

    def _thresholds(
        self, open_: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        arranged = self._work.arranged
        sure, unsure = (np.full((2, len(arranged.order)), -1, np.float32) for _ in range(2))
        ranks.thresholds(
            self._work.anchors, np.where(open_, self._first, np.inf), arranged.radius,
            arranged.radius.max(initial=0.0), arranged.vectors.d, sure, unsure,
        )  # fmt: skip
        return sure, unsure

    def add(self, tile: Tile, product: NDArray[np.float32], kinds: Iterable[int]) -> None:
        """Count in one block, whose lists are locked."""
        arranged = self._work.arranged
        near = arranged.near(tile.rows, tile.cols)
        for kind in kinds:
            ranks.count_nearer(
                kind, product, tile.rows, tile.cols, arranged.half, arranged.group,
                self._work.slot, self._first, self._position, self._sure, self._unsure,
                self._nearer, *near, arranged.square, arranged.rank,
            )  # fmt: skip

    def ranks(self, typed: list[Tile]) -> Int:
        """Finish the counts; multiplies again the tiles of rows whose lists were too short."""
        open_ = np.isfinite(self._first)
        for kind, other in ((SO, OS), (OS, SO)):
            nearer = self._nearer_in(self._lists[other], kind)
            known = nearer < self._lists[other].best.shape[1]
            self._nearer[kind] += np.where(known, nearer, 0)
            open_[kind] &= ~known
        self._sure, self._unsure = self._thresholds(open_)
        asked = self._unsure >= 0
        for kind, other in ((SO, OS), (OS, SO)):
            again = [
                tile
                for tile in typed
                if tile.kind == other
                and (asked[kind, tile.rows].any() or asked[kind, tile.cols].any())
            ]
            self._work.on_work(0, sum(tile.pairs for tile in again))
            multiply(self._work, partial(self._count, kind), again)
        return np.where(np.isfinite(self._first), self._nearer + 1, 0)

    def _count(self, kind: int, tile: Tile) -> None:
        product = self._work.residuals.product(tile.rows, tile.cols)
        with holding(self._work, tile):
            self.add(tile, product, (kind,))

    def _nearer_in(self, others: Lists, kind: int) -> Int:
        """How many of a settled list are nearer than the first of ``kind``."""
        first, rank = self._first[kind][:, None], self._work.arranged.rank
        tied = rank[others.who] < rank[self._position[kind]][:, None]
        nearer = (others.best < first) | ((others.best == first) & tied)
        counts: Int = (nearer & (others.who >= 0)).sum(axis=1)
        return counts
