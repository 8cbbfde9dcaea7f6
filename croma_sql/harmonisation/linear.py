"""Least squares on vectors that stream by: what is added up per fold, and the effects it gives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from croma_sql.errors import HarmonisationError
from croma_sql.harmonisation.design import Design, Float, Int

Blocks = Callable[[], Iterator[tuple[Int, Float]]]  # rows of the design, and their vectors


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over rows, of products of the model's columns and of these with the features.

    xx : (folds, k + p, k + p); xy : (folds, k + p, d)
    """

    xx: Float
    xy: Float


@dataclass(frozen=True, slots=True)
class Effects:
    """Coefficients of the linear model.

    size : (k,) rows under each confounder; mean : (d,) of all rows; shift : (k, d) what being under
    a confounder adds to it; kept : (p, d) what the covariates add
    """

    size: Float
    mean: Float
    shift: Float
    kept: Float


def moments(blocks: Blocks, design: Design, fold: Int | None = None, folds: int = 1) -> Moments:
    """Add the rows up, fold by fold."""
    q = design.k + len(design.columns)
    xx, xy = np.zeros((folds, q, q)), None
    for rows, matrix in blocks():
        if xy is None:
            xy = np.zeros((folds, q, matrix.shape[1]))
        of_rows = np.zeros(len(rows), np.int64) if fold is None else fold[rows]
        model = design.matrix(rows)
        for one in np.unique(of_rows):
            some = of_rows == one
            xx[one] += model[some].T @ model[some]
            xy[one] += model[some].T @ matrix[some]
    if xy is None:
        raise HarmonisationError("there is no vector to harmonise")
    return Moments(xx, xy)


def effects(xx: Float, xy: Float, k: int) -> Effects:
    """Solve the normal equations of a model of full rank.

    The mean is that of the rows but for what is kept: confounders weigh by their size, as in
    Johnson et al. 2007.
    """
    from scipy.linalg import solve

    found = solve(xx, xy, assume_a="pos", check_finite=False)
    size = np.diag(xx)[:k].copy()
    mean = size @ found[:k] / size.sum()
    return Effects(size, mean, found[:k] - mean, found[k:])
