"""Bring a scope into the order of the search, and its vectors into the form that is multiplied."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs import kernels
from croma_sql.udfs.scope import Codes, Float, Int, Scope
from croma_sql.udfs.threads import ForEach
from croma_sql.udfs.tiles import ranges

CENTRE_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Arranged:
    """A scope sorted by (label, confounder) cell, then rank; arrays are indexed by position.

    stored : (rows of the scope, d), as it came in; float16 as the bits that kernels read
    square : (rows of the scope,) float64, |z|^2
    order : (n,) int64, row of the scope at each position; only usable rows have one
    rank, label, confounder, group : (n,), those of the scope
    residual : (n, d) float32, z/|z| minus a centre
    half : (n,) float32, |residual|^2 / 2
    radius : (n,) float64, at least |residual|
    """

    stored: NDArray[np.generic]
    square: Float
    order: Int
    rank: Int
    label: Codes
    confounder: Codes
    group: Codes
    residual: NDArray[np.float32]
    half: NDArray[np.float32]
    radius: Float


def arrange(scope: Scope, for_each: ForEach) -> Arranged:
    """Sort, measure and centre the usable rows of a scope."""
    vectors = scope.vectors
    stored = vectors.view(np.uint16) if vectors.dtype == np.float16 else vectors
    order = np.lexsort((scope.rank, scope.confounder, scope.label))
    order = order[scope.usable[order]]
    n, d = len(order), vectors.shape[1]
    square = np.empty(len(stored))
    for_each(
        lambda rows: kernels.squared_norms(stored, square, rows.start, rows.stop),
        ranges(len(stored)),
    )
    # Any centre is right; a sample of rows gives one that is good enough to shorten the residuals.
    sample = order[:: max(1, n // CENTRE_ROWS)]
    centre = np.zeros(d)
    kernels.unit_sums(stored, square, sample, centre)
    centre /= max(1, len(sample))
    residual, half = np.empty((n, d), np.float32), np.empty(n, np.float32)
    for_each(
        lambda rows: kernels.residuals(
            stored, square, order, centre, residual, half, rows.start, rows.stop
        ),
        ranges(n),
    )
    return Arranged(
        stored=stored,
        square=square,
        order=order,
        rank=scope.rank[order],
        label=scope.label[order],
        confounder=scope.confounder[order],
        group=scope.group[order],
        residual=residual,
        half=half,
        radius=np.sqrt(2.0 * half.astype(np.float64)) * (1 + 4 * kernels.ROUNDING),
    )
