"""Holding a chunk of products against limits at once, in a form that the compiler vectorises."""

import numpy as np

from croma_sql.udfs.compiled import kernel

CHUNK = 64
ONE = np.uint64(1)
_BITS = ONE << np.arange(CHUNK, dtype=np.uint64)


@kernel()
def nearer(line, half, half_of_col, limit, limit_of_col):
    """Bits of the products whose distance is below the limit of the row, and of their column."""
    if line.shape[0] == CHUNK:
        return _nearer_of_all(line, half, half_of_col, limit, limit_of_col)
    of_row, of_col = np.uint64(0), np.uint64(0)
    for b in range(line.shape[0]):
        measured = half + half_of_col[b] - line[b]
        of_row |= _BITS[b] if measured < limit else np.uint64(0)
        of_col |= _BITS[b] if measured < limit_of_col[b] else np.uint64(0)
    return of_row, of_col


@kernel()
def _nearer_of_all(line, half, half_of_col, limit, limit_of_col):
    """Look at a full chunk: a length known when this is compiled takes a quarter of the time."""
    of_row, of_col = np.uint64(0), np.uint64(0)
    for b in range(CHUNK):
        measured = half + half_of_col[b] - line[b]
        of_row |= _BITS[b] if measured < limit else np.uint64(0)
        of_col |= _BITS[b] if measured < limit_of_col[b] else np.uint64(0)
    return of_row, of_col


@kernel()
def lowest_bit(bits):
    """Position of the lowest bit set: the exponent of that bit as a float64."""
    lowest = bits & (~bits + ONE)
    return (np.float64(lowest).view(np.int64) >> 52) - 1023


@kernel()
def of_columns(cols, limit, half, group):
    """Gather what belongs to the columns of a block, so that a chunk lies side by side."""
    n = cols.shape[0]
    limit_of_col, half_of_col = np.empty(n, np.float32), np.empty(n, np.float32)
    group_of_col = np.empty(n, np.int32)
    for b in range(n):
        limit_of_col[b] = limit[cols[b]]
        half_of_col[b] = half[cols[b]]
        group_of_col[b] = group[cols[b]]
    return limit_of_col, half_of_col, group_of_col
