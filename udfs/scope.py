"""What the search takes and gives, as arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SO, OS = 0, 1

Int = NDArray[np.int64]
Codes = NDArray[np.int32]
Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scope:
    """Rows scored together, as arrays: what `croma_sql.cohort` has validated.

    vectors : (n, d) float16, float32 or float64, C-contiguous
    label, confounder, group : (n,) int32 codes
    rank : (n,) int64, place of each row in the order that breaks ties
    usable : (n,) bool; the others are neither anchors nor candidates
    """

    vectors: NDArray[np.floating]
    label: Codes
    confounder: Codes
    group: Codes
    rank: Int
    usable: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Edges:
    """Typed neighbours of every row of a scope, nearest first. Axis 0 is SO, OS.

    neighbour : (2, n, min(m, n)) int64, row of the scope, -1 where there are fewer
    distance : (2, n, min(m, n)) float64 cosine distance, NaN where there are fewer
    usable : (n,) bool, as in the scope
    searched_again : rows whose first pass could not be proven (a matter of cost, never of result)
    """

    neighbour: Int
    distance: Float
    usable: NDArray[np.bool_]
    searched_again: int
