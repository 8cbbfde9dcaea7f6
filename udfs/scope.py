"""What the search takes and gives: arrays only.

Types of neighbours: SO has the same label and another confounder, OS another label and the same
confounder, ANY is every eligible candidate: of another group.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SO, OS, ANY = 0, 1, 2

Int = NDArray[np.int64]
Codes = NDArray[np.int32]
Float = NDArray[np.float64]
Stored = NDArray[np.generic]


class Vectors(Protocol):
    """Vectors in the precision they came in, wherever they lie.

    square : (N,) float64, |z|^2; not finite or 0 where a vector has no direction
    """

    @property
    def square(self) -> Float:
        """|z|^2 of each."""

    @property
    def d(self) -> int:
        """Features."""

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""

    def take(self, rows: Int) -> tuple[Stored, Int]:
        """Bring rows into memory: a matrix, and where in it each of them is.

        float16 comes as the uint16 of its bits, which kernels read. The matrix may be the calling
        thread's own, which its next ``take`` fills anew.
        """


@dataclass(frozen=True, slots=True)
class InMemory:
    """All vectors in one C-contiguous matrix."""

    stored: Stored
    square: Float

    @property
    def d(self) -> int:
        """Features."""
        return int(self.stored.shape[1])

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return int(self.stored.itemsize)

    def take(self, rows: Int) -> tuple[Stored, Int]:
        """Hand out the matrix itself."""
        return self.stored, rows


@dataclass(frozen=True, slots=True)
class Scope:
    """Rows scored together: what `croma_sql.cohort` has validated.

    vectors : those of this scope and perhaps others
    row : (n,) int64, which of the vectors is that of each sample
    label, confounder, group : (n,) int32 codes
    rank : (n,) int64, place of each row in the order that breaks ties
    usable : (n,) bool; the others are neither anchors nor candidates
    """

    vectors: Vectors
    row: Int
    label: Codes
    confounder: Codes
    group: Codes
    rank: Int
    usable: NDArray[np.bool_]

    @property
    def in_memory(self) -> bool:
        """Whether every vector can be had without reading it."""
        return isinstance(self.vectors, InMemory)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Neighbours of one type, nearest first; ``a`` anchors, at most ``depth`` each.

    neighbour : (a, depth) int32, row of the scope, -1 where there are fewer
    distance : (a, depth) float64 cosine distance, NaN where there are fewer
    """

    neighbour: Codes
    distance: Float


@dataclass(frozen=True, slots=True)
class Edges:
    """What the search found for each anchor: every row of a scope, or a range of them.

    so, os, nearest : neighbours of type SO, OS and ANY; depths m, m and k
    first_so_rank, first_os_rank : (a,) int64, place of the first SO and OS among all eligible
        candidates, 1-based; 0 where there is none, or where it was not asked for
    usable : (a,) bool, as in the scope
    searched_again : rows whose first pass could not be proven (a matter of cost, never of result)
    """

    so: Neighbours
    os: Neighbours
    nearest: Neighbours
    first_so_rank: Int
    first_os_rank: Int
    usable: NDArray[np.bool_]
    searched_again: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to search for.

    m : SO and OS neighbours per sample, at least 1
    k : nearest neighbours of any type per sample; 0 for none
    first_ranks : whether to rank the first SO and OS among all eligible candidates
    """

    m: int
    k: int = 0
    first_ranks: bool = False

    @property
    def every_pair(self) -> bool:
        """Whether pairs that are neither SO nor OS matter too."""
        return self.k > 0 or self.first_ranks


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is.

    share : of the multiply work known, in [0, 1]. Rows that must be searched again add to it when
        they are found, so it can fall back a little.
    rate : distances per second
    seconds_left : at this rate
    """

    share: float
    rate: float
    seconds_left: float
