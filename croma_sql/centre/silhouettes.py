"""The Python door of silhouettes."""

from typing import Any

import numpy as np
import polars as pl

from croma_sql.centre.rows import Rows, read_rows
from croma_sql.cohort import Names, checked_threads
from croma_sql.udfs.centre import silhouettes as exact_silhouettes
from croma_sql.udfs.scope import Float
from croma_sql.udfs.threads import IsStopped, available_cores, cores, never
from croma_sql.vectors import OnBadVectors

NAMES = Names(result="silhouette")


def silhouettes(
    embeddings: Any,
    cluster: Any,
    *,
    sample_id: Any = None,
    on_bad_vectors: OnBadVectors = "error",
    threads: int | None = None,
) -> pl.DataFrame:
    r"""Cosine silhouette of every sample; with the confounder as cluster, its mean is FM-SI.

    .. math:: s_i = (b_i - a_i) / \max(a_i, b_i)

    where :math:`a` is the mean cosine distance to the other members of the sample's own cluster and
    :math:`b` the lowest mean distance to the members of another. Above 0, samples of one centre lie
    together; the lower FM-SI, the less of the centre is encoded.

    Not by `sklearn.metrics.silhouette_samples`, which measures all n x n distances: a mean distance
    to a cluster follows from the cluster's mean and spread, in the time of n x clusters distances
    and memory beside the vectors of 16 bytes x clusters x d. The values are the same, and stay
    accurate where vectors crowd in one direction.

    Parameters
    ----------
    embeddings : (n, d) array of float16, float32 or float64, or a column of lists
        Vectors of any length but zero.
    cluster : (n,) sequence
        The confounder (FM-SI), the label, or anything else that groups samples.
    sample_id : (n,) sequence, optional
        Unique; names samples in errors.
    on_bad_vectors : {'error', 'drop', 'null'}
        What to do with vectors that hold NaN or inf or are all zero.
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.

    Returns
    -------
    polars.DataFrame
        ``sample_id`` (row number if none was given), ``cluster``, ``silhouette`` in [-1, 1]; rows
        as they came in. 0 for the only member of a cluster, and where everything compared lies at
        one place; NULL for all if there is but one cluster, and for bad vectors.

    Raises
    ------
    CohortError
        Columns of different lengths, NULLs, repeated ids, bad vectors.

    References
    ----------
    P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis", 1987.

    Examples
    --------
    >>> embeddings = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]
    >>> frame = silhouettes(embeddings, ["x", "x", "y", "y"])
    >>> frame["silhouette"].round(6).to_list()  # 1 - 0.2 / 0.7, 1 - 0.2 / 0.22
    [0.714286, 0.090909, 0.714286, 0.090909]
    """
    rows = read_rows(embeddings, {"cluster": cluster}, sample_id, on_bad_vectors, NAMES)
    threads = checked_threads(threads) or available_cores()
    frame = pl.DataFrame(
        rows.columns | {"silhouette": measure(rows, "cluster", threads)}, nan_to_null=True
    )
    return frame.filter(rows.scope.usable) if on_bad_vectors == "drop" else frame


def measure(rows: Rows, column: str, threads: int, is_stopped: IsStopped = never) -> Float:
    """Silhouettes (n,) of rows by a column; NaN where undefined."""
    codes = rows.classes(column).code
    with cores(threads, is_stopped) as for_each:
        return np.asarray(exact_silhouettes.silhouettes(rows.scope, codes, for_each))
