"""Whether k-means finds labels or confounders (PathoROB's clustering score)."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from croma_sql.centre.kmeans import kmeans, points
from croma_sql.centre.quartets import Quartet, quartets
from croma_sql.centre.rows import Classes, in_order, read_rows, residuals
from croma_sql.centre.workers import workers
from croma_sql.cohort import checked_threads
from croma_sql.errors import CohortError, StatisticsError, listed
from croma_sql.statistics.options import whole_number
from croma_sql.udfs.centre.silhouettes import silhouettes
from croma_sql.udfs.scope import Codes, Scope
from croma_sql.udfs.threads import ForEach, available_cores, one_by_one
from croma_sql.vectors import OnBadVectors

INITS_OF_COUNT, INITS_OF_TRIAL = 20, 5  # starts of k-means, as PathoROB has them
LARGEST_SEED = 2**32 - 1

OnShare = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Clustering:
    """How k-means divides each quartet.

    cluster_counts : ``quartet``, ``k``, ``silhouette`` (cosine, mean over samples) of every number
        of clusters that was tried
    clusterings : ``quartet``, ``trial`` (from 0), ``k``, ``ari_bio``, ``ari_confounder``; the last
        three NULL where no number of clusters can be tried: all vectors of a quartet are the same,
        or the least of ``k_range`` is more than its different vectors, or not less than its samples
    """

    cluster_counts: pl.DataFrame
    clusterings: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Trials:
    """How often and with which seeds: trial t starts from ``seed + t``, the choice of K from seed.

    k_range : least and largest number of clusters
    """

    trials: int = 50
    k_range: tuple[int, int] = (2, 30)
    seed: int = 0

    def checked(self) -> "Trials":
        """Refuse what makes no sense."""
        trials = whole_number("trials", self.trials)
        seed = whole_number("seed", self.seed, least=0, most=LARGEST_SEED - trials)
        if not isinstance(self.k_range, tuple | list) or len(self.k_range) != 2:
            raise StatisticsError(f"k_range is {self.k_range!r}; it is two numbers, as (2, 30) is")
        least = whole_number("the first of k_range", self.k_range[0], least=2)
        most = whole_number("the second of k_range", self.k_range[1], least=least)
        return Trials(trials, (least, most), seed)


def clustering(
    embeddings: Any,
    label: Any,
    confounder: Any,
    *,
    trials: int = 50,
    k_range: tuple[int, int] = (2, 30),
    seed: int = 0,
    sample_id: Any = None,
    on_bad_vectors: OnBadVectors = "error",
    threads: int | None = None,
    on_progress: OnShare | None = None,
) -> Clustering:
    """Cluster every quartet of two labels and two confounders, and compare with both.

    For each quartet, K is the number of clusters with the highest mean cosine silhouette; then
    k-means runs ``trials`` times, and each result is compared with label and confounder by the
    adjusted Rand index. The clustering score is ARI(label) - ARI(confounder), 0 where clusters are
    as much of one as of the other: the mean over quartets of the mean over trials;
    `croma_clustering_score` in SQL.

    Parameters
    ----------
    embeddings : (n, d) array of float16, float32 or float64, or a column of lists
    label, confounder : (n,) sequences
        Every two labels under two confounders whose four cells are filled are a quartet.
    trials : int, default 50
    k_range : (int, int), default (2, 30)
        Least and largest number of clusters; at most the different vectors of a quartet, and fewer
        than its samples.
    seed : int, default 0
        K is chosen from this seed (best of 20 random starts each), trial t runs from ``seed + t``
        (best of 5). PathoROB's is 1337.
    sample_id : (n,) sequence, optional
        Unique. Rows are clustered in the order of their ids (as text), so that the result does not
        depend on the order in which they came.
    on_bad_vectors : {'error', 'drop', 'null'}
        Whether vectors without direction are an error, or left out (either of the others).
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.
    on_progress : callable, optional
        Gets the share done, in [0, 1].

    Returns
    -------
    Clustering

    Raises
    ------
    CohortError
        Columns of different lengths, NULLs, repeated ids, bad vectors, no complete quartet.
    StatisticsError
        Options that make no sense.

    Notes
    -----
    k-means and ARI are scikit-learn's. It clusters in float32, but residuals: unit vectors less one
    among them, so that vectors that crowd in one direction are told apart, and fewer of them than
    they have features in as many coordinates as there are vectors, which keeps all distances.

    References
    ----------
    J. Koemen et al., PathoROB: "Towards Robust Foundation Models for Digital Pathology", 2025.

    Examples
    --------
    >>> embeddings = [[1, 0], [1, 0.1], [1, 0.2], [1, 0.3], [0, 1], [0.1, 1], [0.2, 1], [0.3, 1]]
    >>> found = clustering(embeddings, list("aaaabbbb"), list("xxyyxxyy"), trials=1)
    >>> found.clusterings.row(0)  # clusters of labels, which confounders have no part in
    ('a | b under x | y', 0, 2, 1.0, -0.16666666666666666)
    """
    how = Trials(trials, k_range, seed).checked()
    columns = {"label": label, "confounder": confounder}
    rows = read_rows(embeddings, columns, sample_id, on_bad_vectors)
    threads = checked_threads(threads) or available_cores()
    of_label, of_confounder = rows.classes("label"), rows.classes("confounder")
    found = quartets(of_label, of_confounder, in_order(rows.scope))
    if not found:
        raise CohortError(
            "there is no quartet, two labels under two confounders with all four cells filled; "
            f"the labels are {listed(of_label.values)}, the confounders "
            f"{listed(of_confounder.values)}"
        )
    return cluster(rows.scope, of_label, of_confounder, found, how, threads, on_progress)


def cluster(
    scope: Scope,
    label: Classes,
    confounder: Classes,
    found: list[Quartet],
    how: Trials,
    threads: int,
    on_progress: OnShare | None = None,
) -> Clustering:
    """Cluster each quartet; `clustering` says how."""
    from sklearn.exceptions import ConvergenceWarning

    counts, clusterings = [_COUNTS], [_CLUSTERINGS]
    with workers(threads) as for_each, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer clusters than asked for
        for done, quartet in enumerate(found):

            def report(share: float, done: int = done) -> None:
                if on_progress is not None:
                    on_progress((done + share) / len(found))

            one = _Quartet(scope, quartet, how, for_each, report)
            silhouette = one.silhouettes()
            counts.append(silhouette.select(pl.lit(quartet.name).alias("quartet"), pl.all()))
            best = silhouette.filter(pl.col("silhouette") == pl.col("silhouette").max())
            k = None if best.is_empty() else int(best["k"][0])
            truths = (label.code[one.rows], confounder.code[one.rows])
            aris = one.compare(k, truths)
            clusterings.append(aris.select(pl.lit(quartet.name).alias("quartet"), pl.all()))
    return Clustering(pl.concat(counts), pl.concat(clusterings))


_COUNTS = pl.DataFrame(schema={"quartet": pl.String, "k": pl.Int32, "silhouette": pl.Float64})
_CLUSTERINGS = pl.DataFrame(
    schema={
        "quartet": pl.String,
        "trial": pl.Int32,
        "k": pl.Int32,
        "ari_bio": pl.Float64,
        "ari_confounder": pl.Float64,
    }
)


class _Quartet:
    """A quartet while it is clustered."""

    def __init__(
        self, scope: Scope, quartet: Quartet, how: Trials, for_each: ForEach, report: OnShare
    ) -> None:
        self.rows = in_order(scope, quartet.rows)
        self._scope = replace(
            scope,
            **{
                name: getattr(scope, name)[self.rows]
                for name in ("row", "label", "confounder", "group", "rank", "usable")
            },
        )
        vectors = residuals(scope, self.rows)
        self._points = points(vectors)
        self._how, self._for_each, self._report = how, for_each, report
        n = len({vector.tobytes() for vector in vectors})
        most = min(how.k_range[1], n, len(self.rows) - 1)
        self._ks = range(how.k_range[0], most + 1) if n > 1 else range(0)
        self._of_trial = INITS_OF_TRIAL * (how.k_range[0] + most)  # for the k in the middle
        self._work = 2 * INITS_OF_COUNT * sum(self._ks) + how.trials * self._of_trial
        self._done = 0

    def silhouettes(self) -> pl.DataFrame:
        """Mean silhouette of every k."""
        found: dict[int, float] = {}

        def measure(k: int) -> None:
            labels = kmeans(self._points, k, self._how.seed, INITS_OF_COUNT)
            found[k] = float(np.mean(silhouettes(self._scope, labels, one_by_one)))

        self._for_each(measure, self._ks, lambda k: self._advance(2 * INITS_OF_COUNT * k))
        columns = {"k": list(self._ks), "silhouette": [found[k] for k in self._ks]}
        return pl.DataFrame(columns, {"k": pl.Int32, "silhouette": pl.Float64}, nan_to_null=True)

    def compare(self, k: int | None, truths: tuple[Codes, Codes]) -> pl.DataFrame:
        """Run every trial; adjusted Rand indices with label and confounder."""
        from sklearn.metrics import adjusted_rand_score

        aris = np.full((self._how.trials, 2), np.nan)

        def run(trial: int) -> None:
            assert k is not None
            labels = kmeans(self._points, k, self._how.seed + trial, INITS_OF_TRIAL)
            aris[trial] = [adjusted_rand_score(truth, labels) for truth in truths]

        if k is not None:
            trials = range(self._how.trials)
            self._for_each(run, trials, lambda _: self._advance(self._of_trial))
        columns = {
            "trial": np.arange(self._how.trials, dtype=np.int32),
            "k": pl.Series([k] * self._how.trials, dtype=pl.Int32),
            "ari_bio": aris[:, 0],
            "ari_confounder": aris[:, 1],
        }
        return pl.DataFrame(columns, nan_to_null=True)

    def _advance(self, work: int) -> None:
        self._done += work
        self._report(self._done / self._work)
