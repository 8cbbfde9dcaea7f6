"""Every combination of attribute values that enough rows share, with its sums over groups.

A slice is cut from those with one condition fewer, its parents. What lies within a slice that is
too small is too small as well and never looked at, so the work grows with what there is to see and
not with all combinations of values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError
from croma_sql.statistics.blocks import Cells, Starts, sum_cells
from croma_sql.statistics.contrasts import Float
from croma_sql.statistics.rows import Codes
from croma_sql.udfs.statistics import slices as kernels

Combination = tuple[int, ...]
MOST_CELLS = 2**22  # of one combination of attributes, about a gigabyte of sums


@dataclass(frozen=True, slots=True)
class Slices:
    """One entry per slice; the first is the whole, without a condition.

    attribute, code : (slices, most) its conditions, -1 where there are fewer
    parent : (slices, most) the slices it is cut from, -1 where there are fewer or it is the whole
    own : (slices, 6) sums over groups, see `croma_sql.udfs.statistics.slices`
    cross : (slices, 1 + most, 4) with the whole and with each parent
    mark : (slices,) the same for slices of the same rows
    """

    attribute: Codes
    code: Codes
    parent: NDArray[np.int64]
    own: Float
    cross: Float
    mark: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.mark)

    def where(self, which: NDArray[np.intp]) -> "Slices":
        """Take some of the slices; their parents are still numbered among all."""
        return Slices(*(getattr(self, field.name)[which] for field in fields(self)))

    def conditions(self, which: int) -> list[tuple[int, int]]:
        """Attribute and code of each condition of a slice."""
        n = int((self.attribute[which] >= 0).sum())
        return list(
            zip(self.attribute[which, :n].tolist(), self.code[which, :n].tolist(), strict=True)
        )


def find_slices(
    starts: Starts, y: Float, codes: Sequence[Codes], *, most: int, min_size: int, min_groups: int
) -> Slices:
    """Cut all rows by every combination of up to ``most`` attributes.

    Parameters
    ----------
    starts : (groups + 1,) where each group begins
    y : (n,) float64, what is summed
    codes : per attribute, (n,) int32 which value each row has
    most : conditions of a slice
    min_size, min_groups : rows that a slice has, and groups that hold any of them

    Raises
    ------
    StatisticsError
        More combinations of values than memory holds.
    """
    lattice = _Lattice(starts, y, codes, min_size, min_groups)
    found = [
        lattice.cut(combination, most)
        for size in range(most + 1)
        for combination in combinations(range(len(codes)), size)
    ]
    columns = (
        np.concatenate([getattr(some, field.name) for some in found]) for field in fields(Slices)
    )
    return Slices(*columns)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Cells of one combination of attributes that are large enough, numbered from 0.

    number : (cells,) -1 where too small
    condition : (kept, attributes) each condition's number among those kept of its attribute alone
    first : how many slices there are before
    """

    number: Codes
    condition: Codes
    first: int

    def __len__(self) -> int:
        return len(self.condition)


