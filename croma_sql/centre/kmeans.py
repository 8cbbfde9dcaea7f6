"""scikit-learn's k-means, in no more coordinates than there are vectors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs.scope import Codes

TOLERANCE = 1e-4  # as scikit-learn has it, of the mean variance of the features
AT_ONCE = 2 * 10**9  # multiplications that nothing can stop, a fraction of a second


@dataclass(frozen=True, slots=True)
class Points:
    """What k-means gets.

    at : (n, coordinates) float32; tolerance : of the mean variance of these coordinates
    """

    at: NDArray[np.float32]
    tolerance: float


def points(vectors: NDArray[np.float32]) -> Points:
    """Give (n, d) vectors n coordinates where they have more features, which takes less time.

    They lie in a space of n dimensions; by the QR decomposition of the transpose, each is a row of
    R^T there, in float64 and then rounded. Distances, all that k-means knows, stay. Vectors that
    are the same are one before, and are so afterwards.

    Examples
    --------
    >>> points(np.eye(2, 512, dtype=np.float32)).at.shape
    (2, 2)
    """
    n, d = vectors.shape
    if n >= d or n * n * d > AT_ONCE:
        return Points(vectors, TOLERANCE)
    different, which = np.unique(vectors, axis=0, return_inverse=True)
    triangle = np.asarray(np.linalg.qr(different.T.astype(np.float64), mode="r"))
    at = np.ascontiguousarray(triangle.T[which.ravel()], np.float32)
    return Points(at, TOLERANCE * at.shape[1] / d)


def kmeans(points: Points, k: int, seed: int, starts: int) -> Codes:
    """Clusters of the best of some random starts of k-means, as codes (n,)."""
    from sklearn.cluster import KMeans

    model = KMeans(k, init="random", n_init=starts, random_state=seed, tol=points.tolerance)
    return np.asarray(model.fit(points.at).labels_, np.int32)
