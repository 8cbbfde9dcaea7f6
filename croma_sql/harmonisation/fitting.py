"""Fit a method on samples or on means of groups, and get what harmonises samples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from croma_sql.errors import HarmonisationError
from croma_sql.harmonisation.combat import combat
from croma_sql.harmonisation.design import Design, Float, Int, Levels, blocks_of
from croma_sql.harmonisation.directions import Folds, folds_of, without_directions
from croma_sql.harmonisation.linear import Blocks
from croma_sql.harmonisation.location import mean_centring
from croma_sql.harmonisation.scaling import Fitted, Rescaled, factor_for, rescaled

Method = Literal["combat", "mean", "directions"]
FitOn = Literal["samples", "groups"]


@dataclass(frozen=True, slots=True)
class How:
    """What is asked for; the last three are for directions only."""

    method: Method = "combat"
    fit_on: FitOn = "samples"
    n_directions: int | None = None
    folds: int = 5
    seed: int = 0

    @property
    def needs_groups(self) -> bool:
        """Whether it makes a difference which rows are one group."""
        return self.fit_on == "groups" or self.method == "directions"

    @property
    def passes(self) -> int:
        """How often the vectors are read, until they are harmonised."""
        return 3 if self.method == "combat" and self.fit_on == "samples" else 2


def checked(how: How) -> How:
    """Refuse what is not known."""
    for value, name, known in (
        (how.method, "method", get_args(Method)),
        (how.fit_on, "fit_on", get_args(FitOn)),
    ):
        if value not in known:
            raise HarmonisationError(f"{name} is {value!r}; it is one of {', '.join(known)}")
    for number, name, least in ((how.folds, "folds", 2), (how.seed, "seed", 0)):
        if not _is_whole(number) or number < least:
            raise HarmonisationError(f"{name} is {number!r}; it is a whole number from {least}")
    return how


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def fit(blocks: Blocks, design: Design, group: Levels, how: How, largest: Float) -> Fitted:
    """Estimate what is to be undone.

    Parameters
    ----------
    blocks : the vectors of all rows of the design
    largest : (d,) the largest absolute value of every feature
    """
    if how.method == "directions":  # which mix features, so that one scale must do
        factor = factor_for(largest.max(keepdims=True))
    else:
        factor = factor_for(largest)
    fitted = _fit(rescaled(blocks, factor), design, group, how, largest * factor)
    return Rescaled(fitted, factor)


def _fit(blocks: Blocks, design: Design, group: Levels, how: How, largest: Float) -> Fitted:
    fitted_on, codes = design, group.codes
    if how.fit_on == "groups":
        blocks, fitted_on, codes = _pooled(blocks, design, codes)
    if how.method == "combat":
        return combat(blocks, fitted_on, design)
    if how.method == "mean":
        return mean_centring(blocks, fitted_on, design)
    fold = folds_of(design, group, how.folds, how.seed)
    folds = Folds(fold[codes], fold[group.codes])
    return without_directions(blocks, fitted_on, folds, how.n_directions, largest)


def _pooled(blocks: Blocks, design: Design, group: Int) -> tuple[Blocks, Design, Int]:
    """Means over the rows of a group that are alike in confounder and categories."""
    unit = group
    for values in (design.confounder, *design.covariates.values()):
        if isinstance(values, Levels):
            unit = np.unique(unit * len(values.names) + values.codes, return_inverse=True)[1]
    _, first = np.unique(unit, return_index=True)
    sums, size = None, np.zeros(len(first))
    for rows, matrix in blocks():
        if sums is None:
            sums = np.zeros((len(first), matrix.shape[1]))
        np.add.at(sums, unit[rows], matrix)
        size += np.bincount(unit[rows], minlength=len(first))
    if sums is None:
        raise HarmonisationError("there is no vector to harmonise")
    means = sums / size[:, None]

    def of_units() -> Iterator[tuple[Int, Float]]:
        for some in blocks_of(len(means)):
            yield np.arange(some.start, some.stop), means[some]

    return of_units, design.pooled(unit, first), group[first]
