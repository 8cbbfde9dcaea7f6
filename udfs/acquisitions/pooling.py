"""Means of many vectors, added up as they stream by."""

import numpy as np

from croma_sql.udfs.compiled import kernel
from croma_sql.udfs.exact import widen
from croma_sql.udfs.scope import Float, Int, Stored


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

    def add(self, stored: Stored, places: Int) -> None:
        """Add row i of ``stored`` (n, d) to place ``places[i]``; below 0: to none.

        Float16 may come as such or as the uint16 of its bits.
        """
        if stored.dtype == np.float16:
            stored = stored.view(np.uint16)
        _add(stored, places, self._high, self._low, self.count)

    def means(self) -> Float:
        """Give the (places, d) float64 means; NaN at a place without vectors."""
        with np.errstate(invalid="ignore"):
            means: Float = (self._high + self._low) / self.count[:, None]
        return means


@kernel()
def _add(stored, places, high, low, count):
    for i in range(stored.shape[0]):
        p = places[i]
        if p < 0:
            continue
        count[p] += 1
        total, rest = high[p], low[p]
        for k in range(stored.shape[1]):
            x = widen(stored[i, k])
            before = total[k]
            after = before + x
            added = after - before
            rest[k] += (before - (after - added)) + (x - added)
            total[k] = after
