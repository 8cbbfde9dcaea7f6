"""Whether the nearest neighbours of a sample vote for its own class, however many are asked."""

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.scope import Codes, Int


def hits(
    neighbour: NDArray[np.int32], anchor: Int, code: Codes, usable: NDArray[np.bool_], rank: Int
) -> NDArray[np.bool_]:
    """Tell, for every n, whether the class that most of the n nearest have is the anchor's own.

    A tie goes to the class that comes first in the scope, in the order of ``rank``.

    Parameters
    ----------
    neighbour : (a, k) int32, rows of the scope, nearest first; -1 where there are no more
    anchor : (a,) int64, rows of the scope whose neighbours these are
    code, usable, rank : (n,) of the scope

    Returns
    -------
    (a, k) bool; False where there are no more neighbours

    Examples
    --------
    The classes of the neighbours are 1, 0, 0; after two there is a tie, and 0 comes first.

    >>> code, everyone = np.array([0, 1, 0, 0], np.int32), np.ones(4, bool)
    >>> found = np.array([[1, 2, 3]], np.int32)
    >>> hits(found, np.array([0]), code, everyone, np.arange(4)).tolist()
    [[False, True, True]]
    """
    order = np.argsort(rank)
    order = order[usable[order]]
    _, first, renumbered = np.unique(code[order], return_index=True, return_inverse=True)
    place = np.empty(len(code), np.int64)
    place[order] = np.argsort(np.argsort(first))[renumbered]
    out = np.zeros(neighbour.shape, np.bool_)
    _hits(neighbour, anchor, place, np.zeros(len(first) + 1, np.int64), out)
    return out


@kernel()
def _hits(neighbour, anchor, place, votes, out):
    """``votes``: zeros, one per class and one more; ``place``: (n,) classes in order of ties."""
    for i in range(neighbour.shape[0]):
        leader = votes.shape[0] - 1
        for nth in range(neighbour.shape[1]):
            who = neighbour[i, nth]
            if who < 0:
                break
            voted = place[who]
            votes[voted] += 1
            if votes[voted] > votes[leader] or (votes[voted] == votes[leader] and voted < leader):
                leader = voted
            out[i, nth] = leader == place[anchor[i]]
        votes[:] = 0
