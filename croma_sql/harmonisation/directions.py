"""Take out the directions in which confounders differ, as other groups show them.

Which directions? Those of the differences between the means of the confounders, by size (their
singular vectors). Once the means are equal no linear classifier of any convex loss does better than
chance on the rows that were fitted (Belrose et al. 2023, LEACE, theorem 3.1), and projecting their
span out makes them so (Shao, Ziser, Cohen 2023, spectral attribute removal). Directions of a
discriminant analysis do not: the vector that separates best is not the one along which the means
differ, and means still differ after it has been projected out. Means are also all that need be
added up, in one pass.

Rows of a group are projected by directions of the other folds alone, so nothing of a row's own
group has a say in what happens to it. The price: rows of different folds are projected a little
differently, which puts a little distance between them.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from croma_sql.errors import HarmonisationError, listed
from croma_sql.harmonisation.design import Design, Float, Int, Levels
from croma_sql.harmonisation.linear import Blocks, effects, moments

NO_DIFFERENCE = 1e-12  # of the vectors' size; means are added up to about that


@dataclass(frozen=True, slots=True)
class Folds:
    """The fold of the rows that are fitted on, and of those that will be harmonised."""

    fitted_on: Int
    applied_to: Int


@dataclass(frozen=True, slots=True)
class Projections:
    """Remove directions, those of a row's fold.

    fold : (n,); mean : (folds, d) that stays where it is; directions : (folds, r, d), orthonormal,
    or zero where there are fewer
    """

    fold: Int
    mean: Float
    directions: Float

    def apply(self, rows: Int, matrix: Float) -> Float:
        """Harmonise vectors of rows of the design."""
        result = np.empty_like(matrix)
        of_rows = self.fold[rows]
        for one in np.unique(of_rows):
            some, directions = of_rows == one, self.directions[one]
            along = (matrix[some] - self.mean[one]) @ directions.T
            result[some] = matrix[some] - along @ directions
        return result


def folds_of(design: Design, group: Levels, folds: int, seed: int) -> Int:
    """Deal whole groups out to folds, so that each has its share of every confounder, (groups,)."""
    pairs = np.unique(np.column_stack([group.codes, design.confounder.codes]), axis=0)
    n_groups = np.bincount(pairs[:, 1], minlength=design.k)
    if n_groups.min() < 2:
        names = [design.confounder.names[one] for one in np.flatnonzero(n_groups < 2)]
        raise HarmonisationError(
            f"directions are fitted on other groups, but {listed(names)} has one group only. Leave "
            "it out, or take another method"
        )
    if not 2 <= folds <= len(group.names):
        raise HarmonisationError(
            f"folds is {folds}; it is a whole number from 2 to the {len(group.names)} groups"
        )
    fold_of_pair = _dealt(pairs, folds, seed)
    fold = np.empty(len(group.names), np.int64)
    fold[pairs[:, 0]] = fold_of_pair
    held_out = np.zeros((folds, design.k), np.int64)
    np.add.at(held_out, (fold_of_pair, pairs[:, 1]), 1)
    gone = np.flatnonzero((held_out == n_groups).any(axis=0))
    if len(gone):
        raise HarmonisationError(
            f"all groups of {listed(design.confounder.names[one] for one in gone)} came into one "
            f"fold, so none is left to fit directions on; take more folds than {folds}, or another "
            "seed"
        )
    return fold


def _dealt(pairs: Int, folds: int, seed: int) -> Int:
    from sklearn.model_selection import StratifiedGroupKFold

    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    fold = np.empty(len(pairs), np.int64)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        try:
            for one, (_, some) in enumerate(splitter.split(pairs, pairs[:, 1], pairs[:, 0])):
                fold[some] = one
        except ValueError as error:
            raise HarmonisationError(
                f"groups cannot be dealt out to {folds} folds: {error}"
            ) from error
    return fold


def without_directions(
    blocks: Blocks,
    fitted_on: Design,
    fold: Folds,
    n_directions: int | None,
    largest: Float,
) -> Projections:
    """Fit the directions of each fold on the rows of all others.

    Where means differ by rounding only, the singular vectors are any: nothing is removed for them.
    Rounding is what a sum of n rows makes of their size, so it is held against the largest values
    (d,) of the features, not against the means, which may cancel.

    Parameters
    ----------
    n_directions : default as many as the means of the confounders span, their number less one
    """
    folds = int(fold.applied_to.max()) + 1
    added = moments(blocks, fitted_on, fold.fitted_on, folds)
    d = added.xy.shape[2]
    wanted = _checked(n_directions, fitted_on.k - 1, d)
    mean, directions = np.empty((folds, d)), np.empty((folds, wanted, d))
    for one in range(folds):
        others = (
            np.arange(folds) != one
        )  # added up anew: a difference would keep a trace of its own
        try:
            found = effects(added.xx[others].sum(axis=0), added.xy[others].sum(axis=0), fitted_on.k)
        except HarmonisationError as error:
            raise HarmonisationError(
                f"without the groups of one fold, {error}. Keep less, or take another seed or more "
                "folds"
            ) from error
        mean[one] = found.mean
        weighted = np.sqrt(found.size)[:, None] * found.shift
        _, size, found_directions = np.linalg.svd(weighted, full_matrices=False)
        rounding = NO_DIFFERENCE * np.sqrt(found.size.sum()) * np.linalg.norm(largest)
        there = (size > rounding)[:wanted, None]
        directions[one] = np.where(there, found_directions[:wanted], 0.0)
    return Projections(fold.applied_to, mean, directions)


def _checked(n_directions: Any, most: int, d: int) -> int:
    if n_directions is None:
        n_directions = most
    whole = isinstance(n_directions, int | np.integer) and not isinstance(n_directions, bool)
    if not whole or not 1 <= n_directions <= most:
        raise HarmonisationError(
            f"n_directions is {n_directions!r}; {most + 1} confounders differ in 1 to {most} "
            "directions"
        )
    if n_directions >= d:
        raise HarmonisationError(
            f"vectors of {d} dimensions have nothing left without {n_directions} directions; take "
            "fewer (n_directions), or another method"
        )
    return int(n_directions)
