"""Whether a classifier can tell labels and confounders of vectors, on groups it has not seen."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.centre.rows import Classes, classes_of, in_order, read_rows, residuals
from croma_sql.centre.workers import workers
from croma_sql.cohort import checked_threads
from croma_sql.errors import CohortError, StatisticsError, listed
from croma_sql.statistics.options import whole_number
from croma_sql.udfs.scope import Codes, Int, Scope
from croma_sql.udfs.threads import available_cores
from croma_sql.vectors import OnBadVectors

TARGETS = ("label", "confounder")
PROBES = ("knn", "linear")
ITERATIONS = 1000
AT_ONCE = 4 * 10**9  # multiplications of k-NN that nothing can stop, a fraction of a second

Matrix = NDArray[np.float32]
OnFewGroups = Literal["error", "null"]


@dataclass(frozen=True, slots=True)
class Folds:
    """How rows are divided, and the k of k-NN."""

    folds: int = 5
    neighbours: int = 20
    seed: int = 0

    def checked(self) -> "Folds":
        """Refuse what makes no sense."""
        return Folds(
            whole_number("folds", self.folds, least=2),
            whole_number("neighbours", self.neighbours),
            whole_number("seed", self.seed, least=0, most=2**32 - 1),
        )


def probes(
    embeddings: Any,
    label: Any,
    confounder: Any,
    group: Any,
    *,
    folds: int = 5,
    neighbours: int = 20,
    seed: int = 0,
    on_few_groups: OnFewGroups = "error",
    sample_id: Any = None,
    on_bad_vectors: OnBadVectors = "error",
    threads: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> pl.DataFrame:
    """Predict label and confounder of every sample by probes trained on other groups.

    The probes are k-NN by cosine distance, and multinomial logistic regression on standardised
    features (L2, C = 1, at most 1,000 iterations of L-BFGS). A confounder that can be told is
    encoded, and on the way to a shortcut; a representation free of it leaves them at chance,
    1 / number of classes of balanced accuracy.

    Parameters
    ----------
    embeddings : (n, d) array of float16, float32 or float64, or a column of lists
    label, confounder, group : (n,) sequences
        Samples of a group are never both learnt from and predicted.
    folds : int, default 5
        Each is predicted by a probe that has learnt from the others: `StratifiedGroupKFold`,
        shuffled, so that classes have about the same share in each.
    neighbours : int, default 20
        The k of k-NN; at most the samples learnt from.
    seed : int, default 0
        Of the division into folds.
    on_few_groups : {'error', 'null'}
        What to do where a class of a target has fewer groups than there are folds, all its groups
        came into one fold, or there is but one class: an error, or predictions of this target that
        are NULL.
    sample_id : (n,) sequence, optional
        Unique. Rows are taken in the order of their ids (as text), so that the result does not
        depend on the order in which they came.
    on_bad_vectors : {'error', 'drop', 'null'}
        Whether vectors without direction are an error, or left out (either of the others).
    threads : int, optional
        Default: every core this process may use. The result does not depend on it.
    on_progress : callable, optional
        Gets the share done, in [0, 1].

    Returns
    -------
    polars.DataFrame
        One row per target, probe and sample, in the order of ids: ``sample_id``, ``group_id``,
        ``target`` ('label', 'confounder'), ``probe`` ('knn', 'linear'), ``fold`` (from 0),
        ``truth``, ``predicted``. So the accuracy within any attribute is a GROUP BY, and
        `croma_balanced_accuracy` in SQL the mean of the classes' recalls.

    Raises
    ------
    CohortError
        Columns of different lengths, NULLs, repeated ids, bad vectors, too few groups.
    StatisticsError
        Options that make no sense.

    Examples
    --------
    >>> embeddings = [[1, 0], [1, 0.1], [1, 0.2], [1, 0.3], [0, 1], [0.1, 1], [0.2, 1], [0.3, 1]]
    >>> frame = probes(
    ...     embeddings, list("aaaabbbb"), list("xxyyxxyy"), range(8), folds=2, neighbours=1
    ... )
    >>> frame.group_by("target", "probe", maintain_order=True).agg(
    ...     (pl.col("truth") == pl.col("predicted")).mean()
    ... ).rows()[:2]
    [('label', 'knn', 1.0), ('label', 'linear', 1.0)]
    """
    how = Folds(folds, neighbours, seed).checked()
    if on_few_groups not in ("error", "null"):
        raise StatisticsError(f"on_few_groups is {on_few_groups!r}; it is 'error' or 'null'")
    columns = {"label": label, "confounder": confounder, "group_id": group}
    rows = read_rows(embeddings, columns, sample_id, on_bad_vectors)
    threads = checked_threads(threads) or available_cores()
    order = in_order(rows.scope)
    targets = {name: classes_of(rows.columns[name].take(pa.array(order)), name) for name in TARGETS}
    groups = classes_of(rows.columns["group_id"].take(pa.array(order)), "group_id").code
    divided = {name: divide(name, classes, groups, how) for name, classes in targets.items()}
    for one in divided.values():
        if one.problem and on_few_groups == "error":
            raise CohortError(f"{one.problem}; or keep this target as NULL: on_few_groups='null'")
    found = predict(rows.scope, order, targets, divided, how, threads, on_progress)
    named = {
        name: pl.Series(rows.columns[name].take(pa.array(order)))
        for name in ("sample_id", "group_id")
    }
    return pl.concat(
        pl.DataFrame(named | {"target": name, "probe": probe, "fold": one.fold}).with_columns(
            truth=pl.Series(one.truth), predicted=pl.Series(one.predicted)
        )
        for (name, probe), one in found.items()
    )


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a probe says of a target; NULL where the target could not be probed.

    fold : (n,) Int32; truth, predicted : (n,) text
    """

    fold: pl.Series
    truth: pl.Series
    predicted: pl.Series


