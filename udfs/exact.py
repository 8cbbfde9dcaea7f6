"""Vectors in float64: inner products, norms, and distances. Every metric has its distances here.

Shapes: ``n`` samples, ``d`` features. ``stored`` is a matrix as it came in: float32, float64, or
the uint16 bits of float16, which numba has no type for. ``place`` says which of its rows holds the
vector of a sample; ``square`` (n, 2) is its |z|^2 as a `twofold` number.

Far vectors are measured in float64, as 1 - cos. That loses a digit for every digit that a distance
is smaller than 1, so near ones are measured in twofold precision, and those that are nearer still
from how their features differ (`_crossed`). So a distance has its relative accuracy however small
it is, and is 0 for parallel vectors of whatever length and for no others.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from croma_sql.udfs import twofold
from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.twofold import fma, product_of, sum_of

LANES = 16
TOGETHER = 4
NEAR = 2.0**-10  # distances that 1 - cos in float64 gives 13 digits less three of
NEARER = 2.0**-34  # distances that it gives twice as many less ten of in twofold precision
LEAST = 2.0**-1000  # the distance of vectors that are nearer, but not parallel
EXTREME_EXPONENT = 200  # beyond 2^200, the product of two sums of squares may leave float64


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
    """Distance of far vectors from an inner product and two squared norms; never negative."""
    return max(0.0, 1.0 - product / np.sqrt(square * other_square))


@kernel()
def distance(stored, place, square, p, q):
    """Cosine distance of two samples."""
    x, y = stored[place[p]], stored[place[q]]
    far = cosine_distance(dot(x, y), square[p, 0], square[q, 0])
    return far if far >= NEAR else true_distance(x, y, square[p], square[q])


@kernel()
def true_distance(x, y, square, other_square):
    """Cosine distance of two vectors, the float64 that is nearest to it but for 2^-40 of cases.

    So what is equally far is so to the last bit, whatever the lengths of vectors.
    """
    squares = twofold.multiply((square[0], square[1]), (other_square[0], other_square[1]))
    lengths = twofold.root(squares)
    far = twofold.divide(twofold.subtract(lengths, twofold_dot(x, y)), lengths)[0]
    return far if far >= NEARER else _crossed(x, y, square, other_square)


def _rest(x, y, product):
    """Give what rounding took from a product of stored values; in compiled code only."""
    raise NotImplementedError


@overload(_rest)
def _rest_overload(x, y, product):
    if x == types.float64:
        return lambda x, y, product: fma(x, y, -product)
    return lambda x, y, product: 0.0  # twice the bits of float32 or float16 fit into float64


@kernel()
def twofold_dot(x, y):
    """Inner product as a twofold number, added in the order of `dot`."""
    sums, lows = np.zeros(LANES), np.zeros(LANES)
    whole = x.shape[0] - x.shape[0] % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            product = widen(x[start + lane]) * widen(y[start + lane])
            rest = _rest(x[start + lane], y[start + lane], product)
            high, low = sum_of(sums[lane], product)
            sums[lane] = high
            lows[lane] += low + rest
    for k in range(whole, x.shape[0]):
        product = widen(x[k]) * widen(y[k])
        high, low = sum_of(sums[k - whole], product)
        sums[k - whole] = high
        lows[k - whole] += low + _rest(x[k], y[k], product)
    return _total(sums, lows)


@kernel()
def _total(sums, lows):
    total, rest = 0.0, 0.0
    for lane in range(LANES):
        total, low = sum_of(total, sums[lane])
        rest += low + lows[lane]
    return sum_of(total, rest)


@kernel()
def _crossed(x, y, square, other_square):
    """Cosine distance from e = y_k x - x_k y, where k is the largest feature of both.

    e lies in the plane of x and y, and has no part in feature k, so that it is never near the
    direction of either: |x|^2 |e|^2 - (x.e)^2 = x_k^2 |x ^ y|^2, and the same for y, lose a factor
    of d at most. e is 0 for parallel vectors, and for no others, since its features are exact but
    for 2^-106 of what is left of them. 1 - cos is sin^2 / (1 + cos).
    """
    scale, other_scale = _unit_scale(square[0]), _unit_scale(other_square[0])
    k, largest = 0, 0.0
    for at in range(x.shape[0]):
        product = abs(widen(x[at]) * widen(y[at]))
        if product > largest:
            k, largest = at, product
    x_k, y_k = widen(x[k]) * scale, widen(y[k]) * other_scale
    sums, lows, largest = np.zeros((3, LANES)), np.zeros((3, LANES)), np.zeros(LANES)
    whole = x.shape[0] - x.shape[0] % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            a, b = widen(x[start + lane]) * scale, widen(y[start + lane]) * other_scale
            _add_crossed(a, b, x_k, y_k, lane, sums, lows, largest)
    for at in range(whole, x.shape[0]):
        a, b = widen(x[at]) * scale, widen(y[at]) * other_scale
        _add_crossed(a, b, x_k, y_k, at - whole, sums, lows, largest)
    if largest.max() == 0.0:
        return 0.0
    e_e, e_x, e_y = _total(sums[0], lows[0]), _total(sums[1], lows[1]), _total(sums[2], lows[2])
    x_x = (square[0] * scale * scale, square[1] * scale * scale)
    y_y = (other_square[0] * other_scale * other_scale, other_square[1] * other_scale * other_scale)
    of_x = twofold.divide(
        twofold.subtract(twofold.multiply(e_e, x_x), twofold.multiply(e_x, e_x)),
        product_of(x_k, x_k),
    )
    of_y = twofold.divide(
        twofold.subtract(twofold.multiply(e_e, y_y), twofold.multiply(e_y, e_y)),
        product_of(y_k, y_k),
    )
    crossed = twofold.add(of_x, of_y)  # both are |x ^ y|^2
    squares = twofold.multiply(x_x, y_y)
    sine = twofold.divide((0.5 * crossed[0], 0.5 * crossed[1]), squares)
    cosine = twofold.root(twofold.subtract((1.0, 0.0), sine))
    return max(LEAST, twofold.divide(sine, twofold.add((1.0, 0.0), cosine))[0])


@kernel()
def _add_crossed(x, y, x_k, y_k, lane, sums, lows, largest):
    """Add e^2, x e and y e, where e = y_k x - x_k y, to twofold sums (3, LANES)."""
    left, left_low = product_of(x, y_k)
    right, right_low = product_of(y, x_k)
    e, low = sum_of(left, -right)
    e, low = sum_of(e, low + (left_low - right_low))
    largest[lane] = max(largest[lane], abs(e))
    _add_product(e, 2.0 * low, e, lane, sums[0], lows[0])
    _add_product(e, low, x, lane, sums[1], lows[1])
    _add_product(e, low, y, lane, sums[2], lows[2])


@kernel()
def _add_product(high, low, factor, lane, sums, lows):
    """Add (high + low) factor."""
    product, rest = product_of(high, factor)
    sums[lane], left = sum_of(sums[lane], product)
    lows[lane] += left + (rest + low * factor)


@kernel()
def _unit_scale(square):
    """Power of two by which a vector comes near length 1."""
    return math.ldexp(1.0, -(math.frexp(square)[1] // 2))


@kernel()
def squared_norms(stored, out, start, stop):
    """Write |z|^2 of the rows ``start:stop`` (n, 2); NaN or inf where a value is not finite."""
    for i in range(start, stop):
        out[i, 0], out[i, 1] = twofold_dot(stored[i], stored[i])


def within_range(matrix: NDArray[np.floating]) -> NDArray[np.floating]:
    """Multiply vectors of extreme length by a power of two, which changes no cosine.

    Else the product of two sums of squares may leave float64. The matrix itself if there are none.
    """
    peak = np.maximum(matrix.max(axis=-1, initial=0.0), -matrix.min(axis=-1, initial=0.0))
    exponent = np.frexp(np.where(np.isfinite(peak), peak, 1.0))[1]
    extreme = np.abs(exponent) > EXTREME_EXPONENT
    if extreme.any():
        matrix = matrix.copy()
        with np.errstate(under="ignore"):
            matrix[extreme] = np.ldexp(matrix[extreme], -exponent[extreme, None])
    return matrix