class _Lattice:
    """What has been cut; a combination comes after all that it contains."""

    def __init__(
        self, starts: Starts, y: Float, codes: Sequence[Codes], min_size: int, min_groups: int
    ) -> None:
        self.starts, self.y, self.codes = starts, y, codes
        self.min_size, self.min_groups = min_size, min_groups
        self.mark = np.random.default_rng(0).integers(2**64, size=len(y), dtype=np.uint64)
        self.whole = np.zeros(len(y), np.int32)
        self.kept: dict[Combination, _Kept] = {}
        self.value: dict[int, Codes] = {}  # by attribute, the codes of its values that are kept
        self.n_found = 0
        self.cell_of_rows = lru_cache(maxsize=len(codes) + 2)(self._cell_of_rows)

    def cut(self, combination: Combination, most: int) -> Slices:
        """Find the slices of one combination of attributes."""
        size = len(combination)
        parents = list(combinations(combination, size - 1)) if size > 1 else []
        if not all(len(self.kept[parent]) for parent in parents):
            self.kept[combination] = _Kept(np.zeros(0, np.int32), np.zeros((0, size), np.int32), 0)
            return _empty(0, most)
        cell, n_cells = self._finer(combination)
        outer = np.stack([self.whole, *map(self.cell_of_rows, parents)])
        sums = sum_cells(self.starts, self.y, cell, n_cells, outer, self.mark)
        large = (sums.own[:, 0] >= self.min_size) & (sums.own[:, 1] >= self.min_groups)
        return self._keep(combination, parents, sums, np.flatnonzero(large | (size == 0)), most)

    def _keep(
        self,
        combination: Combination,
        parents: list[Combination],
        sums: Cells,
        cells: NDArray[np.intp],
        most: int,
    ) -> Slices:
        """Give numbers to the cells that are large enough, and describe them."""
        size, n = len(combination), len(cells)
        number = np.full(len(sums.own), -1, np.int32)
        number[cells] = np.arange(n)
        if size <= 1:
            condition = np.arange(n, dtype=np.int32)[:, None][:, :size]
        else:
            width = len(self.kept[combination[-1:]])
            prefix = self.kept[combination[:-1]].condition[cells // width]
            condition = np.column_stack([prefix, cells % width]).astype(np.int32)
        if size == 1:
            self.value[combination[0]] = cells.astype(np.int32)
        self.kept[combination] = _Kept(number, condition, self.n_found)
        self.n_found += n
        slices = _empty(n, most)
        slices.own[:], slices.mark[:] = sums.own[cells], sums.mark[cells]
        slices.cross[:, : 1 + len(parents)] = sums.cross[:, cells].swapaxes(0, 1)
        for place, attribute in enumerate(combination):
            slices.attribute[:, place] = attribute
            slices.code[:, place] = self.value[attribute][condition[:, place]]
        for place, parent in enumerate(parents):
            without = np.delete(condition, size - 1 - place, axis=1)
            slices.parent[:, place] = self.kept[parent].first + self._number(parent, without)
        return slices

    def _number(self, combination: Combination, condition: Codes) -> Codes:
        """Look up the number of the kept cell that these conditions make."""
        number = condition[:, 0]
        for size in range(2, len(combination) + 1):
            width = len(self.kept[combination[size - 1 : size]])
            cells = number * width + condition[:, size - 1]
            number = self.kept[combination[:size]].number[cells]
        return number

    def _finer(self, combination: Combination) -> tuple[Codes, int]:
        """Cells of rows before any is left out, and how many there are."""
        if not combination:
            return self.whole, 1
        *_, last = combination
        if len(combination) == 1:
            return self.codes[last], int(self.codes[last].max()) + 1
        n_cells = len(self.kept[combination[:-1]]) * len(self.kept[(last,)])
        if n_cells > MOST_CELLS:
            raise StatisticsError(
                f"{len(combination)} attributes make {n_cells:,} combinations of values of at "
                f"least {self.min_size} rows, and {MOST_CELLS:,} can be looked at; raise min_size "
                "or min_groups, or leave out attributes of many values"
            )
        every = np.arange(n_cells, dtype=np.int32)
        return self._refined(combination, (last,), every), n_cells

    def _cell_of_rows(self, combination: Combination) -> Codes:
        """Kept cell of each row, -1 where it is in none."""
        number = self.kept[combination].number
        if len(combination) == 1:
            return number[self.codes[combination[0]]]
        return self._refined(combination, combination[-1:], number)

    def _refined(self, combination: Combination, last: Combination, number: Codes) -> Codes:
        cell = np.empty_like(self.whole)
        coarse, fine = self.cell_of_rows(combination[:-1]), self.cell_of_rows(last)
        kernels.refine(coarse, fine, len(self.kept[last]), number, cell)
        return cell


def _empty(n: int, most: int) -> Slices:
    return Slices(
        np.full((n, most), -1, np.int32),
        np.full((n, most), -1, np.int32),
        np.full((n, most), -1),
        np.zeros((n, 6)),
        np.zeros((n, 1 + most, 4)),
        np.zeros(n, np.uint64),
    )