@dataclass(frozen=True, slots=True)
class Divided:
    """Fold (n,) in which each row is predicted; None with the problem where there can be none."""

    fold: Codes | None
    problem: str = ""


def divide(target: str, classes: Classes, groups: Codes, how: Folds) -> Divided:
    """Divide rows into folds, so that every class is among what is learnt for each of them."""
    problem = _too_few(target, classes, groups, how.folds)
    if problem:
        return Divided(None, problem)
    fold = _folds(classes, groups, how)
    first = np.full(len(classes.values), how.folds)
    last = np.full(len(classes.values), -1)
    np.minimum.at(first, classes.code, fold)
    np.maximum.at(last, classes.code, fold)
    never = classes.values[first == last]
    if not len(never):
        return Divided(fold)
    return Divided(
        None,
        f"column {target!r}: all groups of {listed(never.tolist())} came into one of the "
        f"{how.folds} folds (seed {how.seed}), where that is asked for without having been learnt. "
        "Ask for another number of folds or another seed, or leave the class out",
    )


def _too_few(target: str, classes: Classes, groups: Codes, folds: int) -> str:
    """Say why there can be no folds; empty if there can."""
    if len(classes.values) < 2:
        there = f"one value only, {classes.values[0]!r}" if len(classes.values) else "no value"
        return f"column {target!r} has {there}; give it two"
    pairs = np.unique(np.stack([classes.code, groups]), axis=1)
    count = np.bincount(pairs[0])
    least = int(count.argmin())
    if count[least] >= folds:
        return ""
    return (
        f"column {target!r}: {str(classes.values[least])!r} is in {count[least]} group(s), fewer "
        f"than the {folds} folds, so it cannot be both learnt and tested everywhere. Ask for fewer "
        "folds, or leave the class out"
    )


def predict(
    scope: Scope,
    order: Int,
    targets: dict[str, Classes],
    divided: dict[str, Divided],
    how: Folds,
    threads: int,
    on_progress: Callable[[float], None] | None = None,
) -> dict[tuple[str, str], Predictions]:
    """Predict each target by each probe; `probes` says how.

    Parameters
    ----------
    order : (n,) rows of the scope that take part
    targets, divided : codes (n,) and folds of these rows
    """
    from sklearn.exceptions import ConvergenceWarning

    fold = {name: one.fold for name, one in divided.items()}
    code = {
        (name, probe): np.full(len(order), -1, np.int32) for name in targets for probe in PROBES
    }
    tasks = [
        (name, probe, number)
        for probe in reversed(PROBES)  # the linear ones take longest
        for name, numbers in fold.items()
        if numbers is not None
        for number in np.unique(numbers)
    ]
    vectors, done = residuals(scope, order), iter(range(1, len(tasks) + 1))

    def run(task: tuple[str, str, int]) -> None:
        name, probe, number = task
        test = np.asarray(fold[name] == number)
        learn = {"knn": _knn, "linear": _linear}[probe]
        code[name, probe][test] = learn(vectors, targets[name].code, test, how)

    def report(_: Any) -> None:
        if on_progress is not None:
            on_progress(next(done) / len(tasks))

    with workers(threads) as for_each, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # as said: at most 1,000 iterations
        for_each(run, tasks, report)
    return {
        (name, probe): _told(targets[name], fold[name], code[name, probe])
        for name in targets
        for probe in PROBES
    }


def _told(classes: Classes, fold: Codes | None, code: Codes) -> Predictions:
    truth = pl.Series(classes.values[classes.code], dtype=pl.String)
    if fold is None:
        n = len(code)
        return Predictions(
            pl.Series([None] * n, dtype=pl.Int32), truth, pl.Series([None] * n, dtype=pl.String)
        )
    return Predictions(pl.Series(fold), truth, pl.Series(classes.values[code], dtype=pl.String))


def _folds(classes: Classes, groups: Codes, how: Folds) -> Codes:
    """Fold (n,) in which each row is predicted."""
    from sklearn.model_selection import StratifiedGroupKFold

    divide = StratifiedGroupKFold(how.folds, shuffle=True, random_state=how.seed)
    fold = np.empty(len(groups), np.int32)
    for number, (_, test) in enumerate(divide.split(groups, classes.code, groups)):
        fold[test] = number
    return fold


def _knn(vectors: Matrix, code: Codes, test: NDArray[np.bool_], how: Folds) -> Codes:
    """Take a vote of the nearest; residuals are as near as cosine distance has it."""
    from sklearn.neighbors import KNeighborsClassifier

    learnt, asked = vectors[~test], vectors[test]
    k = min(how.neighbours, len(learnt))
    model = KNeighborsClassifier(k, algorithm="brute").fit(learnt, code[~test])
    rows = max(1, AT_ONCE // max(1, learnt.size))
    return np.concatenate([model.predict(some) for some in _batches(asked, rows)])


def _batches(vectors: Matrix, rows: int) -> Iterator[Matrix]:
    for start in range(0, len(vectors), rows):
        yield vectors[start : start + rows]


def _linear(vectors: Matrix, code: Codes, test: NDArray[np.bool_], _: Folds) -> Codes:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS))
    model.fit(vectors[~test], code[~test])
    return np.asarray(model.predict(vectors[test]), np.int32)
