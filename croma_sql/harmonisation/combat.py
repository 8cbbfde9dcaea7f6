"""ComBat: location and scale of each confounder, shrunken towards what most features show.

Written here because no library does what a warehouse needs: estimates made on some rows (means of
slides) and applied to others as they stream by. neuroCombat is the published method and the
reference of the tests, but holds all rows and all residuals, applies its estimates to other rows
without their covariates, and has seen no release since 2021; neuroHarmonize and pycombat build on
it or do the same; inmoose is maintained but brings a dozen dependencies, among them anndata and
seaborn, and adjusts only the matrix it was fitted on; scanpy takes the spread of the prior with
another denominator than the original.

All estimates follow from sums per confounder, so two passes over the vectors are enough.
"""

import numpy as np

from croma_sql.errors import HarmonisationError, listed
from croma_sql.harmonisation.design import Design, Float
from croma_sql.harmonisation.linear import Blocks, Effects, effects, moments
from croma_sql.harmonisation.location import LocationScale

NO_VARIANCE = 1e-12  # of a feature's size, as a standard deviation; less than that is rounding
CONVERGED = 1e-4  # as published, and of the old estimates with their sign: see _posterior
MOST_STEPS = 10_000


def combat(blocks: Blocks, fitted_on: Design, applied_to: Design) -> LocationScale:
    """Parametric empirical Bayes adjustment of Johnson, Li and Rabinovic 2007."""
    added = moments(blocks, fitted_on)
    found = effects(added.xx[0], added.xy[0], fitted_on.k)
    alone = [name for name, n in zip(fitted_on.confounder.names, found.size, strict=True) if n < 2]
    if alone:
        raise HarmonisationError(
            f"ComBat estimates a variance under each confounder, which takes two rows (or groups, "
            f"where it is fitted on these): {listed(alone)} has one. Leave it out, or take method "
            "'mean'"
        )
    squares = _residual_squares(blocks, fitted_on, found)
    magnitude = np.abs(np.vstack([found.mean, found.shift, found.kept])).max(axis=0)
    limit = (NO_VARIANCE * magnitude) ** 2
    squares[squares <= limit * found.size[:, None]] = 0.0
    pooled = squares.sum(axis=0) / found.size.sum()
    varies = pooled > 0
    shift = np.where(np.abs(found.shift) > NO_VARIANCE * magnitude, found.shift, 0.0)
    scale = np.ones_like(shift)
    if varies.sum() < 2:
        raise HarmonisationError(
            f"ComBat learns from many features what is usual; {varies.sum()} of {len(varies)} "
            "features vary within the confounders. Take method 'mean'"
        )
    deviation = np.sqrt(pooled[varies])
    for one in range(fitted_on.k):
        gamma, delta = _posterior(
            found.shift[one, varies] / deviation,
            squares[one, varies] / pooled[varies],
            found.size[one],
        )
        shift[one, varies] = gamma * deviation
        scale[one, varies] = np.sqrt(np.where(delta > 0, delta, 1.0))
    return LocationScale(applied_to, found, shift, scale)


def _residual_squares(blocks: Blocks, design: Design, found: Effects) -> Float:
    """Sum of squared residuals under each confounder, (k, d)."""
    coefficients = np.vstack([found.mean + found.shift, found.kept])
    squares = np.zeros_like(found.shift)
    for rows, matrix in blocks():
        model = design.matrix(rows)
        squares += model[:, : design.k].T @ (matrix - model @ coefficients) ** 2
    return squares


def _largest_step(old: Float, new: Float) -> float:
    """Relative to the old, with its sign. What stays at zero has made no step."""
    step = np.abs(new - old)
    with np.errstate(divide="ignore"):
        relative = np.divide(step, old, out=np.zeros_like(step), where=step > 0)
    return float(relative.max())


def _posterior(gamma_hat: Float, squares: Float, n: float) -> tuple[Float, Float]:
    """Shift and variance of the standardised features under one confounder, given their priors.

    The prior of shifts is normal, that of variances inverse gamma, both with the moments of the
    estimates over all features. Its parameters are multiplied through, so that they stay finite
    where all features have one variance.

    Iteration stops where sva and neuroCombat stop, at a change of less than 1e-4 of the old
    estimates (in which a negative shift never counts). Going on would move results of a dozen rows
    by up to 3e-5 standard deviations, and away from what everybody else computes.
    """
    delta_hat = squares / (n - 1)
    centre, spread = gamma_hat.mean(), gamma_hat.var(ddof=1)
    usual, variety = delta_hat.mean(), delta_hat.var(ddof=1)
    if usual == 0:
        return gamma_hat, delta_hat  # its vectors are all alike: there is no scale to undo
    gamma, delta = gamma_hat, delta_hat
    for _ in range(MOST_STEPS):
        weight = n * spread + delta
        new_gamma = np.where(
            weight > 0,
            (n * spread * gamma_hat + delta * centre) / np.where(weight > 0, weight, 1),
            centre,
        )
        about = squares + n * (gamma_hat - new_gamma) ** 2
        new_delta = (variety * (about / 2 + usual) + usual**3) / (variety * (n / 2 + 1) + usual**2)
        change = max(_largest_step(gamma, new_gamma), _largest_step(delta, new_delta))
        gamma, delta = new_gamma, new_delta
        if change < CONVERGED:
            return gamma, delta
    raise HarmonisationError(
        f"ComBat has not converged after {MOST_STEPS} steps; take method 'mean'"
    )
