"""Means and maxima of many vectors, made up as they stream by."""

import numpy as np

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import widen
from croma_sql.udfs.scope import Float, Int, Stored

EVERY = slice(None)


class Pool:
    """Running sums of vectors at numbered places.

    Each sum is carried in twice the precision of float64, so that the order in which vectors come
    does not show in the last bit of a mean.

    Parameters
    ----------
    places : int
    d : int
        Features.

    Attributes
    ----------
    count : (places,) int64
        Vectors at each place so far.

    Examples
    --------
    >>> import numpy as np
    >>> pool = Pool(2, 1)
    >>> pool.add(np.array([[1e16], [1.0], [7.0]]), np.array([0, 0, 1]))
    >>> pool.add(np.array([[-1e16]]), np.array([0]))
    >>> pool.means().tolist()
    [[0.3333333333333333], [7.0]]
    """

    def __init__(self, places: int, d: int) -> None:
        self._high = np.zeros((places, d))
        self._low = np.zeros((places, d))
        self.count: Int = np.zeros(places, np.int64)

    def add(self, stored: Stored, places: Int, scale: Float | None = None) -> None:
        """Add row i of ``stored`` (n, d) to place ``places[i]``; below 0: to none.

        Float16 may come as such or as the uint16 of its bits. Where scales are given, row i is
        first multiplied by ``scale[i]``.
        """
        scale = np.ones(len(stored)) if scale is None else scale
        _add(_bits(stored), places, scale, self._high, self._low, self.count)

    def means(self, places: slice = EVERY) -> Float:
        """Give the (places, d) float64 means; NaN at a place without vectors."""
        with np.errstate(invalid="ignore"):
            sums = self._high[places] + self._low[places]
            means: Float = sums / self.count[places, None]
        return means


class Maxima:
    """Running maxima of every feature of vectors at numbered places.

    Parameters
    ----------
    places : int
    d : int
        Features.

    Attributes
    ----------
    count : (places,) int64
        Vectors at each place so far.

    Examples
    --------
    >>> import numpy as np
    >>> maxima = Maxima(2, 2)
    >>> maxima.add(np.array([[1.0, -3.0], [0.0, -2.0]]), np.array([0, 0]))
    >>> maxima.largest().tolist()
    [[1.0, -2.0], [nan, nan]]
    """

    def __init__(self, places: int, d: int) -> None:
        self._largest = np.full((places, d), -np.inf)
        self.count: Int = np.zeros(places, np.int64)

    def add(self, stored: Stored, places: Int) -> None:
        """Let row i of ``stored`` (n, d) take part at place ``places[i]``, as in `Pool.add`."""
        _raise(_bits(stored), places, self._largest, self.count)

    def largest(self, places: slice = EVERY) -> Float:
        """Give the (places, d) float64 maxima; NaN at a place without vectors."""
        return np.where(self.count[places, None] > 0, self._largest[places], np.nan)


def _bits(stored: Stored) -> Stored:
    return stored.view(np.uint16) if stored.dtype == np.float16 else stored


@kernel()
def _add(stored, places, scale, high, low, count):
    for i in range(stored.shape[0]):
        p = places[i]
        if p < 0:
            continue
        count[p] += 1
        total, rest = high[p], low[p]
        for k in range(stored.shape[1]):
            x = widen(stored[i, k]) * scale[i]
            before = total[k]
            after = before + x
            added = after - before
            rest[k] += (before - (after - added)) + (x - added)
            total[k] = after


@kernel()
def _raise(stored, places, largest, count):
    for i in range(stored.shape[0]):
        p = places[i]
        if p < 0:
            continue
        count[p] += 1
        top = largest[p]
        for k in range(stored.shape[1]):
            top[k] = max(top[k], widen(stored[i, k]))
