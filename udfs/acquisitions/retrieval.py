"""Units looked for under another acquisition: who is nearest, and at which rank the unit itself.

A block is the matrix product of units ``first_row ...`` under one acquisition and units
``first_col ...`` under another. It serves both directions: rows look among columns, columns among
rows. Per unit of the block, for the direction in which it looks:
    own : exact distance of the unit to itself under the other acquisition, the same both ways
    nearest, at : exact distance and number of the nearest so far, at first the unit itself
    ahead : how many stand before the unit itself, by (distance, number)
"""

import numpy as np

from croma_sql.udfs.acquisitions.directions import apart
from croma_sql.udfs.compiled import kernel

CHUNK = 256


@kernel()
def own_distances(u, other, out):
    """Write the distance of each unit to itself under another acquisition."""
    for p in range(u.shape[0]):
        out[p] = apart(u[p], other[p])


@kernel()
def look(product, first_row, first_col, half, other_half, u, other, own, slack,
         row_nearest, row_at, row_ahead, col_nearest, col_at, col_ahead):  # fmt: skip
    """Look through one block; what it adds to is of its own rows and columns."""
    rows, cols = product.shape
    for a in range(rows):
        p = first_row + a
        line = product[a]
        for start in range(0, cols, CHUNK):
            stop = min(start + CHUNK, cols)
            ahead, is_open = _count(
                line[start:stop], half[p], other_half[first_col + start : first_col + stop],
                own[p], own[first_col + start : first_col + stop], slack, row_nearest[a],
                col_nearest[start:stop], col_ahead[start:stop],
            )  # fmt: skip
            row_ahead[a] += ahead
            if not is_open:
                continue
            for b in range(start, stop):
                q = first_col + b
                if p == q:
                    continue
                measured = half[p] + other_half[q] - line[b]
                _decide(measured, p, q, own[p], slack, u[p], other[q], row_nearest, row_at,
                        row_ahead, a)  # fmt: skip
                _decide(measured, q, p, own[q], slack, u[p], other[q], col_nearest, col_at,
                        col_ahead, b)  # fmt: skip


@kernel()
def _count(line, half, other_half, own, col_own, slack, nearest, col_nearest, col_ahead):
    """Count who is ahead for certain; tell whether exact distances must decide about others."""
    ahead = np.int64(0)
    is_open = False
    for b in range(line.shape[0]):
        measured = half + other_half[b] - line[b]
        sure, col_sure = measured < own - slack, measured < col_own[b] - slack
        ahead += sure
        col_ahead[b] += col_sure
        is_open |= (not sure) & (measured <= own + slack)
        is_open |= (not col_sure) & (measured <= col_own[b] + slack)
        is_open |= (measured <= nearest + slack) | (measured <= col_nearest[b] + slack)
    return ahead, is_open


@kernel()
def _decide(measured, p, q, own, slack, x, y, nearest, at, ahead, place):
    """Let the exact distance decide whether q stands before p for p, and before the nearest."""
    is_unsure = own - slack <= measured <= own + slack
    if not is_unsure and measured > nearest[place] + slack:
        return
    exact = apart(x, y)
    if is_unsure and (exact < own or (exact == own and q < p)):
        ahead[place] += 1
    if exact < nearest[place] or (exact == nearest[place] and q < at[place]):
        nearest[place] = exact
        at[place] = q
