"""Every pair of many small scopes, measured in float64.

Arrays are those of all scopes one after the other; ``bounds`` (s + 1,) says where each begins.
Lists as in `selection`, but neighbours are rows within the scope.
"""

import numpy as np

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import distance
from croma_sql.udfs.neighbours.selection import insert


@kernel()
def search_pairs(bounds, stored, place, square, label, confounder, group, rank, usable,
                 so_best, so_who, os_best, os_who, any_best, any_who, start, stop):  # fmt: skip
    """Fill the lists of the scopes ``start:stop``; any_best may have no columns."""
    m, k = so_best.shape[1], any_best.shape[1]
    for scope in range(start, stop):
        first, end = bounds[scope], bounds[scope + 1]
        scope_rank = rank[first:end]
        for i in range(first, end):
            if not usable[i]:
                continue
            for j in range(i + 1, end):
                if not usable[j] or group[i] == group[j]:
                    continue
                same_label = label[i] == label[j]
                typed = same_label != (confounder[i] == confounder[j])
                if k == 0 and not typed:
                    continue
                d = distance(stored, place, square, i, j)
                a, b = i - first, j - first
                if typed and same_label:
                    insert(so_best[i], so_who[i], scope_rank, d, b, m)
                    insert(so_best[j], so_who[j], scope_rank, d, a, m)
                elif typed:
                    insert(os_best[i], os_who[i], scope_rank, d, b, m)
                    insert(os_best[j], os_who[j], scope_rank, d, a, m)
                if k > 0:
                    insert(any_best[i], any_who[i], scope_rank, d, b, k)
                    insert(any_best[j], any_who[j], scope_rank, d, a, k)


@kernel()
def rank_pairs(bounds, stored, place, square, label, confounder, group, rank, usable,
               so_best, so_who, os_best, os_who, so_rank, os_rank, start, stop):  # fmt: skip
    """Count for every sample who is not farther than its first SO and its first OS; 0 for none."""
    for scope in range(start, stop):
        first, end = bounds[scope], bounds[scope + 1]
        for i in range(first, end):
            if not usable[i]:
                continue
            for j in range(first, end):
                if not usable[j] or group[i] == group[j]:
                    continue
                d = distance(stored, place, square, i, j)
                so_rank[i] += _not_after(d, rank[j], so_best[i, 0], so_who[i, 0], rank, first)
                os_rank[i] += _not_after(d, rank[j], os_best[i, 0], os_who[i, 0], rank, first)


@kernel()
def _not_after(d, rank_of, best, who, rank, first):
    if who < 0:
        return 0
    return np.int64(d < best or (d == best and rank_of <= rank[first + who]))
