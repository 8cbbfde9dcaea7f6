"""Vectors in float64: inner products, norms, distances, and the float32 residuals made from them.

Shapes: ``n`` samples, ``d`` features. ``stored`` is a matrix as it came in: float32, float64, or
the uint16 bits of float16, which numba has no type for. ``place`` says which of its rows holds the
vector of a sample.
"""

import numpy as np
from numba import types
from numba.extending import overload

from croma_sql.udfs.compiled import kernel

ROUNDING = 2.0**-24  # of float32
LANES = 16
TOGETHER = 4


@kernel()
def _float16(bits):
    """Value of a float16, by its bits; written without branches so that it vectorises."""
    bits = np.int32(bits)
    exponent = bits & 0x7C00
    shifted = ((bits & 0x7FFF) << 13) + (112 << 23)
    value = np.int32(shifted).view(np.float32)
    denormal = np.int32(shifted + (1 << 23)).view(np.float32) - np.float32(2.0**-14)
    not_finite = np.int32(shifted + (112 << 23)).view(np.float32)
    value = denormal if exponent == 0 else (not_finite if exponent == 0x7C00 else value)
    return np.float64(-value if bits & 0x8000 else value)


def widen(value):
    """One stored value as float64; in compiled code only."""
    raise NotImplementedError


@overload(widen)
def _widen_overload(value):
    if isinstance(value, types.Integer):
        return lambda value: _float16(value)
    return lambda value: np.float64(value)


@kernel()
def dot(x, y):
    """Inner product in float64.

    The order of additions is written out (16 running sums, then their sum), so that the last bit
    depends neither on the processor nor on which of two samples comes first.
    """
    sums = np.zeros(LANES)
    whole = x.shape[0] - x.shape[0] % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            sums[lane] += widen(x[start + lane]) * widen(y[start + lane])
    for k in range(whole, x.shape[0]):
        sums[k - whole] += widen(x[k]) * widen(y[k])
    total = 0.0
    for lane in range(LANES):
        total += sums[lane]
    return total


@kernel()
def half_gap(x, y):
    """|x - y|^2 / 2 of two rows in float64, added in the order of `dot`."""
    sums = np.zeros(LANES)
    whole = x.shape[0] - x.shape[0] % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            gap = x[start + lane] - y[start + lane]
            sums[lane] += gap * gap
    for k in range(whole, x.shape[0]):
        gap = x[k] - y[k]
        sums[k - whole] += gap * gap
    total = 0.0
    for lane in range(LANES):
        total += sums[lane]
    return 0.5 * total


@kernel()
def dots(x, stored, rows, out):
    """Inner products of ``x`` with `TOGETHER` (four) rows of ``stored``, each as `dot` adds it.

    One after the other, each would wait for memory: four at once take a third of the time.
    """
    sums = np.zeros((TOGETHER, LANES))
    s0, s1, s2, s3 = sums[0], sums[1], sums[2], sums[3]
    y0, y1, y2, y3 = stored[rows[0]], stored[rows[1]], stored[rows[2]], stored[rows[3]]
    whole = x.shape[0] - x.shape[0] % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            k = start + lane
            value = widen(x[k])
            s0[lane] += value * widen(y0[k])
            s1[lane] += value * widen(y1[k])
            s2[lane] += value * widen(y2[k])
            s3[lane] += value * widen(y3[k])
    for k in range(whole, x.shape[0]):
        lane = k - whole
        value = widen(x[k])
        s0[lane] += value * widen(y0[k])
        s1[lane] += value * widen(y1[k])
        s2[lane] += value * widen(y2[k])
        s3[lane] += value * widen(y3[k])
    for one in range(TOGETHER):
        total = 0.0
        for lane in range(LANES):
            total += sums[one, lane]
        out[one] = total


@kernel()
def cosine_distance(product, square, other_square):
    """Distance from an inner product and two squared norms; 0 for equal rows, never negative."""
    return max(0.0, 1.0 - product / np.sqrt(square * other_square))


@kernel()
def distance(stored, place, square, p, q):
    """Cosine distance of two samples in float64."""
    product = dot(stored[place[p]], stored[place[q]])
    return cosine_distance(product, square[p], square[q])


@kernel()
def squared_norms(stored, out, start, stop):
    """Write |z|^2 of the rows ``start:stop``; NaN or inf where a value is not finite."""
    for i in range(start, stop):
        out[i] = dot(stored[i], stored[i])


@kernel()
def unit_sums(stored, place, square, samples, total):
    """Add the unit vectors of ``samples`` to ``total`` (d,)."""
    for p in samples:
        scale = 1.0 / np.sqrt(square[p])
        z = stored[place[p]]
        for k in range(total.shape[0]):
            total[k] += widen(z[k]) * scale


@kernel()
def residuals(stored, place, square, samples, centre, out):
    """Write r = z/|z| - centre of ``samples`` in float32 to ``out`` (len(samples), d).

    Since d_ij = |r_i - r_j|^2 / 2 for any centre, the search may work on r. Where vectors crowd
    in one direction, r is short, and float32 separates what it could not on z/|z|.
    """
    for a in range(samples.shape[0]):
        p = samples[a]
        scale = 1.0 / np.sqrt(square[p])
        z = stored[place[p]]
        line = out[a]
        for k in range(centre.shape[0]):
            line[k] = np.float32(widen(z[k]) * scale - centre[k])


@kernel()
def half_squares(stored, place, square, samples, centre, half):
    """Write |r|^2/2 of ``samples`` to ``half`` (n,), in float32."""
    residual = np.empty(centre.shape[0])
    for p in samples:
        scale = 1.0 / np.sqrt(square[p])
        z = stored[place[p]]
        for k in range(centre.shape[0]):
            residual[k] = widen(z[k]) * scale - centre[k]
        half[p] = np.float32(0.5 * dot(residual, residual))


@kernel()
def slack(radius, other_radius, d):
    """Bound on |float32 distance - float64 distance| for residuals of at most these lengths.

    The float32 distance is |r_i|^2/2 + |r_j|^2/2 - r_i.r_j. With u = 2^-24: a float32 inner
    product of length d, summed in any order, is off by at most d u / (1 - d u) |r_i||r_j|;
    rounding r and |r|^2/2 to float32, the sum and the subtraction add the small multiples of u
    below (Higham, Accuracy and Stability of Numerical Algorithms, 3.1). The last term covers
    float64.
    """
    gamma = (d + 8) * ROUNDING / (1 - (d + 8) * ROUNDING)
    squares = radius * radius + other_radius * other_radius
    return gamma * radius * other_radius + 4 * ROUNDING * squares + 8 * (d + 16) * 2.0**-53
