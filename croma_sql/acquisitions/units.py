"""Validate rows that are samples of units under acquisitions, and pool their vectors."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from croma_sql.cohort import as_text
from croma_sql.errors import CohortError, listed
from croma_sql.udfs.acquisitions.pooling import Pool
from croma_sql.udfs.scope import Float, Int
from croma_sql.vectors import Matrix, in_memory, with_direction

Incomplete = Literal["error", "drop", "pairwise"]
INCOMPLETE: tuple[Incomplete, ...] = get_args(Incomplete)
OnBadSamples = Literal["error", "drop"]


@dataclass(frozen=True, slots=True)
class UnitNames:
    """What the user calls each column; messages speak these names."""

    unit: str = "unit"
    acquisition: str = "acquisition"
    embedding: str = "embedding"
    where: str = ""

    @property
    def prefix(self) -> str:
        """Where the rows came from, as the start of a message."""
        return f"{self.where}: " if self.where else ""


@dataclass(frozen=True, slots=True)
class Units:
    """N units under S acquisitions, both in the order of their names as text.

    means : (S, N, d) float64; with 'pairwise' NaN where a unit lacks an acquisition
    n_samples : (S, N) int64, vectors in each mean
    unit_row, acquisition_row : (N,) and (S,), a row that has this unit, or acquisition
    n_incomplete : units that lack an acquisition; left out but with 'pairwise'
    """

    means: Float
    n_samples: Int
    unit_row: Int
    acquisition_row: Int
    n_incomplete: int

    @property
    def n_complete(self) -> int:
        """Count the units that have every acquisition."""
        return int(np.count_nonzero(self.n_samples.all(axis=0)))


def pool_rows(
    matrix: Matrix,
    unit: pa.Array,
    acquisition: pa.Array,
    names: UnitNames,
    incomplete: Incomplete,
    on_bad_vectors: OnBadSamples,
) -> Units:
    """Validate rows and give the mean vector of every unit under every acquisition.

    Parameters
    ----------
    matrix : (n, d) from `as_matrix`
    unit, acquisition : (n,) Arrow columns
    names : UnitNames
    incomplete : 'error', 'drop' or 'pairwise'
        Units that lack an acquisition: refuse them, leave them out, or keep them for the pairs of
        acquisitions that they have.
    on_bad_vectors : 'error' or 'drop'
        Vectors that are NULL, hold NaN or inf, or are all zero; dropped ones count as missing.

    Raises
    ------
    CohortError
        An empty cell; a bad vector; a unit that lacks an acquisition; fewer than two units or
        acquisitions; with 'pairwise' no two acquisitions with two units in common; a mean that has
        no direction. The message names column and first rows.
    """
    _check_choice("incomplete", incomplete, INCOMPLETE)
    _check_choice("on_bad_vectors", on_bad_vectors, ("error", "drop"))
    for column, name in ((unit, names.unit), (acquisition, names.acquisition)):
        _check_column(column, name, len(matrix), names)
    units, of_unit = _coded(as_text(unit, names.unit))
    acquisitions, of_acquisition = _coded(as_text(acquisition, names.acquisition))
    _check_two(units, names.unit, names)
    _check_two(acquisitions, names.acquisition, names)
    usable = with_direction(in_memory(matrix).square)
    if on_bad_vectors == "error":
        _check_vectors(usable, unit, acquisition, names)
    n_samples = _counts(of_acquisition[usable], of_unit[usable], len(acquisitions), len(units))
    complete = n_samples.all(axis=0)
    is_kept = n_samples.any(axis=0) if incomplete == "pairwise" else complete
    if not complete.all():
        _check_complete(n_samples, units, acquisitions, names, incomplete)
    n = int(np.count_nonzero(is_kept))
    kept = np.where(is_kept, np.cumsum(is_kept) - 1, -1)[of_unit]
    pool = Pool(len(acquisitions) * n, matrix.shape[1])
    pool.add(matrix, np.where(usable & (kept >= 0), of_acquisition * n + kept, -1))
    means = pool.means().reshape(len(acquisitions), n, -1)
    n_samples = n_samples[:, is_kept]
    _check_means(means, n_samples, units.filter(pa.array(is_kept)), acquisitions, names)
    return Units(
        means,
        n_samples,
        _first_rows(of_unit)[is_kept],
        _first_rows(of_acquisition),
        int(np.count_nonzero(~complete)),
    )


def _coded(texts: pa.Array) -> tuple[pa.Array, Int]:
    """Distinct values in the order of text, and which of them each value is."""
    distinct = pc.unique(texts)
    distinct = distinct.take(pc.sort_indices(distinct))
    return distinct, pc.index_in(texts, distinct).to_numpy().astype(np.int64)


def _first_rows(codes: Int) -> Int:
    rows: Int = np.unique(codes, return_index=True)[1]
    return rows


def _counts(of_acquisition: Int, of_unit: Int, acquisitions: int, units: int) -> Int:
    cells = np.bincount(of_acquisition * units + of_unit, minlength=acquisitions * units)
    return cells.reshape(acquisitions, units)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        first, last = ", ".join(map(repr, choices[:-1])), repr(choices[-1])
        raise CohortError(f"{name} is {value!r}; it can be {first} or {last}")


def _check_column(column: pa.Array, name: str, n: int, names: UnitNames) -> None:
    if len(column) != n:
        raise CohortError(
            f"{names.prefix}{name!r} has {len(column)} rows but there are {n} vectors; every "
            "column needs one entry per vector, in the same order"
        )
    if column.null_count:
        rows = np.flatnonzero(pc.is_null(column)).tolist()
        raise CohortError(
            f"{names.prefix}column {name!r} is NULL in {len(rows)} of {n} rows (first: row "
            f"{listed(rows)}). Fill the cells in, or leave the rows out"
        )


def _check_two(values: pa.Array, name: str, names: UnitNames) -> None:
    if len(values) < 2:
        there = f"one value, {values[0].as_py()!r}" if len(values) else "no value"
        raise CohortError(
            f"{names.prefix}column {name!r} has {there}: units are compared with each other and "
            "across acquisitions, so there are two of each at least"
        )


def _check_vectors(
    usable: NDArray[np.bool_], unit: pa.Array, acquisition: pa.Array, names: UnitNames
) -> None:
    bad = np.flatnonzero(~usable)
    if len(bad):
        shown = [
            f"row {row} ({unit[row].as_py()!r} under {acquisition[row].as_py()!r})"
            for row in bad[:3].tolist()
        ]
        raise CohortError(
            f"{names.prefix}{len(bad)} of {len(usable)} vectors in {names.embedding!r} are NULL, "
            f"hold NaN or inf, or are all zero: {', '.join(shown)}{', ...' * (len(bad) > 3)}. "
            "Leave them out of the means (on_bad_vectors = 'drop')"
        )


def _check_complete(
    n_samples: Int,
    units: pa.Array,
    acquisitions: pa.Array,
    names: UnitNames,
    incomplete: Incomplete,
) -> None:
    """Refuse units that lack an acquisition, or too few that do not for the choice made."""
    short = np.flatnonzero(~n_samples.all(axis=0))
    shown = [
        f"{units[p].as_py()!r} has no "
        + listed(acquisitions.take(pa.array(np.flatnonzero(n_samples[:, p] == 0))).to_pylist())
        for p in short[:3].tolist()
    ]
    told = (
        f"{names.prefix}{len(short)} of {len(units)} units in {names.unit!r} are not under every "
        f"{names.acquisition!r}: {'; '.join(shown)}{'; ...' * (len(short) > 3)}"
    )
    if incomplete == "error":
        raise CohortError(
            f"{told}. Compare complete units only (incomplete = 'drop'), compare each pair of "
            "acquisitions on the units that both have (incomplete = 'pairwise'), or leave "
            "acquisitions out"
        )
    if incomplete == "pairwise":
        if most_in_common(n_samples > 0) < 2:
            raise CohortError(
                f"{told}. No two acquisitions have two units in common, so that no pair of them "
                "can be compared; one unit needs one name under all its acquisitions"
            )
    elif len(units) - len(short) < 2:
        raise CohortError(
            f"{told}. That leaves {len(units) - len(short)} to compare, of the two that it takes; "
            "compare each pair of acquisitions on the units that both have (incomplete = "
            "'pairwise'), or leave acquisitions out that few units have"
        )


def most_in_common(has: NDArray[np.bool_]) -> int:
    """Count the units of the two acquisitions that have most units in common.

    Parameters
    ----------
    has : (S, N), whether a unit has an acquisition

    Examples
    --------
    >>> most_in_common(np.array([[True, True, False], [True, False, True]]))
    1
    """
    together = has.astype(np.int64) @ has.T.astype(np.int64)
    return int(together[~np.eye(len(has), dtype=np.bool_)].max(initial=0))


def _check_means(
    means: Float, n_samples: Int, units: pa.Array, acquisitions: pa.Array, names: UnitNames
) -> None:
    peaks = np.maximum(means.max(axis=2, initial=0.0), -means.min(axis=2, initial=0.0))
    at, which = np.nonzero((n_samples > 0) & ~(np.isfinite(peaks) & (peaks > 0)))
    if len(at):
        shown = [
            f"{units[p].as_py()!r} under {acquisitions[s].as_py()!r}"
            for s, p in zip(at[:3].tolist(), which[:3].tolist(), strict=True)
        ]
        raise CohortError(
            f"{names.prefix}{len(at)} mean vector{'s are' if len(at) > 1 else ' is'} zero or not "
            f"finite, so that there is no direction: {', '.join(shown)}{', ...' * (len(at) > 3)}. "
            "Vectors cancel, or are too long to be added up; leave these units out"
        )
