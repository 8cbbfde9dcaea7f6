"""The Python door to consistency across acquisitions: arrays in, Polars frames out."""

from typing import Any

import pyarrow as pa

from croma_sql.acquisitions.compared import (
    Consistency,
    check_complete,
    check_depth,
    check_size,
    checked_options,
    tables,
)
from croma_sql.acquisitions.pairwise import compare_pairwise
from croma_sql.acquisitions.units import Incomplete, OnBadSamples, UnitNames, Units, pool_rows
from croma_sql.cohort import as_column, checked_threads
from croma_sql.udfs.acquisitions.compare import Compared, compare
from croma_sql.udfs.scope import Float
from croma_sql.udfs.threads import IsStopped, available_cores, never
from croma_sql.udfs.tracker import OnProgress
from croma_sql.vectors import as_matrix


def consistency(
    embeddings: Any,
    unit: Any,
    acquisition: Any,
    *,
    incomplete: Incomplete = "error",
    permutations: int = 999,
    seed: int = 0,
    depth: int | None = None,
    on_bad_vectors: OnBadSamples = "error",
    threads: int | None = None,
    on_progress: OnProgress | None = None,
) -> Consistency:
    r"""Compare the same units, such as slides, under several acquisitions, such as scanners.

    The vector :math:`h_{p,s}` of unit p under acquisition s is the mean of its samples' vectors, as
    they are. With :math:`M^{(s)}_{pq}` the cosine distance of :math:`h_{p,s}` and :math:`h_{q,s}`,
    the five metrics of the study below are

    - :math:`D_{cos}(a, b)`: mean ``distance`` of ``unit_pairs``,
    - 1-NN match rate and its top-k form: share of ``rank`` at most k,
    - Mantel correlation: ``mantel_r``, Pearson's r of :math:`M^{(a)}_{pq}` and :math:`M^{(b)}_{pq}`
      over all pairs p < q,
    - mean intra-scanner distance: ``intra_distance``, mean of :math:`M^{(s)}_{pq}` over q,
    - intersection over K: mean share of K of the numbers in ``shared_at`` that are at most K,

    all here per unit, so that they can be stratified by what is known of units.

    Parameters
    ----------
    embeddings : (n, d) array of float16, float32 or float64, or a column of lists
        Vectors of samples, of any length but zero.
    unit, acquisition : (n,) sequences
        Which physical thing a sample is of, and how it was acquired. One sample or many for each.
    incomplete : {'error', 'drop', 'pairwise'}
        What to do with units that lack an acquisition: refuse them, leave them out, or compare each
        pair of acquisitions on the units that have both. Then ``n_units`` of
        ``acquisition_pairs`` differs from pair to pair, and with it what a rank or a correlation
        says; ``units`` and ``acquisitions`` are of all units that have the acquisition; and what is
        of all acquisitions together, of the units that have every one.
    permutations : int, default 999
        Of units, for ``mantel_p``: the share, itself among them, with an r at least as high; one-
        sided, and the same for every pair of acquisitions. 0: no p, and bounded memory.
    seed : int, default 0
        Of the permutations.
    depth : int, optional
        Neighbours up to which ``shared_at`` is known. Default all other units, but 1000 at most.
    on_bad_vectors : {'error', 'drop'}
        What to do with samples whose vectors hold NaN or inf or are all zero.
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.
    on_progress : callable, optional
        Gets a `croma_sql.Progress` several times a second, in the calling thread;
        `croma_sql.progress_bar` makes one. With 'pairwise' it starts again for each pair.

    Returns
    -------
    Consistency
        Frames ``units``, ``unit_pairs``, ``unit_neighbourhoods``, ``acquisition_pairs`` and
        ``acquisitions``; see `croma_sql.Consistency`. Names keep their types and are sorted as
        text, which also is how ties between equal distances are broken. A correlation is NULL where
        distances do not differ by more than rounding, an effective rank where all vectors coincide.

    Raises
    ------
    CohortError
        An empty cell; a bad vector; a unit that lacks an acquisition; fewer than two units or
        acquisitions; with 'pairwise' no two acquisitions with two units in common; a mean that has
        no direction; a depth beyond the other units; permutations of
        more than 5,000 units.

    References
    ----------
    "Scanner-Induced Domain Shifts Undermine the Robustness of Pathology Foundation Models", 2026,
    section 4.1.2. N. Mantel, "The detection of disease clustering and a generalized regression
    approach", Cancer Research 27, 1967. O. Roy, M. Vetterli, "The effective rank: a measure of
    effective dimensionality", EUSIPCO 2007.

    Examples
    --------
    >>> embeddings = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.0, 2.0]]
    >>> found = consistency(embeddings, ["p", "p", "q", "q"], ["AT2", "GT450", "AT2", "GT450"])
    >>> found.unit_pairs.filter(acquisition_a="AT2")["distance"].round(6).to_list()
    [0.2, 0.0]
    """
    units, acquisitions = as_column(unit, "unit"), as_column(acquisition, "acquisition")
    pooled = pool_rows(
        as_matrix(embeddings), units, acquisitions, UnitNames(), incomplete, on_bad_vectors
    )
    options = checked_options(permutations, seed, depth)
    if depth is not None:
        check_complete(pooled.n_complete)
        check_depth(options[2], pooled.n_complete)
    return compare_units(
        pooled,
        units.take(pa.array(pooled.unit_row)),
        acquisitions.take(pa.array(pooled.acquisition_row)),
        options,
        checked_threads(threads) or available_cores(),
        on_progress=on_progress,
    )


def compare_units(
    pooled: Units,
    units: Any,
    acquisitions: Any,
    options: tuple[int, int, int],
    threads: int,
    *,
    where: str = "",
    is_stopped: IsStopped = never,
    on_progress: OnProgress | None = None,
) -> Consistency:
    """Compare units that have been pooled, and make the tables.

    Parameters
    ----------
    pooled : Units
    units, acquisitions : (N,) and (S,) columns
        What the tables call them.
    options : permutations, seed, and depth, which all other units limit
    where : the start of a message
    """
    permutations, seed, depth = options
    n = len(pooled.unit_row)

    def compare_some(means: Float, depth: int, permutations: int) -> Compared:
        check_size(means.shape[1], permutations, where)
        return compare(means, depth, permutations, seed, threads, is_stopped, on_progress)

    if pooled.n_complete < n:
        return compare_pairwise(pooled, units, acquisitions, depth, permutations, compare_some)
    depth = min(depth, n - 1)
    found = compare_some(pooled.means, depth, permutations)
    return tables(
        found,
        units,
        acquisitions,
        pooled.n_samples,
        depth=depth,
        permutations=permutations,
        n_incomplete=pooled.n_incomplete,
    )
