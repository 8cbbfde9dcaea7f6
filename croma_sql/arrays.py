"""The Python door: arrays in, Polars frames out."""

from typing import Any

import polars as pl
import pyarrow as pa

from croma_sql.cohort import Names, as_column, build_scope, checked_k, checked_m, checked_threads
from croma_sql.edges import margins_of, nearest_lists, typed_lists
from croma_sql.udfs.neighbours.search import search
from croma_sql.udfs.scope import Scope, Wanted
from croma_sql.udfs.tracker import OnProgress
from croma_sql.vectors import OnBadVectors


def margins(
    embeddings: Any,
    label: Any,
    confounder: Any,
    group: Any,
    *,
    m: int = 5,
    sample_id: Any = None,
    on_bad_vectors: OnBadVectors = "error",
    threads: int | None = None,
    on_progress: OnProgress | None = None,
) -> pl.DataFrame:
    r"""Cross-confounder robustness margin (CRoMa) of every sample.

    .. math:: c_i = (d^{OS}_i - d^{SO}_i) / (d^{OS}_i + d^{SO}_i)

    where :math:`d` is the mean cosine distance to the ``m`` nearest neighbours of a type: SO has
    the same label and another confounder, OS another label and the same confounder.

    Parameters
    ----------
    embeddings : (n, d) array of float16, float32 or float64, or a column of lists
        Vectors of any length but zero; cosine distance is computed in float64 from what is stored.
    label, confounder, group : (n,) sequences
        Biology, the nuisance to test against, and the independence unit (slide, patient):
        neighbours from the sample's own group are never used.
    m : int, default 5
        Neighbours averaged per type.
    sample_id : (n,) sequence, optional
        Unique. Breaks ties between equal distances (as text) and names samples in errors.
    on_bad_vectors : {'error', 'drop', 'null'}
        What to do with vectors that hold NaN or inf or are all zero.
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.
    on_progress : callable, optional
        Gets a `croma_sql.Progress` several times a second, in the calling thread;
        `croma_sql.progress_bar` makes one. It must not search in SQL, which would wait for this
        search to end.

    Returns
    -------
    polars.DataFrame
        ``sample_id`` (row number if none was given), ``label``, ``confounder``, ``group_id``,
        ``d_so``, ``d_os``, ``margin`` in [-1, 1], ``undefined_reason``; rows as they came in. Above
        0 the biological match is closer. NULL with a reason where a type has fewer than ``m``
        neighbours, all neighbours of both types are at distance 0, or the vector is bad.

    Raises
    ------
    CohortError
        See `croma_sql.cohort.build_scope`.

    References
    ----------
    C. Grisi, J. van der Laak, G. Litjens, "Beyond Counts: A Distributional Robustness Margin For
    Pathology Foundation Models", 2026.

    Examples
    --------
    >>> embeddings = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]
    >>> frame = margins(embeddings, ["a", "a", "b", "b"], ["x", "y", "x", "y"], [1, 2, 3, 4], m=1)
    >>> frame["margin"].round(6).to_list()  # (1 - 0.2) / (1 + 0.2) and (0.04 - 0.2) / (0.04 + 0.2)
    [0.666667, -0.666667, 0.666667, -0.666667]
    """
    columns = _read(sample_id, label=label, confounder=confounder, group_id=group)
    m, threads = checked_m(m), checked_threads(threads)
    scope = _scope(embeddings, columns, on_bad_vectors)
    result = margins_of(search(scope, Wanted(m), threads=threads, on_progress=on_progress), m)
    frame = pl.DataFrame(
        {
            "sample_id": _ids(columns, len(scope.usable)),
            **{name: columns[name] for name in ("label", "confounder", "group_id")},
            "d_so": result.d_so,
            "d_os": result.d_os,
            "margin": result.margin,
            "undefined_reason": pl.Series(result.undefined_reason.tolist(), dtype=pl.String),
        },
        nan_to_null=True,
    )
    return frame.filter(scope.usable) if on_bad_vectors == "drop" else frame


