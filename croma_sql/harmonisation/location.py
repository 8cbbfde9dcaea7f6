"""Shifts and scales of confounders, undone; and the simplest of them, centring on the means."""

from dataclasses import dataclass

from croma_sql.harmonisation.design import Design, Float, Int
from croma_sql.harmonisation.linear import Blocks, Effects, effects, moments


@dataclass(frozen=True, slots=True)
class LocationScale:
    """Undo a shift, and where there is one a scale, of every confounder.

    shift : (k, d); scale : (k, d), what residuals are divided by, or None
    """

    design: Design
    effects: Effects
    shift: Float
    scale: Float | None

    def apply(self, rows: Int, matrix: Float) -> Float:
        """Harmonise vectors of rows of the design."""
        confounder = self.design.confounder.codes[rows]
        moved = matrix - self.shift[confounder]
        if self.scale is None:
            return moved
        kept = self.effects.mean + self.design.kept(rows) @ self.effects.kept
        return (moved - kept) / self.scale[confounder] + kept


def mean_centring(blocks: Blocks, fitted_on: Design, applied_to: Design) -> LocationScale:
    """Subtract the effect of each confounder: without covariates, its mean less that of all."""
    added = moments(blocks, fitted_on)
    found = effects(added.xx[0], added.xy[0], fitted_on.k)
    return LocationScale(applied_to, found, found.shift, None)
