"""Which pairs are multiplied, in which blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs.scope import OS, SO, Codes, Int

OTHER = 3  # pairs that agree on both label and confounder, or on neither
ROWS_PER_TASK = 512
DIAGONAL = 512  # a block on the diagonal is multiplied twice over: smaller ones waste less


@dataclass(frozen=True, slots=True)
class Tile:
    """Ascending positions whose pairs are all of one type, in both directions.

    Where rows and columns are the same positions, each pair stands in the tile twice.
    """

    kind: int
    rows: Int
    cols: Int

    @property
    def pairs(self) -> int:
        """Pairs of samples in the tile."""
        if self.rows[0] == self.cols[0]:
            return len(self.rows) * (len(self.rows) - 1) // 2
        return len(self.rows) * len(self.cols)


def tiles(
    label: Codes, confounder: Codes, anchor: NDArray[np.bool_], block: int, *, every: bool
) -> Iterator[Tile]:
    """Every pair of positions of one type once, if one of the two is an anchor.

    Positions are sorted by cell. A tile joins rows of one cell with all later cells it shares a
    type with, so that many small cells still make few and large products. Rows are anchors, and
    columns anchors of later cells; candidates that are no anchors are columns of every row.

    Parameters
    ----------
    label, confounder : (n,) codes
    anchor : (n,) bool
    block : most rows and columns of a tile
    every : also the pairs that are neither SO nor OS
    """
    n = len(label)
    first = np.flatnonzero(
        (np.diff(label, prepend=-1) != 0) | (np.diff(confounder, prepend=-1) != 0)
    )
    members = [np.arange(start, stop) for start, stop in pairwise([*first, n])]
    anchors = [some[anchor[some]] for some in members]
    others = [some[~anchor[some]] for some in members]
    for cell, rows in enumerate(anchors):
        if not len(rows):
            continue
        same_label = label[first] == label[first[cell]]
        same_confounder = confounder[first] == confounder[first[cell]]
        kinds = [(SO, same_label & ~same_confounder), (OS, ~same_label & same_confounder)]
        if every:
            kinds.append((OTHER, same_label == same_confounder))
            yield from _triangle(rows, block)
        for kind, partners in kinds:
            chosen = np.flatnonzero(partners)
            cols = [
                *(anchors[c] for c in chosen[chosen > cell]),
                *(others[c] for c in chosen),
            ]
            yield from _rectangle(kind, rows, np.sort(np.concatenate([rows[:0], *cols])), block)


def count_pairs(label: Codes, confounder: Codes, anchor: NDArray[np.bool_], *, every: bool) -> int:
    """Count the pairs in `tiles`, of samples in any order."""
    if every:
        return _pairs_within(np.zeros(len(label), np.int64), anchor)
    cell = label.astype(np.int64) * (int(confounder.max(initial=0)) + 1) + confounder
    same = [_pairs_within(codes, anchor) for codes in (label, confounder, cell)]
    return same[0] + same[1] - 2 * same[2]


def _pairs_within(codes: NDArray[np.integer], anchor: NDArray[np.bool_]) -> int:
    """Count pairs of the same code of which one is an anchor."""
    _, codes = np.unique(codes, return_inverse=True)
    anchors, others = np.bincount(codes[anchor]), np.bincount(codes[~anchor])
    both = min(len(anchors), len(others))
    return int((anchors * (anchors - 1)).sum() // 2 + (anchors[:both] * others[:both]).sum())


def _rectangle(kind: int, rows: Int, cols: Int, block: int) -> Iterator[Tile]:
    for some_rows in pieces(rows, block):
        for some_cols in pieces(cols, block):
            yield Tile(kind, some_rows, some_cols)


def _triangle(positions: Int, block: int) -> Iterator[Tile]:
    """Pairs within one cell: halves against each other, then each half by itself."""
    if len(positions) <= min(block, DIAGONAL):
        yield Tile(OTHER, positions, positions)
        return
    middle = len(positions) // 2
    yield from _rectangle(OTHER, positions[:middle], positions[middle:], block)
    yield from _triangle(positions[:middle], block)
    yield from _triangle(positions[middle:], block)


def pieces(positions: Int, block: int) -> list[Int]:
    """Cut into equal pieces of at most ``block``; none of nothing."""
    if not len(positions):
        return []
    return np.array_split(positions, -(-len(positions) // block))


def ranges(n: int, rows: int = ROWS_PER_TASK) -> list[range]:
    """Ranges of rows, each a task for a thread."""
    return [range(start, min(start + rows, n)) for start in range(0, n, rows)]
