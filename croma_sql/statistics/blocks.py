"""Rows that are compared with each other, sorted by group, and sums over their cells."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.statistics.contrasts import Float
from croma_sql.statistics.rows import Codes, Rows
from croma_sql.udfs.statistics import slices as kernels

Starts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one level that have a margin, sorted by group and then margin.

    level : which of `Rows.levels`
    row : (n,) their places in the frame
    undefined : places of the rows of this level without a margin
    starts : (groups + 1,) where each group begins
    margin : (n,) float64
    """

    level: int
    row: NDArray[np.intp]
    undefined: NDArray[np.intp]
    starts: Starts
    margin: Float


@dataclass(frozen=True, slots=True)
class Cells:
    """Sums over cells, as `croma_sql.udfs.statistics.slices` describes them.

    own, cross, mark : (cells, 6), (m, cells, 4), (cells,)
    """

    own: Float
    cross: Float
    mark: NDArray[np.uint64]


def blocks(rows: Rows) -> Iterator[Block]:
    """Take the rows of every level in which a margin is defined."""
    undefined = np.isnan(rows.value)
    order = np.lexsort((rows.value, rows.group, undefined, rows.level))
    halves = 2 * rows.level[order] + undefined[order]
    bounds = np.searchsorted(halves, np.arange(2 * len(rows.levels) + 1))
    for level in range(len(rows.levels)):
        first, middle, end = bounds[2 * level : 2 * level + 3]
        if first < middle:
            row = order[first:middle]
            new = np.diff(rows.group[row], prepend=-1) != 0
            starts = np.append(np.flatnonzero(new), len(row))
            yield Block(level, row, order[middle:end], starts, rows.value[row])


def sum_cells(
    starts: Starts,
    y: Float,
    cell: Codes,
    n_cells: int,
    outer: NDArray[np.int32],
    mark: NDArray[np.uint64] | None = None,
) -> Cells:
    """Add up the cells of one partition, and with what is around them in others."""
    found = Cells(
        np.zeros((n_cells, 6)), np.zeros((len(outer), n_cells, 4)), np.zeros(n_cells, np.uint64)
    )
    marks = np.zeros(len(y), np.uint64) if mark is None else mark
    kernels.sums(cell, outer, starts, y, marks, found.own, found.cross, found.mark)
    return found


def beside(levels: pl.DataFrame, level: int, table: pl.DataFrame) -> pl.DataFrame:
    """Put what tells a level apart in front of every row of its table."""
    keys = [column.gather(np.full(len(table), level)) for column in levels]
    return pl.DataFrame([*keys, *table])
