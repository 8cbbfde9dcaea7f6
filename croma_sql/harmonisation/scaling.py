"""Vectors brought within [-1, 1] and back, by powers of two: of any size, and nothing is rounded.

ComBat squares residuals, the solver of directions squares means; of vectors about 1e200 or 1e-160
the squares leave what float64 holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from croma_sql.harmonisation.design import Float, Int
from croma_sql.harmonisation.linear import Blocks

MOST = 1020  # of exponents; 2^-1020 and its inverse are both float64


class Fitted(Protocol):
    """What harmonises vectors, given which rows of the design they are of."""

    def apply(self, rows: Int, matrix: Float) -> Float:
        """Harmonise, in float64."""
        ...


@dataclass(frozen=True, slots=True)
class Rescaled:
    """Harmonise vectors by what was fitted on ``factor`` times them; factor : (d,) or (1,)."""

    fitted: Fitted
    factor: Float

    def apply(self, rows: Int, matrix: Float) -> Float:
        """Harmonise vectors of rows of the design."""
        return self.fitted.apply(rows, matrix * self.factor) / self.factor


def factor_for(largest: Float) -> Float:
    """Give the powers of two that bring numbers of at most this size to about 1."""
    _, exponent = np.frexp(largest)
    factor: Float = np.ldexp(1.0, -np.clip(exponent, -MOST, MOST))
    return factor


def rescaled(blocks: Blocks, factor: Float) -> Blocks:
    """Multiply the vectors that stream by."""

    def multiplied() -> Iterator[tuple[Int, Float]]:
        return ((rows, matrix * factor) for rows, matrix in blocks())

    return multiplied
