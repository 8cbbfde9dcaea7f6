"""Odds ratios of being in a tail, part against rest, with a test and the interval it gives."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from croma_sql.statistics.contrasts import Float, Part

FURTHEST = 20.0  # logarithm: beyond it there is no limit
STEPS = np.geomspace(1e-4, FURTHEST, 64)


@dataclass(frozen=True, slots=True)
class Odds:
    """One entry per part; NaN where nothing is compared.

    ratio : of the odds, with half a row added to each of four counts if one of them is 0
    lo, hi : interval; 0 and NaN where there is no limit
    p : two-sided
    """

    ratio: Float
    lo: Float
    hi: Float
    p: Float


def compare(part: Part, alike: float | None, z: float) -> Odds:
    """Compare odds inside and outside each part.

    Parameters
    ----------
    part : sums of an indicator, so that y counts the rows in the tail
    alike : intraclass correlation of the indicator, None where every group has one row
    z : how many standard deviations the interval reaches
    """
    own, whole = part.own, part.whole
    counts = np.stack(
        [own.y, own.n - own.y, whole.y - own.y, (whole.n - own.n) - (whole.y - own.y)]
    )
    compared = (own.n < whole.n) & (whole.y > 0) & (whole.y < whole.n)
    counts += 0.5 * (counts == 0).any(axis=0)
    ratio = counts[0] * counts[3] / (counts[1] * counts[2])
    lo, hi = _interval(part, ratio, alike, z)
    p = _exact(part) if alike is None else 2 * scipy.special.ndtr(-np.abs(score(part, 0.0, alike)))
    found = (ratio, lo, hi, p)
    return Odds(*(np.where(compared, column, np.nan) for column in found))


def score(part: Part, log_ratio: float | Float, alike: float | None) -> Float:
    """Standardised score of a ratio of odds; 0 at the one that is seen, 0 where nothing varies."""
    inside, outside = _fitted(part, np.exp(log_ratio))
    n, rest = part.own.n, part.whole.n - part.own.n
    of_inside, of_outside = inside * (1 - inside), outside * (1 - outside)
    variance = part.model_variance(of_inside, of_outside, alike or 0.0)
    if alike is not None:
        information = n * of_inside + rest * of_outside
        share = np.divide(
            n * of_inside, information, out=np.zeros_like(information), where=information > 0
        )
        variance = np.maximum(variance, part.robust_variance(share, inside, outside))
    excess = part.own.y - n * inside
    return np.divide(excess, np.sqrt(variance), out=np.zeros_like(excess), where=variance > 0)


def _fitted(part: Part, ratio: Float) -> tuple[Float, Float]:
    """Probabilities inside and outside with this ratio of odds that give as many rows as there are.

    That outside is the root of (r - 1) N_out p^2 + b p - y = 0 in [0, 1].
    """
    n, rest, y = part.own.n, part.whole.n - part.own.n, part.whole.y
    b = n * ratio + rest - y * (ratio - 1)
    root = b + np.sqrt(np.maximum(b * b + 4 * rest * (ratio - 1) * y, 0.0))
    outside = np.minimum(np.divide(2 * y, root, out=np.zeros_like(root), where=root > 0), 1.0)
    odds = ratio * outside
    total = 1 - outside + odds
    return np.divide(odds, total, out=np.ones_like(odds), where=total > 0), outside


def _interval(part: Part, ratio: Float, alike: float | None, z: float) -> tuple[Float, Float]:
    """Find the furthest ratios, on both sides of the estimate, whose score is at most z."""
    estimate = np.log(ratio)
    side = np.array([[-1.0], [1.0]])
    offsets = side * STEPS[:, None, None]
    kept = np.abs(score(part, estimate + offsets, alike)) <= z
    beyond = np.where(kept.any(axis=0), len(STEPS) - kept[::-1].argmax(axis=0), 0)
    steps = np.concatenate([[0.0], STEPS, [np.inf]])
    near, far = steps[beyond], steps[np.minimum(beyond + 1, len(STEPS))]
    for _ in range(40):
        middle = (near + far) / 2
        inside = np.abs(score(part, estimate + side * middle, alike)) <= z
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    unlimited = beyond == len(STEPS)
    lo = np.where(unlimited[0], 0.0, ratio * np.exp(-near[0]))
    hi = np.where(unlimited[1], np.nan, ratio * np.exp(near[1]))
    return lo, hi


def _exact(part: Part) -> Float:
    """Twice the smaller tail of Fisher's exact test."""
    n, y = part.own.n, part.own.y
    fixed = scipy.stats.hypergeom(part.whole.n, part.whole.y, n)
    p: NDArray[np.float64] = np.minimum(1.0, 2 * np.minimum(fixed.cdf(y), fixed.sf(y - 1)))
    return p
