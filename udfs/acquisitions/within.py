"""Units among their kind, under every acquisition: distances, and shared neighbours."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from croma_sql.udfs.acquisitions import mantel
from croma_sql.udfs.acquisitions.directions import slack
from croma_sql.udfs.acquisitions.medians import medians
from croma_sql.udfs.acquisitions.neighbourhoods import last_places, shared
from croma_sql.udfs.scope import Codes, Float, Int
from croma_sql.udfs.tracker import Task

TASK = 1 << 31  # multiplications of a task: about a tenth of a second
ROOM = 1 << 26  # bytes of the distances of a task


class Within:
    """Which neighbours units keep, and how their distances correlate; complete after every task.

    Parameters
    ----------
    r, half : (S, N, d) and (S, N), directions around the centre of each acquisition, and |r|^2/2
    intra : (S, N) mean distance to the other units
    depth : neighbours that may be shared
    keep : whether to keep all distances, for permutations
    rows : units of a task; what is shared does not depend on it

    Attributes
    ----------
    median_distance : (S, N), to the other units
    centred : (S, N, N), see `mantel`; empty without ``keep``
    """

    def __init__(
        self,
        u: Float,
        r: Float,
        half: Float,
        intra: Float,
        depth: int,
        keep: bool,
        rows: int | None = None,
    ) -> None:
        count, n, d = r.shape
        self._u, self._r, self._half, self._intra = u, r, half, intra
        self._depth, self._keep = depth, keep
        usual = max(8, min(512, TASK // (count * n * d), ROOM // (8 * count * n)))
        self._rows = rows or usual
        self._slack = np.array([slack(largest, largest, d) for largest in half.max(axis=1)])
        self._products = np.empty((count, count, n))
        self.median_distance: Float = np.empty((count, n))
        self._shared: dict[int, tuple[Codes, Int]] = {}
        self.centred: Float = np.empty((count, n, n) if keep else (count, 0, 0))

    def tasks(self) -> Iterator[Task]:
        """Yield what there is to do."""
        count, n, _ = self._r.shape
        for first in range(0, n, self._rows):
            stop = min(first + self._rows, n)
            yield partial(self._look, first, stop), count * (stop - first) * n

    def _look(self, first: int, stop: int) -> None:
        r, half, depth = self._r, self._half, self._depth
        count, n, _ = r.shape
        measured = np.empty((count, stop - first, n))
        last = np.zeros((stop - first, n), np.int32)
        for s in range(count):
            np.matmul(r[s, first:stop], r[s].T, out=measured[s])
            mantel.measure(measured[s], half[s, first:stop], half[s])
            medians(measured[s], first, self._u[s], self.median_distance[s, first:stop])
            if depth:
                last_places(measured[s], first, self._u[s], self._slack[s], depth, last)
        mantel.row_products(measured, first, self._intra, self._products)
        if self._keep:
            mantel.centre(measured, first, self._intra.mean(axis=1), self.centred)
        if depth:
            places = np.empty((stop - first, depth), np.int32)
            counts = np.empty(stop - first, np.int64)
            shared(last, depth, places, counts)
            self._shared[first] = places[np.arange(depth) < counts[:, None]], counts

    def shared_at(self) -> tuple[Int, Codes]:
        """Give offsets (N + 1,) and values of the places at which neighbours are shared."""
        if not self._depth:
            return np.zeros(self._r.shape[1] + 1, np.int64), np.empty(0, np.int32)
        values, counts = zip(*(self._shared[first] for first in sorted(self._shared)), strict=True)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return offsets, np.concatenate(values)

    def correlations(self) -> tuple[Float, Float, Float]:
        """Correlate distances under any two acquisitions; NaN where they differ by rounding only.

        Returns
        -------
        profile_r : (S, S, N), of the distances of each unit to the others
        mantel_r : (S, S), of the distances of all pairs of units
        scale : (S, S), what sums of products over all pairs are divided by to give ``mantel_r``
        """
        n = self._intra.shape[1]
        noise = np.square(4 * self._slack)
        around = self._intra - self._intra.mean(axis=1, keepdims=True)
        sums = (self._products.sum(axis=2) + (n - 1) * (around @ around.T)) / 2
        sums = (sums + sums.T) / 2
        by_unit = self._products.transpose(2, 0, 1)
        scale = _scale(sums, n * (n - 1) / 2 * noise)
        profile_r = by_unit / _scale(by_unit, (n - 1) * noise)
        return (
            np.clip(profile_r, -1.0, 1.0).transpose(1, 2, 0),
            np.clip(sums / scale, -1.0, 1.0),
            scale,
        )


def _scale(products: Float, noise: Float) -> Float:
    """Square roots of products of sums of squares (..., S, S); NaN where one is noise."""
    squares = np.einsum("...ss->...s", products)
    roots = np.sqrt(np.where(squares > noise, squares, np.nan))
    scale: Float = roots[..., :, None] * roots[..., None, :]
    return scale
