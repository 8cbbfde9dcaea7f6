"""Rank of the first SO and OS neighbour among all eligible candidates, as a count over blocks.

Arrays as in `selection`; per type t of SO, OS and per anchor row:
    first : (2, a) float64, exact distance of the nearest neighbour of the type; first_position its
        position, -1 where there is none
    sure, unsure : (2, n) float32 by position. A float32 distance below ``sure`` is nearer for
        certain, one from ``unsure`` on is not; between them the exact distance decides. -1 where
        nothing is to be counted.
    counts : (2, a) int64, how many have been counted
"""

import numpy as np

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import distance, slack
from croma_sql.udfs.neighbours.chunks import CHUNK, ONE, lowest_bit, nearer, of_columns


@kernel()
def thresholds(anchors, first, radius, longest, d, sure, unsure):
    """Fill ``sure`` and ``unsure`` of the anchors, rounded outwards."""
    for kind in range(2):
        for row in range(anchors.shape[0]):
            p = anchors[row]
            t = first[kind, row]
            if t == np.inf:
                continue
            reach = 1.001 * (radius[p] + np.sqrt(2.0 * t)) + 1e-5
            bound = slack(radius[p], min(longest, reach), d)
            sure[kind, p] = np.nextafter(np.float32(t - bound), np.float32(-np.inf))
            unsure[kind, p] = np.nextafter(np.float32(t + bound), np.float32(np.inf))


@kernel()
def count_nearer(kind, product, rows, cols, half, group, slot, first, first_position,
                 sure, unsure, counts, stored, place, square, rank):  # fmt: skip
    """Count, for rows and columns of one block, who is nearer than the first of type ``kind``."""
    unsure_of_col, half_of_col, group_of_col = of_columns(cols, unsure[kind], half, group)
    on_diagonal = rows[0] == cols[0]
    for a in range(rows.shape[0]):
        i = rows[a]
        line = product[a]
        first_col = a + 1 if on_diagonal else 0
        for start in range(first_col - first_col % CHUNK, cols.shape[0], CHUNK):
            stop = min(start + CHUNK, cols.shape[0])
            of_row, of_col = nearer(
                line[start:stop], half[i], half_of_col[start:stop], unsure[kind, i],
                unsure_of_col[start:stop],
            )  # fmt: skip
            hits = of_row | of_col
            while hits:
                b = start + lowest_bit(hits)
                hits &= hits - ONE
                if b < first_col or group_of_col[b] == group[i]:
                    continue
                measured = half[i] + half_of_col[b] - line[b]
                for p, q in ((i, cols[b]), (cols[b], i)):
                    _count(kind, p, q, measured, slot, first, first_position, sure, unsure, counts,
                           stored, place, square, rank)  # fmt: skip


@kernel()
def _count(kind, p, q, measured, slot, first, first_position, sure, unsure, counts,
           stored, place, square, rank):  # fmt: skip
    if measured >= unsure[kind, p]:
        return
    row = slot[p]
    if measured < sure[kind, p]:
        counts[kind, row] += 1
        return
    exact = distance(stored, place, square, p, q)
    t = first[kind, row]
    if exact < t or (exact == t and rank[q] < rank[first_position[kind, row]]):
        counts[kind, row] += 1
