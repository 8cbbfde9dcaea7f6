"""Harmonise vectors in memory."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from croma_sql.cohort import as_column
from croma_sql.errors import HarmonisationError, listed
from croma_sql.harmonisation.design import Float, Int, Levels, blocks_of, design, levels
from croma_sql.harmonisation.fitting import FitOn, How, checked, fit
from croma_sql.statistics.frames import whole
from croma_sql.udfs.threads import cores
from croma_sql.vectors import as_matrix


def combat(
    embeddings: Any,
    confounder: Any,
    *,
    keep: Any = None,
    group: Any = None,
    fit_on: FitOn = "samples",
) -> Float:
    r"""Harmonise with ComBat, the parametric empirical Bayes method of Johnson et al. 2007.

    .. math:: z^*_{if} = \frac{z_{if} - \alpha_f - x_i \beta_f - \gamma^*_{cf}}{\delta^*_{cf}}
        + \alpha_f + x_i \beta_f

    for sample :math:`i` of confounder :math:`c`, feature :math:`f`, and what is kept, :math:`x`.
    Shift :math:`\gamma` and scale :math:`\delta` are shrunken towards those of most features.

    Parameters
    ----------
    embeddings : (n, d) array of float16, float32 or float64, or a column of lists
    confounder : (n,) sequence
        What is to be removed: centre, scanner, batch.
    keep : (n,) sequence, or a frame or mapping of such, optional
        What may differ between confounders and is not to be removed with them, such as the label.
        Numbers enter as numbers: their effect is a straight line, also that of integers which are
        codes of categories. Anything else is a category, so make text of codes.
    group : (n,) sequence, optional
        Slide or patient; for ``fit_on='groups'``.
    fit_on : {'samples', 'groups'}
        Whether to estimate on samples, or on means of groups (over those of their samples that are
        alike in confounder and kept categories), so that each slide counts once.

    Returns
    -------
    (n, d) array of float64
        Features that do not vary within the confounders lose their shift, as by `mean_centred`, and
        keep their scale; a constant one is left as it is.

    Raises
    ------
    HarmonisationError
        NULL cells or vectors; one confounder, or one with a single row; a covariate that cannot be
        told from the confounder.

    Notes
    -----
    What acts differently on different labels is not removed: one shift and one scale per confounder
    is all there is. A probe of the confounder may find it among samples of one label when it no
    longer does among all.

    All rows are fitted on, those of a probe's held-out groups too. Their means were made equal, so
    those of any part of the groups lean away from those of the rest, and a linear probe falls below
    chance, not to it. That is no less of the confounder than at chance.

    References
    ----------
    W. E. Johnson, C. Li, A. Rabinovic, "Adjusting batch effects in microarray expression data using
    empirical Bayes methods", Biostatistics 8 (2007), 118-127.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> centre = np.repeat(["A", "B"], 100)
    >>> embeddings = rng.standard_normal((200, 8)) + 3.0 * (centre == "B")[:, None]
    >>> harmonised = combat(embeddings, centre)
    >>> bool(abs(harmonised[:100].mean(axis=0) - harmonised[100:].mean(axis=0)).max() < 0.2)
    True
    """
    return _harmonised(embeddings, confounder, keep, group, How("combat", fit_on))


def mean_centred(
    embeddings: Any,
    confounder: Any,
    *,
    keep: Any = None,
    group: Any = None,
    fit_on: FitOn = "samples",
) -> Float:
    """Subtract the mean of each confounder and add the mean of all rows.

    Where something is kept, it is the effect of the confounder beside it, by least squares, that is
    subtracted. Parameters, result and errors as in `combat`.

    Examples
    --------
    >>> embeddings = [[1.0, 0.0], [3.0, 0.0], [5.0, 3.0], [5.0, 5.0]]  # means (2, 0) and (5, 4)
    >>> mean_centred(embeddings, ["A", "A", "B", "B"]).round(12).tolist()
    [[2.5, 2.0], [4.5, 2.0], [3.5, 1.0], [3.5, 3.0]]
    """
    return _harmonised(embeddings, confounder, keep, group, How("mean", fit_on))


def without_directions(
    embeddings: Any,
    confounder: Any,
    group: Any,
    *,
    keep: Any = None,
    fit_on: FitOn = "samples",
    n_directions: int | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Float:
    """Project out the directions in which the confounders' means differ in other groups.

    Groups are dealt out to folds; the rows of a fold lose the directions of all other folds, so
    those of different folds are projected a little differently. See
    `croma_sql.harmonisation.directions` for why these directions.

    Parameters
    ----------
    embeddings, confounder, fit_on : as in `combat`
    group : (n,) sequence
        Slide or patient, never split over folds.
    keep : as in `combat`
        Differences between confounders that come with it are not taken for theirs. What lies along
        a direction is removed all the same, whatever it comes from.
    n_directions : int, optional
        The first, by size of the differences. Default: all, the number of confounders less one.
    folds : int, default 5
    seed : int
        Of how groups are dealt out.

    Returns
    -------
    (n, d) array of float64

    Raises
    ------
    HarmonisationError
        As in `combat`, and a confounder with a single group.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> centre, slide = np.repeat(["A", "B"], 100), np.arange(200) // 10
    >>> embeddings = rng.standard_normal((200, 8)) + 3.0 * (centre == "B")[:, None]
    >>> projected = without_directions(embeddings, centre, slide)
    >>> bool(abs(projected[:100].mean(axis=0) - projected[100:].mean(axis=0)).max() < 0.2)
    True
    """
    how = How("directions", fit_on, n_directions, folds, seed)
    return _harmonised(embeddings, confounder, keep, group, how)


def _harmonised(embeddings: Any, confounder: Any, keep: Any, group: Any, how: How) -> Float:
    checked(how)
    matrix = as_matrix(embeddings)
    removed, kept, groups = as_column(confounder, "confounder"), _kept(keep), None
    columns = [("confounder", removed), *kept.items()]
    if how.needs_groups:
        if group is None:
            raise HarmonisationError("group is missing: say which rows are one slide or patient")
        groups = as_column(group, "group")
        columns.append(("group", groups))
    for name, column in columns:
        if len(column) != len(matrix):
            raise HarmonisationError(
                f"{name!r} has {len(column)} rows but there are {len(matrix)} vectors; every "
                "column needs one entry per vector, in the same order"
            )
    _check_finite(matrix, "are NULL or hold NaN or inf", "leave them out")
    shown = pa.array(range(len(matrix)), pa.int64())
    model = design(removed, kept, shown)
    of_row = levels(groups, "group", shown) if groups is not None else no_groups(len(matrix))

    def blocks() -> Iterator[tuple[Int, Float]]:
        for some in blocks_of(len(matrix)):
            yield np.arange(some.start, some.stop), matrix[some].astype(np.float64)

    result = np.empty(matrix.shape)
    largest = np.maximum(matrix.max(axis=0), -matrix.min(axis=0)).astype(np.float64)
    with cores(1), np.errstate(over="ignore"):
        fitted = fit(blocks, model, of_row, how, largest)
        for rows, block in blocks():
            result[rows] = fitted.apply(rows, block)
    _check_finite(result, "are beyond float64 once harmonised", "scale all down")
    return result


def no_groups(n: int) -> Levels:
    """All rows alike, where it makes no difference."""
    return Levels(np.zeros(n, np.int64), ["all"])


def _kept(keep: Any) -> dict[str, pa.Array]:
    if keep is None:
        return {}
    if hasattr(keep, "columns") or hasattr(keep, "column_names"):  # a frame of any make
        keep = whole(keep).to_dict()
    if not isinstance(keep, Mapping):
        keep = {"keep": keep}
    found = {str(name): as_column(column, str(name)) for name, column in keep.items()}
    if len(found) < len(keep):
        raise HarmonisationError(f"keep has a name twice: {listed(keep, show=10)}")
    return found


def _check_finite(matrix: Any, what: str, cure: str) -> None:
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(bad):
        raise HarmonisationError(
            f"{len(bad)} of {len(matrix)} vectors {what}, in row(s) {listed(bad.tolist())}; {cure}"
        )
