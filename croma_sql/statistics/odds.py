"""Odds ratios of being in a tail, part against rest, with a test and the interval it gives."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from croma_sql.statistics.contrasts import Float, Part

FURTHEST = 20.0  # logarithm: beyond it there is no limit
LARGEST_EFFECT = 2.0  # of rows that are all alike in their groups; an exact test bears no more
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


def compare(part: Part, alike: float, z: float) -> Odds:
    """Compare odds inside and outside each part.

    Parameters
    ----------
    part : sums of an indicator, so that y counts the rows in the tail
    alike : intraclass correlation of the indicator
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
    by_score = 2 * scipy.special.ndtr(-np.abs(score(part, 0.0, alike)))
    p = np.where(nearly_independent(part), _exact(part, alike), by_score)
    found = (ratio, lo, hi, p)
    return Odds(*(np.where(compared, column, np.nan) for column in found))


def nearly_independent(part: Part) -> NDArray[np.bool_]:
    """Whether no rows of the part, or of the rest, share groups, and those of the other hardly."""
    own, whole = part.own, part.whole
    n, nn = whole.n - own.n, whole.nn - 2 * part.nn + own.nn
    inside, outside = (own.nn == own.n), (nn == n)
    apart = part.nn == own.nn  # no group has rows of both
    few = (own.nn <= LARGEST_EFFECT * own.n) & (nn <= LARGEST_EFFECT * n)
    found: NDArray[np.bool_] = (inside | outside) & apart & few
    return found


def score(part: Part, log_ratio: float | Float, alike: float) -> Float:
    """Standardised score of a ratio of odds; 0 at the one that is seen, 0 where nothing varies."""
    inside, outside = _fitted(part, np.exp(log_ratio))
    n, rest = part.own.n, part.whole.n - part.own.n
    of_inside, of_outside = inside * (1 - inside), outside * (1 - outside)
    model = part.model_variance(of_inside, of_outside, alike)
    information = n * of_inside + rest * of_outside
    share = np.divide(
        n * of_inside, information, out=np.zeros_like(information), where=information > 0
    )
    robust = part.robust_variance(share, inside, outside)
    variance = np.where(nearly_independent(part), model, np.maximum(model, robust))
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


def _interval(part: Part, ratio: Float, alike: float, z: float) -> tuple[Float, Float]:
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
    lo, hi = ratio * np.exp(-near[0]), ratio * np.exp(near[1])
    lo = np.where(unlimited[0] | (lo < np.exp(-FURTHEST)), 0.0, lo)
    return lo, np.where(unlimited[1] | (hi > np.exp(FURTHEST)), np.nan, hi)


def _exact(part: Part, alike: float) -> Float:
    """Twice the smaller tail of Fisher's exact test, of as many independent rows as there are."""
    own, whole = part.own, part.whole
    n, y = _independent(own.n, own.y, own.nn, alike)
    rest = whole.n - own.n, whole.y - own.y, whole.nn - 2 * part.nn + own.nn
    n_rest, y_rest = _independent(*rest, alike)
    fixed = scipy.stats.hypergeom(n + n_rest, y + y_rest, n)
    p: Float = np.minimum(1.0, 2 * np.minimum(fixed.cdf(y), fixed.sf(y - 1)))
    return p


def _independent(n: Float, y: Float, nn: Float, alike: float) -> tuple[Float, Float]:
    """Divide counts by the design effect."""
    effect = _effect(n, nn, alike)
    kept = np.round(n / effect)
    return kept, np.minimum(np.round(y / effect), kept)


def _effect(n: Float, nn: Float, alike: float) -> Float:
    """How many rows are worth one that is independent (Kish 1965)."""
    effect: Float = 1 + alike * (np.divide(nn, n, out=np.ones_like(n), where=n > 0) - 1)
    return effect
