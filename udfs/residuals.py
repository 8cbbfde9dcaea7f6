"""Residuals of unit vectors, r = z/|z| - centre, and how far they can be trusted.

Since d_ij = |r_i - r_j|^2 / 2 for any centre, a search may work on r. Where vectors crowd in one
direction, r is short, and float32 separates what it could not on z/|z|; nor does r lose digits in
float64, for 1/|z| is `twofold`. Shapes and ``stored``, ``place``, ``square`` as in `exact`.
"""

import numpy as np

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import NEAR, dot, widen
from croma_sql.udfs.twofold import fma, product_of

ROUNDING = 2.0**-24  # of float32
SMALLEST = 2.0**-125  # bounds what float32 loses where it underflows
LEAST_REACH = 2.0**-50


@kernel()
def inverse_length(square):
    """1/|z| as a twofold number (one step of Newton's from float64)."""
    high = 1.0 / np.sqrt(square[0])
    once, low = product_of(high, high)
    twice, rest = product_of(square[0], once)
    left = ((1.0 - twice) - rest) - (square[0] * low + square[1] * once)
    return high, 0.5 * high * left


@kernel()
def residual(z, square, centre, out):
    """Write z/|z| - centre in float64, or rounded to float32."""
    high, low = inverse_length(square)
    for k in range(centre.shape[0]):
        value = widen(z[k])
        out[k] = fma(value, high, -centre[k]) + value * low


@kernel()
def unit_sums(stored, place, square, samples, total):
    """Add the unit vectors of ``samples`` to ``total`` (d,)."""
    for p in samples:
        scale = 1.0 / np.sqrt(square[p, 0])
        z = stored[place[p]]
        for k in range(total.shape[0]):
            total[k] += widen(z[k]) * scale


@kernel()
def residuals(stored, place, square, samples, centre, out):
    """Write the residuals of ``samples`` to ``out`` (len(samples), d), float32 or float64."""
    for a in range(samples.shape[0]):
        p = samples[a]
        residual(stored[place[p]], square[p], centre, out[a])


@kernel()
def half_squares(stored, place, square, samples, centre, half):
    """Write |r|^2/2 of ``samples`` to ``half`` (n,), in float32."""
    r = np.empty(centre.shape[0])
    for p in samples:
        residual(stored[place[p]], square[p], centre, r)
        half[p] = np.float32(0.5 * dot(r, r))


@kernel()
def slack(radius, other_radius, d):
    """Bound on |float32 distance - float64 distance| for residuals of at most these lengths.

    The float32 distance is |r_i|^2/2 + |r_j|^2/2 - r_i.r_j. With u = 2^-24: a float32 inner
    product of length d, summed in any order, is off by at most d u / (1 - d u) |r_i||r_j|;
    rounding r and |r|^2/2 to float32, the sum and the subtraction add the small multiples of u
    below (Higham, Accuracy and Stability of Numerical Algorithms, 3.1), and so little is left of
    them for r in float64. The last terms cover underflow, and far vectors measured in float64.
    """
    gamma = (d + 8) * ROUNDING / (1 - (d + 8) * ROUNDING)
    squares = radius * radius + other_radius * other_radius
    bound = gamma * radius * other_radius + 4 * ROUNDING * squares + (d + 16) * SMALLEST
    reach = radius + other_radius
    return bound + (8 * (d + 16) * 2.0**-53 if reach * reach > NEAR else 0.0)


@kernel()
def slack_within(radius, farthest, longest, d):
    """Slack towards whoever is no farther than ``farthest``; ``longest`` is the longest residual.

    |r_i - r_j| is at least the difference of their lengths, so whoever is longer than
    |r_i| + sqrt(2 farthest) is farther. One outlier then costs nothing. (The margins on that reach
    are far above rounding.)
    """
    reach = 1.001 * (radius + np.sqrt(2.0 * farthest)) + LEAST_REACH
    return slack(radius, min(longest, reach), d)
