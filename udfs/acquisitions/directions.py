"""Vectors of units as they are measured, and how far products of their residuals can be trusted.

`croma_sql.udfs.exact` measures, matrix products of residuals r = z/|z| - centre propose: d_ij is
|r_i - r_j|^2 / 2 whatever the centre, and where vectors crowd in one direction, r is short and
keeps its digits. What is measured is z itself, so that a centre makes no difference to ties.
"""

import numpy as np

from croma_sql.udfs import exact, residuals
from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import dot
from croma_sql.udfs.scope import Float

SAME = 2.0**-190  # distances below are but the rounding of r


def measured(units: Float) -> tuple[Float, Float]:
    """Give vectors (S, N, d) within the range of float64, and their |z|^2 (S, N, 2)."""
    z = np.ascontiguousarray(exact.within_range(units))
    square = np.empty((*z.shape[:-1], 2))
    exact.squared_norms(z.reshape(-1, z.shape[-1]), square.reshape(-1, 2), 0, z[..., 0].size)
    return z, square


def around_mean(z: Float, square: Float, r: Float, half: Float) -> None:
    """Write residuals around the mean of unit vectors of z (n, d) to r, |r|^2/2 to half (n,).

    All 0 where the directions coincide.
    """
    every, centre = np.arange(len(z)), np.zeros(z.shape[1])
    residuals.unit_sums(z, every, square, every, centre)
    residuals.residuals(z, every, square, every, centre / len(z), r)
    r -= r.mean(axis=0)  # what rounding left of it
    halves(r, half)
    if half.max() < SAME:
        r[:] = half[:] = 0.0


@kernel()
def halves(r, out):
    """Write |r|^2/2 of every row."""
    for i in range(r.shape[0]):
        out[i] = 0.5 * dot(r[i], r[i])


def slack(half: float, other_half: float, d: int) -> float:
    """Bound on |d_ij from a matrix product - d_ij| for residuals with these |r|^2/2 at most.

    A product is |r_i|^2/2 + |r_j|^2/2 - r_i.r_j; with u = 2^-53, inner products of length d, in
    any order, are off by d u / (1 - d u) times the product of the lengths, and so are the squares
    (Higham, Accuracy and Stability of Numerical Algorithms, 3.1); the rest is for r, which is
    rounded, and for what is called the same.
    """
    gamma = (2 * d + 64) * 2.0**-53
    bound: float = gamma * (half + other_half + 2 * np.sqrt(half * other_half)) + SAME
    return bound
