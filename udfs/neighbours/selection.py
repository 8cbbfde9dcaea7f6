"""Keep the nearest candidates while blocks of products pass by; then order them exactly.

Shapes: ``n`` samples by position, ``a`` anchors (the samples whose neighbours are wanted), ``m``
neighbours asked for, ``w > m`` candidates kept.

Lists of candidates, per type of neighbour:
    slot : (n,) int32, row of a position in the arrays below; meaningless for non-anchors
    key : (a, 2 w) uint64, unordered: the bits of the float32 distance, then the position. Distances
        are not negative, so keys order as distances do.
    count : (a,) int32, how many keys there are
    limit : (n,) float32, a candidate must be nearer; below 0 for non-anchors, who want none.
        Whatever was turned away or dropped is at least this far.
"""

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import TOGETHER, cosine_distance, distance, dots, slack
from croma_sql.udfs.neighbours.chunks import CHUNK, ONE, lowest_bit, nearer, of_columns
from croma_sql.udfs.scope import ANY, SO

LONG = 128  # keys of a list
CACHED = 4 << 20  # bytes of candidates at a time


def positions(key: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Positions in an array of keys."""
    return key.astype(np.uint32)


@kernel()
def _key(measured, position):
    bits = np.float32(max(measured, np.float32(0.0))).view(np.int32)
    return (np.uint64(bits) << np.uint64(32)) | np.uint64(position)


@kernel()
def _measured(key):
    return np.int32(key >> np.uint64(32)).view(np.float32)


@kernel()
def _position(key):
    return np.int64(key & np.uint64(0xFFFFFFFF))


@kernel()
def _smallest_first(keys, w, larger):
    """Reorder distinct keys so that the ``w`` smallest come first, the largest of them last.

    Quickselect; keys are divided without branches, for which side they go to cannot be foretold.
    ``larger`` is room for as many keys.
    """
    low, high = 0, keys.shape[0]
    while high - low > 1:
        a, b, c = keys[low], keys[(low + high) // 2], keys[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        smaller, others = low, 0
        for at in range(low, high):
            one = keys[at]
            keys[smaller] = one
            larger[others] = one
            smaller += one < pivot
            others += one > pivot
        keys[smaller] = pivot
        for at in range(others):
            keys[smaller + 1 + at] = larger[at]
        if smaller == w - 1:
            return
        if smaller < w - 1:
            low = smaller + 1
        else:
            high = smaller


@kernel(inline="always")
def _add(key, count, limit, row, p, measured, q, room):
    """Add candidate ``q`` of ``p``; a full list is cut to its nearest half, and the limit with it.

    Cutting now and then costs a few operations per candidate, however many are kept; an ordered
    list would move half of itself for each.
    """
    key[row, count[row]] = _key(measured, q)
    count[row] += 1
    if count[row] == key.shape[1]:
        w = key.shape[1] // 2
        _smallest_first(key[row], w, room)
        count[row] = w
        limit[p] = _measured(key[row, w - 1])


@kernel()
def _begin(key, count, limit, row, p, line, halves, groups, positions, half, group, room):
    """Start an empty list with a whole line of products at once.

    Most candidates that a long list ever takes come from the first block it meets; one by one they
    would cost three times as much.
    """
    found = 0
    for b in range(line.shape[0]):
        room[found] = _key(half + halves[b] - line[b], positions[b])
        found += groups[b] != group
    if found >= key.shape[1]:
        w = key.shape[1] // 2
        _smallest_first(room[:found], w, np.empty(found, np.uint64))
        limit[p] = _measured(room[w - 1])
        found = w
    for at in range(found):
        key[row, at] = room[at]
    count[row] = found


@kernel()
def keep_nearest(product, rows, cols, half, group, slot, key, count, limit):
    """Offer one block of inner products to the lists of its rows and of its columns.

    product : (len(rows), len(cols)) float32, r_i . r_j. Where ``rows`` and ``cols`` are the same
        positions, each pair is looked at once.

    `CHUNK` products at once are held against the limits, and only hits are looked at.
    """
    limit_of_col, half_of_col, group_of_col = of_columns(cols, limit, half, group)
    limit_of_row, half_of_row, group_of_row = of_columns(rows, limit, half, group)
    room = np.empty(max(key.shape[1], rows.shape[0], cols.shape[0]), np.uint64)
    on_diagonal = rows[0] == cols[0]
    long = key.shape[1] >= LONG
    for b in range(cols.shape[0]):
        j = cols[b]
        if long and limit_of_col[b] == np.inf and count[slot[j]] == 0:
            limit_of_col[b] = -1.0  # all that is in this block is taken here, nothing below
            if not on_diagonal:
                _begin(key, count, limit, slot[j], j, product[:, b], half_of_row, group_of_row,
                       rows, half[j], group[j], room)  # fmt: skip
    for a in range(rows.shape[0]):
        i = rows[a]
        line = product[a]
        first = a + 1 if on_diagonal else 0
        if long and limit_of_row[a] == np.inf and count[slot[i]] == 0:
            limit_of_row[a] = -1.0
            _begin(key, count, limit, slot[i], i, line, half_of_col, group_of_col, cols,
                   half[i], group[i], room)  # fmt: skip
        limit_i = min(limit_of_row[a], limit[i])
        for start in range(first - first % CHUNK, cols.shape[0], CHUNK):
            stop = min(start + CHUNK, cols.shape[0])
            of_row, of_col = nearer(
                line[start:stop], half[i], half_of_col[start:stop], limit_i,
                limit_of_col[start:stop],
            )  # fmt: skip
            while of_row:
                b = start + lowest_bit(of_row)
                of_row &= of_row - ONE
                measured = half[i] + half_of_col[b] - line[b]
                if b >= first and group_of_col[b] != group[i] and measured < limit[i]:
                    _add(key, count, limit, slot[i], i, measured, cols[b], room)
                    limit_i = limit[i]
            while of_col:
                b = start + lowest_bit(of_col)
                of_col &= of_col - ONE
                if b >= first and group_of_col[b] != group[i]:
                    j = cols[b]
                    measured = half[i] + half_of_col[b] - line[b]
                    _add(key, count, limit, slot[j], j, measured, i, room)
                    limit_of_col[b] = limit[j]


@kernel()
def insert(best, who, rank, d, q, m):
    """Insert (d, q) into lists that ascend by (distance, rank); drop what falls off the end."""
    if d > best[m - 1] or (d == best[m - 1] and rank[q] > rank[who[m - 1]]):
        return
    at = m - 1
    while at > 0 and (d < best[at - 1] or (d == best[at - 1] and rank[q] < rank[who[at - 1]])):
        best[at] = best[at - 1]
        who[at] = who[at - 1]
        at -= 1
    best[at] = d
    who[at] = q


@kernel()
def order_exactly(stored, place, square, rank, anchors, key, count, limit, radius, longest,
                  known_best, known_who, best, who, proven, start, stop):  # fmt: skip
    """Order the candidates of ``anchors[start:stop]`` by exact distance; say if the set is proven.

    Let D be the m-th float32 distance and b the slack towards the m candidates within it: the m-th
    exact distance t is at most D + b. So nobody farther than D + b can be among the m nearest, and
    whoever measures more than that by the slack need not be looked at; the others are measured
    exactly. Whatever was dropped is at least ``limit`` away: if that exceeds t by more than the
    slack, nothing was missed.
    The slack grows with the other's radius, but only the near matter: |r_i - r_j| is at least the
    difference of their lengths, so whoever is longer than |r_i| + sqrt(2 t) is farther than t. One
    outlier then costs nothing. (The margins on that reach are far above rounding.)

    Parameters
    ----------
    radius : (n,) float64, |r|; longest : the largest of them
    known_best, known_who : (a, any number)
        Exact distances that are known already, and of which positions (-1 for none).
    best : (a, m) float64, inf on entry; who : (a, m) int, -1 on entry
        Distances in ascending order, ties by ``rank``, and positions.
    proven : (a,) bool
    """
    m = best.shape[1]
    d = stored.shape[1]
    chosen = np.empty(stop - start, np.int64)
    most = 1
    for row in range(start, stop):
        keys = key[row, : count[row]]
        measured = 0
        for at in range(_choose(anchors[row], keys, m, d, radius, longest)):
            known = _find(known_who[row], _position(keys[at]))
            if known >= 0:
                q = known_who[row, known]
                insert(best[row], who[row], rank, known_best[row, known], q, m)
            else:
                keys[measured] = np.uint64(_position(keys[at]))
                measured += 1
        _sort(keys[:measured])
        chosen[row - start] = measured
        most = max(most, measured)
    exact = np.empty((stop - start, most))
    _measure(stored, place, square, anchors[start:stop], key[start:stop], chosen, exact)
    for row in range(start, stop):
        p = anchors[row]
        for at in range(chosen[row - start]):
            insert(best[row], who[row], rank, exact[row - start, at], _position(key[row, at]), m)
        farthest = best[row, m - 1]
        bound = _bound(p, farthest, d, radius, longest)
        proven[row] = limit[p] == np.inf or farthest + bound < np.float64(limit[p])


@kernel()
def _bound(p, farthest, d, radius, longest):
    """Slack towards whoever is no farther than ``farthest``."""
    reach = 1.001 * (radius[p] + np.sqrt(2.0 * farthest)) + 1e-5
    return slack(radius[p], min(longest, reach), d)


@kernel()
def _choose(p, keys, m, d, radius, longest):
    """Bring the keys whose exact distance may matter to the front; returns how many."""
    chosen = keys.shape[0]
    if chosen > m:
        _smallest_first(keys, m, np.empty(keys.shape[0], np.uint64))
        widest = 0.0
        for at in range(m):
            widest = max(widest, radius[_position(keys[at])])
        farthest = np.float64(_measured(keys[m - 1])) + slack(radius[p], widest, d)
        farthest += _bound(p, farthest, d, radius, longest)
        chosen = m
        for at in range(m, keys.shape[0]):
            if np.float64(_measured(keys[at])) <= farthest:
                keys[chosen], keys[at] = keys[at], keys[chosen]
                chosen += 1
    return chosen


@kernel()
def _sort(keys):
    """Shell sort: as fast as any for the hundred keys of a list, and quick to compile."""
    gap = keys.shape[0] // 2
    while gap > 0:
        for start in range(gap, keys.shape[0]):
            key = keys[start]
            at = start
            while at >= gap and keys[at - gap] > key:
                keys[at] = keys[at - gap]
                at -= gap
            keys[at] = key
        gap = gap // 2 if gap != 2 else 1


@kernel()
def _measure(stored, place, square, anchors, key, chosen, exact):
    """Write the exact distances of anchors to their first ``chosen`` keys, which ascend.

    Candidates come in blocks of positions that stay in the cache while every anchor passes.
    """
    at = np.zeros(anchors.shape[0], np.int64)
    some = np.zeros(TOGETHER, np.int64)
    products = np.empty(TOGETHER)
    block = max(1, CACHED // (stored.shape[1] * stored.itemsize))
    for end in range(block, square.shape[0] + block, block):
        for a in range(anchors.shape[0]):
            p = anchors[a]
            while at[a] < chosen[a] and _position(key[a, at[a]]) < end:
                taken = min(TOGETHER, chosen[a] - at[a])
                for one in range(TOGETHER):
                    some[one] = place[_position(key[a, at[a] + min(one, taken - 1)])]
                dots(stored[place[p]], stored, some, products)
                for one in range(taken):
                    q = _position(key[a, at[a] + one])
                    exact[a, at[a] + one] = cosine_distance(products[one], square[p], square[q])
                at[a] += taken


@kernel()
def search_exactly(product, rows, start, half, label, confounder, group, kind,
                   stored, place, square, rank, radius, slot, best, who):  # fmt: skip
    """Offer every eligible column of one block whose float32 distance could still matter.

    ``rows`` are the positions left unproven by `order_exactly`; columns are ``start, start + 1,
    ...``. ``best`` and ``who`` hold what is known already and end as the true nearest set.
    """
    m = best.shape[1]
    d = stored.shape[1]
    for a in range(rows.shape[0]):
        p = rows[a]
        row = slot[p]
        for b in range(product.shape[1]):
            q = start + b
            measured = half[p] + half[q] - product[a, b]
            if measured > best[row, m - 1] + slack(radius[p], radius[q], d):
                continue
            if group[p] == group[q] or not _is_of(kind, p, q, label, confounder):
                continue
            if _find(who[row], q) >= 0:
                continue
            insert(best[row], who[row], rank, distance(stored, place, square, p, q), q, m)


@kernel()
def _is_of(kind, p, q, label, confounder):
    same_label = label[p] == label[q]
    same_confounder = confounder[p] == confounder[q]
    return kind == ANY or (same_label != same_confounder and same_label == (kind == SO))


@kernel()
def _find(who, q):
    for at in range(who.shape[0]):
        if who[at] == q:
            return at
    return -1


@kernel()
def place(order, anchors, first, best, who, neighbour, distance, start, stop):
    """Write the lists of ``anchors[start:stop]`` to their rows of the scope, from ``first`` on."""
    for row in range(start, stop):
        to = order[anchors[row]] - first
        for at in range(best.shape[1]):
            if who[row, at] >= 0:
                neighbour[to, at] = order[who[row, at]]
                distance[to, at] = best[row, at]
