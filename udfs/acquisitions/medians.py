"""How far the unit in the middle is, of all others by distance."""

import numpy as np

from croma_sql.udfs.acquisitions.directions import apart
from croma_sql.udfs.compiled import kernel


@kernel()
def medians(measured, first_row, u, out):
    """Write the median distance of some units to all others.

    Matrix products tell who is in the middle, `apart` how far that is.

    Parameters
    ----------
    measured : (rows, N) distances of some units to all, from a matrix product
    first_row : number of the unit of the first row
    u : (N, d) directions
    out : (rows,)
    """
    others = measured.shape[1] - 1
    middle = others // 2
    for a in range(measured.shape[0]):
        p = first_row + a
        parted = np.partition(np.delete(measured[a], p), middle)
        upper = _distance_at(parted[middle], measured[a], p, u)
        if others % 2:
            out[a] = upper
        else:
            out[a] = 0.5 * (upper + _distance_at(parted[:middle].max(), measured[a], p, u))


@kernel()
def _distance_at(value, line, p, u):
    for q in range(line.shape[0]):
        if line[q] == value and q != p:
            return apart(u[p], u[q])
    return value
