"""Which slices are worst, how certain that is, and which of them say nothing new."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from croma_sql.statistics.contrasts import (
    Common,
    Float,
    Part,
    differences,
    false_discovery_rate,
)
from croma_sql.statistics.shrinkage import shrink
from croma_sql.statistics.slices import Slices

ADDS = 0.01  # chance that any of the refinements of a slice is listed though none adds anything


@dataclass(frozen=True, slots=True)
class Ranked:
    """Slices that are lower than the whole and than what they refine, worst first.

    slices, deficit, score, p, q : one entry per slice; deficit is the whole's mean minus its own
    """

    slices: Slices
    deficit: Float
    score: Float
    p: Float
    q: Float


def rank(slices: Slices, common: Common) -> Ranked:
    """Rank slices by their deficit after shrinkage.

    A slice is a discovery if it is lower than the whole and lower than each slice that it refines:
    its p is the largest of these tests. Refinements that add nothing are then none, and one true
    subgroup does not make room for false ones by the many refinements it has.

    Parameters
    ----------
    slices : every one, the whole first, with sums of margins
    common : what all margins have in common
    """
    distinct = _distinct(slices.mark)[1:]  # the first is the whole
    found = slices.where(distinct if common.variance > 0 else distinct[:0])
    from_whole = differences(Part.of(found.own, found.cross[:, 0], slices.own[0]), common)
    p, adds = from_whole.chance(), from_whole.mean < 0
    refinements = np.bincount(found.parent[found.parent >= 0], minlength=len(slices))
    for place in range(found.parent.shape[1]):
        finer = np.flatnonzero(found.parent[:, place] >= 0)
        parent = found.parent[finer, place]
        part = Part.of(found.own[finer], found.cross[finer, 1 + place], slices.own[parent])
        chance = differences(part, common).chance()
        p[finer] = np.maximum(p[finer], chance)
        adds[finer] &= chance * refinements[parent] <= ADDS
    score = -shrink(from_whole.mean, from_whole.variance)
    listed = np.flatnonzero(adds)
    order = listed[np.lexsort((p[listed], -score[listed]))]
    return Ranked(
        found.where(order),
        -from_whole.mean[order],
        score[order],
        p[order],
        false_discovery_rate(p)[order],
    )


def _distinct(mark: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Of slices of the same rows the first, which has the fewest conditions."""
    return np.sort(np.unique(mark, return_index=True)[1])
