"""Sums over groups of cells of rows, and of the larger cells that hold them.

A partition gives each row the number of its cell, int32, or -1 where it is in none.

    cell : (n,) the partition that is looked at
    outer : (m, n) partitions each of whose cells holds a cell of ``cell`` whole or not at all
    starts : (groups + 1,) int64, where each group begins among the rows, which are sorted by it
    y : (n,) float64, what is summed
    mark : (n,) uint64, a random number per row, so that cells of the same rows have the same sum
    own : (cells, 6) float64. With n_g rows of sum y_g in group g: rows, groups, and the sums over
        groups of y_g, y_g y_g, y_g n_g, n_g n_g
    cross : (m, cells, 4) float64. With N_g and Y_g the same of the cell of ``outer`` around it: the
        sums over groups of y_g Y_g, y_g N_g, n_g Y_g, n_g N_g
    marks : (cells,) uint64, sums of ``mark``
"""

import numpy as np

from croma_sql.udfs.compiled import kernel


@kernel()
def refine(cell, code, width, kept, finer):
    """Fill ``finer`` with the new numbers, ``kept``, of the cells that a second partition cuts."""
    for i in range(cell.shape[0]):
        inside = cell[i] >= 0 and code[i] >= 0
        finer[i] = kept[cell[i] * width + code[i]] if inside else -1


@kernel()
def sums(cell, outer, starts, y, mark, own, cross, marks):
    """Fill ``own``, ``cross`` and ``marks``."""
    m, cells = outer.shape[0], own.shape[0]
    rows, total = np.zeros(cells), np.zeros(cells)
    example = np.empty(cells, np.int64)  # a row of the cell, which tells the cells around it
    touched = np.empty(cells, np.int32)
    largest = 0
    for j in range(m):
        largest = max(largest, outer[j].max() + 1)
    outer_rows, outer_total = np.zeros((m, largest)), np.zeros((m, largest))
    for g in range(starts.shape[0] - 1):
        n_touched = 0
        for i in range(starts[g], starts[g + 1]):
            for j in range(m):
                around = outer[j, i]
                if around >= 0:
                    outer_rows[j, around] += 1.0
                    outer_total[j, around] += y[i]
            c = cell[i]
            if c < 0:
                continue
            if rows[c] == 0.0:
                touched[n_touched] = c
                n_touched += 1
                example[c] = i
            rows[c] += 1.0
            total[c] += y[i]
            marks[c] += mark[i]
        for k in range(n_touched):
            c = touched[k]
            n_g, y_g = rows[c], total[c]
            own[c, 0] += n_g
            own[c, 1] += 1.0
            own[c, 2] += y_g
            own[c, 3] += y_g * y_g
            own[c, 4] += y_g * n_g
            own[c, 5] += n_g * n_g
            for j in range(m):
                around = outer[j, example[c]]
                if around >= 0:
                    cross[j, c, 0] += y_g * outer_total[j, around]
                    cross[j, c, 1] += y_g * outer_rows[j, around]
                    cross[j, c, 2] += n_g * outer_total[j, around]
                    cross[j, c, 3] += n_g * outer_rows[j, around]
            rows[c] = 0.0
            total[c] = 0.0
        for i in range(starts[g], starts[g + 1]):
            for j in range(m):
                if outer[j, i] >= 0:
                    outer_rows[j, outer[j, i]] = 0.0
                    outer_total[j, outer[j, i]] = 0.0