def typed_neighbours(
    embeddings: Any,
    label: Any,
    confounder: Any,
    group: Any,
    *,
    m: int = 20,
    sample_id: Any = None,
    on_bad_vectors: OnBadVectors = "error",
    threads: int | None = None,
    on_progress: OnProgress | None = None,
) -> pl.DataFrame:
    """Find the ``m`` nearest SO and OS neighbours of every sample, one row each.

    Parameters and errors as in `margins`.

    Returns
    -------
    polars.DataFrame
        ``sample_id``, ``type`` (``'SO'`` or ``'OS'``), ``rank`` (1-based), ``neighbour_id``,
        ``distance``. Ids are of the type they came in, or row numbers if none were given. Samples
        with fewer than ``m`` neighbours of a type have fewer rows.

    Examples
    --------
    >>> embeddings = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]
    >>> typed_neighbours(
    ...     embeddings, ["a", "a", "b", "b"], ["x", "y", "x", "y"], [1, 2, 3, 4], m=1
    ... ).row(0)
    (0, 'SO', 1, 1, 0.19999999999999996)
    """
    columns = _read(sample_id, label=label, confounder=confounder, group_id=group)
    scope = _scope(embeddings, columns, on_bad_vectors)
    edges = search(
        scope, Wanted(checked_m(m)), threads=checked_threads(threads), on_progress=on_progress
    )
    ids = _ids(columns, len(scope.usable))
    lists = pl.DataFrame(typed_lists([edges], ids)).with_columns(sample_id=pl.Series(ids))
    return pl.concat(
        lists.select(
            "sample_id",
            type=pl.lit(kind.upper()),
            rank=pl.int_ranges(1, pl.col(f"{kind}_id").list.len() + 1),
            neighbour_id=f"{kind}_id",
            distance=f"{kind}_distance",
        )
        .filter(pl.col("rank").list.len() > 0)
        .explode("rank", "neighbour_id", "distance")
        for kind in ("so", "os")
    )


def neighbours(
    embeddings: Any,
    label: Any,
    confounder: Any,
    group: Any,
    *,
    k: int = 101,
    sample_id: Any = None,
    on_bad_vectors: OnBadVectors = "error",
    threads: int | None = None,
    on_progress: OnProgress | None = None,
) -> pl.DataFrame:
    """Find the ``k`` nearest neighbours of any type of every sample, one row each.

    Candidates are the samples of other groups. Other parameters and errors as in `margins`.

    Returns
    -------
    polars.DataFrame
        ``sample_id``, ``type``, ``rank`` (1-based), ``neighbour_id``, ``distance``, ``label_hit``,
        ``confounder_hit``. The type says whether label and confounder are the Same or Other:
        ``'SS'``, ``'SO'``, ``'OS'``, ``'OO'``; a hit, whether the class that most neighbours up to
        this rank have is the sample's own (a tie goes to the class that comes first by id).

    Examples
    --------
    >>> embeddings = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]
    >>> neighbours(
    ...     embeddings, ["a", "a", "b", "b"], ["x", "y", "x", "y"], [1, 2, 3, 4], k=2
    ... )["type"].to_list()
    ['SO', 'OO', 'OS', 'SO', 'SO', 'OO', 'OS', 'SO']
    """
    columns = _read(sample_id, label=label, confounder=confounder, group_id=group)
    scope = _scope(embeddings, columns, on_bad_vectors)
    wanted = Wanted(1, k=checked_k(k))
    edges = search(scope, wanted, threads=checked_threads(threads), on_progress=on_progress)
    ids = _ids(columns, len(scope.usable))
    lists = pl.DataFrame(nearest_lists([edges], [scope], ids))
    return (
        lists.select(
            pl.Series("sample_id", ids),
            "type",
            pl.int_ranges(1, pl.col("type").list.len() + 1).alias("rank"),
            pl.col("id").alias("neighbour_id"),
            "distance",
            "label_hit",
            "confounder_hit",
        )
        .filter(pl.col("rank").list.len() > 0)
        .explode("type", "rank", "neighbour_id", "distance", "label_hit", "confounder_hit")
    )


def _read(sample_id: Any, **columns: Any) -> dict[str, pa.Array]:
    """Read every column once, whatever it is: an iterator could not be read again."""
    read = {name: as_column(values, name) for name, values in columns.items()}
    if sample_id is not None:
        read["sample_id"] = as_column(sample_id, "sample_id")
    return read


def _scope(embeddings: Any, columns: dict[str, pa.Array], on_bad_vectors: OnBadVectors) -> Scope:
    return build_scope(
        embeddings,
        columns["label"],
        columns["confounder"],
        columns["group_id"],
        columns.get("sample_id"),
        names=Names(group="group"),
        on_bad_vectors=on_bad_vectors,
    )


def _ids(columns: dict[str, pa.Array], n: int) -> pa.Array:
    """Ids in the type they came in, or row numbers where there are none."""
    return columns.get("sample_id", pa.array(range(n), pa.int64()))
