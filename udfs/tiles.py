"""Which pairs are multiplied, in which blocks."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs.scope import OS, SO, Codes, Int

ROWS_PER_TASK = 512


@dataclass(frozen=True, slots=True)
class Tile:
    """Ascending positions whose pairs are all of one type, in both directions."""

    kind: int
    rows: Int
    cols: Int


def tiles(label: Codes, confounder: Codes, block: int) -> Iterator[Tile]:
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
            for some_rows in pieces(np.arange(start, stop), block):
                for some_cols in pieces(cols, block):
                    yield Tile(kind, some_rows, some_cols)


def pieces(positions: Int, block: int) -> list[Int]:
    """Cut into equal pieces of at most ``block``."""
    return np.array_split(positions, -(-len(positions) // block))


def ranges(n: int) -> list[range]:
    """Ranges of rows, each a task for a thread."""
    return [range(start, min(start + ROWS_PER_TASK, n)) for start in range(0, n, ROWS_PER_TASK)]


def product(
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
