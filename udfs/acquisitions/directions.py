"""Directions, that is unit vectors, in float64, and distances between them.

    d_ij = |u_i - u_j|^2 / 2 = |r_i - r_j|^2 / 2, where u = z/|z| and r = u - centre

Written like this, a distance keeps its relative accuracy however near two vectors are: those of a
collapsed encoder may lie within 1e-12 of each other, where 1 - cos has lost its digits. The exact
distance is made from u, so that a centre makes no difference to ties; matrix products from r.
"""

import numpy as np

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import dot, half_gap

EXTREME = 2.0**200  # beyond, the product of two sums of squares may leave float64
SAME = 2.0**-92  # distances below are but the rounding of z/|z|


@kernel()
def directions(z, out):
    """Write z/|z| of every row; they are finite and not all zero."""
    for i in range(z.shape[0]):
        row, line = z[i], out[i]
        peak = 0.0
        for k in range(row.shape[0]):
            peak = max(peak, abs(row[k]))
        scale = 1.0 / peak if peak > EXTREME or peak < 1.0 / EXTREME else 1.0
        for k in range(row.shape[0]):
            line[k] = row[k] * scale
        norm = np.sqrt(dot(line, line))
        for k in range(row.shape[0]):
            line[k] /= norm


@kernel()
def apart(x, y):
    """Cosine distance of two directions, symmetric to the last bit."""
    distance = half_gap(x, y)
    return 0.0 if distance < SAME else distance


@kernel()
def halves(r, out):
    """Write |r|^2/2 of every row."""
    for i in range(r.shape[0]):
        out[i] = 0.5 * dot(r[i], r[i])


def slack(half: float, other_half: float, d: int) -> float:
    """Bound on |d_ij from a matrix product - `apart`| for residuals with these |r|^2/2 at most.

    A product is |r_i|^2/2 + |r_j|^2/2 - r_i.r_j; with u = 2^-53, inner products of length d, in
    any order, are off by d u / (1 - d u) times the product of the lengths, and so are the squares
    (Higham, Accuracy and Stability of Numerical Algorithms, 3.1); the rest is for r, which is
    rounded when a centre is subtracted, for `apart` itself, and for what it calls the same.
    """
    gamma = (2 * d + 64) * 2.0**-53
    bound: float = gamma * (half + other_half + 2 * np.sqrt(half * other_half)) + SAME
    return bound
