"""Do acquisitions agree on which units are far apart? Sums over pairs of units.

centred : (S, N, N) float64, distances minus the mean of their acquisition; 0 on the diagonal
"""

import numpy as np

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import dot


@kernel()
def measure(products, half, other_half):
    """Turn inner products of residuals into distances, in place."""
    for a in range(products.shape[0]):
        line = products[a]
        for q in range(line.shape[0]):
            line[q] = max(0.0, half[a] + other_half[q] - line[q])


@kernel()
def row_products(measured, first_row, mean, out):
    """Sum up, for each row, the products of its distances under any two acquisitions.

    Parameters
    ----------
    measured : (S, rows, N) distances of some units to all
    first_row : number of the unit of the first row
    mean : (S, N) mean distance of each unit to the others, which is subtracted before
    out : (S, S, N)
    """
    acquisitions, rows, n = measured.shape
    line = np.empty((acquisitions, n))
    for a in range(rows):
        p = first_row + a
        for s in range(acquisitions):
            for q in range(n):
                line[s, q] = measured[s, a, q] - mean[s, p]
            line[s, p] = 0.0
        for s in range(acquisitions):
            for t in range(s + 1):
                out[s, t, p] = out[t, s, p] = dot(line[s], line[t])


@kernel()
def centre(measured, first_row, mean, out):
    """Write distances minus the mean of their acquisition, ``mean`` (S,), to (S, N, N)."""
    acquisitions, rows, n = measured.shape
    for s in range(acquisitions):
        for a in range(rows):
            for q in range(n):
                out[s, first_row + a, q] = measured[s, a, q] - mean[s]
            out[s, first_row + a, first_row + a] = 0.0


@kernel()
def crossed(centred, orders, out, start, stop):
    """Sum products over pairs of units, those of the first acquisition in another order.

    Parameters
    ----------
    orders : (m, N) int32
    out : (m, S, S), of which [:, a, b] with a < b is written for ``start:stop``
    """
    acquisitions, n = centred.shape[:2]
    line = np.empty(n)
    for one in range(start, stop):
        order = orders[one]
        out[one] = 0.0
        for a in range(acquisitions - 1):
            for i in range(1, n):
                row = centred[a, order[i]]
                for j in range(i):
                    line[j] = row[order[j]]
                for b in range(a + 1, acquisitions):
                    out[one, a, b] += dot(line[:i], centred[b, i, :i])
