"""Least squares on vectors that stream by: what is added up per fold, and the effects it gives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from croma_sql.errors import HarmonisationError
from croma_sql.harmonisation.design import Design, Float, Int, independent, is_confounded

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
    """Solve the normal equations.

    The mean is that of the rows but for what is kept: confounders weigh by their size, as in
    Johnson et al. 2007. Covariates of which these rows show nothing have no effect.

    Raises
    ------
    HarmonisationError
        These rows do not tell what is to be kept from the confounder.
    """
    from scipy.linalg import cho_factor, cho_solve

    size, sums, kept = np.diag(xx)[:k].copy(), xx[:k, k:], np.zeros((len(xx) - k, xy.shape[1]))
    overall = sums.sum(axis=0)
    total = xx[k:, k:] - np.outer(overall, overall) / size.sum()
    within = xx[k:, k:] - (sums.T / size) @ sums
    if is_confounded(total, within):
        raise HarmonisationError("what is to be kept cannot be told from the confounder")
    varying = independent(within, total)
    some = np.concatenate([np.arange(k), k + varying])
    scale = np.sqrt(np.diag(xx)[some])
    factor = cho_factor(xx[np.ix_(some, some)] / np.outer(scale, scale), check_finite=False)
    found = cho_solve(factor, xy[some] / scale[:, None], check_finite=False) / scale[:, None]
    kept[varying] = found[k:]
    mean = size @ found[:k] / size.sum()
    return Effects(size, mean, found[:k] - mean, kept)
