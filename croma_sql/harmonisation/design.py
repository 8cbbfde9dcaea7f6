"""The linear model of every method: which confounder a row is from, and what is to be kept."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from math import frexp, fsum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from croma_sql.cohort import as_text
from croma_sql.errors import HarmonisationError, listed

ROWS_AT_ONCE = 1024
RESOLUTION = 1e-9  # of a column's scatter; less than that is rounding

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Rows = slice | Int


@dataclass(frozen=True, slots=True)
class Levels:
    """A column of categories, as codes into their sorted names."""

    codes: Int
    names: list[str]


@dataclass(frozen=True, slots=True)
class Design:
    """Rows of a linear model without a constant: an indicator per confounder, then covariates.

    covariates : by name; numbers as they came, but centred and within [-1, 1]
    columns : which columns of all covariates are linearly independent, and so part of the model
    """

    confounder: Levels
    covariates: Mapping[str, Levels | Float]
    columns: Int

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.confounder.codes)

    @property
    def k(self) -> int:
        """Number of confounders."""
        return len(self.confounder.names)

    def kept(self, rows: Rows) -> Float:
        """Columns of the covariates, (rows, p)."""
        return _columns(self.covariates, self.confounder.codes[rows], rows)[:, self.columns]

    def matrix(self, rows: Rows) -> Float:
        """Columns of the model, (rows, k + p)."""
        return np.hstack([_indicators(self.confounder.codes[rows], self.k), self.kept(rows)])

    def pooled(self, unit: Int, first: Int) -> "Design":
        """Rows that are means over units; ``first`` is a row of each, alike in all categories."""
        size = np.bincount(unit)
        return replace(
            self,
            confounder=replace(self.confounder, codes=self.confounder.codes[first]),
            covariates={
                name: replace(values, codes=values.codes[first])
                if isinstance(values, Levels)
                else np.bincount(unit, values) / size
                for name, values in self.covariates.items()
            },
        )


def design(confounder: pa.Array, keep: Mapping[str, pa.Array], shown: pa.Array) -> Design:
    """Validate what is removed and what is kept, and code it.

    Parameters
    ----------
    confounder : (n,) column
    keep : (n,) columns by name. Numbers enter as numbers, anything else as categories.
    shown : (n,) what messages call the rows

    Raises
    ------
    HarmonisationError
        NULL cells, one confounder only, or a covariate that cannot be told from it.
    """
    removed = levels(confounder, "confounder", shown)
    if len(removed.names) < 2:
        raise HarmonisationError(
            f"confounder has {len(removed.names)} value(s) ({listed(removed.names)}): there is "
            "nothing to harmonise with. It takes two at least"
        )
    covariates = {name: _covariate(column, name, shown) for name, column in keep.items()}
    every = Design(removed, covariates, np.arange(_width(covariates)))
    total, within = _scatter(every)
    _check_told_apart(every, total, within)
    found = replace(every, columns=independent(within, total))
    if found.n <= found.k + len(found.columns):
        raise HarmonisationError(
            f"{found.n} rows are too few for {found.k} confounders and {len(found.columns)} "
            "columns to keep: nothing is left to estimate a variance from. Keep less"
        )
    return found


def blocks_of(n: int) -> Iterator[slice]:
    """Rows, some at a time."""
    return (slice(start, min(start + ROWS_AT_ONCE, n)) for start in range(0, n, ROWS_AT_ONCE))


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a column enters as a number, or as a category."""
    number: bool = (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
    return number


def _check_no_nulls(column: pa.Array, name: str, shown: pa.Array) -> None:
    if column.null_count:
        rows = shown.filter(pc.is_null(column)).to_pylist()
        raise HarmonisationError(
            f"column {name!r} is NULL in {len(rows)} of {len(column)} rows: {listed(rows)}. Fill "
            "the cells in, or leave the rows out"
        )


def levels(column: pa.Array, name: str, shown: pa.Array) -> Levels:
    """Code a column of categories; NULL cells are an error, as in `design`."""
    _check_no_nulls(column, name, shown)
    encoded = pc.dictionary_encode(as_text(column, name))
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    code = np.empty(len(order), np.int64)
    code[order] = np.arange(len(order))
    return Levels(code[encoded.indices.to_numpy()], encoded.dictionary.take(order).to_pylist())


def as_numbers(column: pa.Array, name: str) -> pa.Array:
    """Cast to float64; whole numbers that it does not tell apart are an error."""
    try:
        return column.cast(pa.float64())
    except pa.ArrowException as error:
        raise HarmonisationError(
            f"column {name!r} holds whole numbers beyond 2^53, which float64 rounds. If they are "
            "ids, keep them as text, so that each is a category; if they count something, keep "
            "what is left after subtracting the first"
        ) from error


def _covariate(column: pa.Array, name: str, shown: pa.Array) -> Levels | Float:
    if is_number(column.type):
        _check_no_nulls(column, name, shown)
        numbers: Float = as_numbers(column, name).to_numpy(zero_copy_only=False)
        if not np.isfinite(numbers).all():
            raise HarmonisationError(f"column {name!r} holds infinite numbers; mend them")
        return _within_one(numbers)
    return levels(column, name, shown)


def _within_one(numbers: Float) -> Float:
    """Centre and scale.

    Scaled by a power of two first, so that numbers of any size add up; and counted from the least,
    so that the mean of large ones that are close is not rounded by more than they are apart.
    """
    _, exponent = frexp(np.abs(numbers).max(initial=0.0))
    numbers = np.ldexp(numbers, -exponent)
    numbers = numbers - numbers.min(initial=np.inf)
    centred = numbers - fsum(numbers) / len(numbers)
    scaled: Float = centred / (np.abs(centred).max(initial=0.0) or 1.0)
    return scaled


def _indicators(codes: Int, levels: int) -> Float:
    found: Float = (codes[:, None] == np.arange(levels)).astype(np.float64)
    return found


def _width(covariates: Mapping[str, Levels | Float]) -> int:
    return sum(_width_of(values) for values in covariates.values())


def _width_of(values: Levels | Float) -> int:
    return len(values.names) - 1 if isinstance(values, Levels) else 1


def _columns(covariates: Mapping[str, Levels | Float], codes: Int, rows: Rows) -> Float:
    """Columns of all covariates: numbers, and indicators of all categories but the first."""
    parts = [
        _indicators(values.codes[rows], len(values.names))[:, 1:]
        if isinstance(values, Levels)
        else values[rows, None]
        for values in covariates.values()
    ]
    return np.hstack([np.empty((len(codes), 0)), *parts])


def _scatter(every: Design) -> tuple[Float, Float]:
    """Scatter of all columns about their mean, and about their means within confounders."""
    p = len(every.columns)
    gram, sums = np.zeros((p, p)), np.zeros((every.k, p))
    for rows in blocks_of(every.n):
        kept = every.kept(rows)
        gram += kept.T @ kept
        sums += _indicators(every.confounder.codes[rows], every.k).T @ kept
    size = np.bincount(every.confounder.codes, minlength=every.k)
    overall = sums.sum(axis=0)
    return gram - np.outer(overall, overall) / every.n, gram - (sums.T / size) @ sums


def independent(scatter: Float, total: Float) -> Int:
    """Columns whose scatter no others explain; ``total`` is what a column's is measured by."""
    from scipy.linalg.lapack import dpstrf

    own = np.diag(total)
    varies = np.flatnonzero((own > 0) & (np.diag(scatter) > RESOLUTION * own))
    if not len(varies):
        return varies
    scale = np.sqrt(own[varies])
    correlated = scatter[np.ix_(varies, varies)] / np.outer(scale, scale)
    _, order, rank, _ = dpstrf(correlated, tol=RESOLUTION)  # Cholesky, the least explained first
    found: Int = np.sort(varies[order[:rank] - 1])
    return found


def _check_told_apart(every: Design, total: Float, within: Float) -> None:
    """Refuse what would be removed with the confounder although it is to be kept."""
    ends = np.cumsum([0, *map(_width_of, every.covariates.values())])
    for (name, values), (start, stop) in zip(every.covariates.items(), pairwise(ends), strict=True):
        if is_confounded(total[start:stop, start:stop], within[start:stop, start:stop]):
            raise HarmonisationError(
                f"{name!r} cannot be kept while the confounder is removed: "
                f"{_why(every.confounder, values)}, so nothing tells their effects apart. Keep "
                "something else, or leave rows out until both vary within one another"
            )
    if len(every.covariates) > 1 and is_confounded(total, within):
        raise HarmonisationError(
            f"{listed(every.covariates, show=10)} cannot be kept together while the confounder is "
            "removed: a combination of them is the same as the confounder. Keep fewer of them"
        )


def is_confounded(total: Float, within: Float) -> bool:
    """Tell whether columns that vary, or a combination, do so between confounders only."""
    return len(independent(within, total)) < len(independent(total, total))


def _why(confounder: Levels, values: Levels | Float) -> str:
    if not isinstance(values, Levels):
        return "it has one value under each confounder"
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    k = len(confounder.names)
    nodes = k + len(values.names)
    met = coo_array(
        (np.ones(len(values.codes)), (confounder.codes, k + values.codes)), (nodes, nodes)
    )
    parts, part = connected_components(met, directed=False)
    if parts == k == len(values.names):
        return "it is the same as the confounder"
    shown = [
        f"{listed(_named(values, part[k:] == one))} only under "
        f"{listed(_named(confounder, part[:k] == one))}"
        for one in islice(range(parts), 3)
    ]
    return f"{'; '.join(shown)}{'; ...' if parts > 3 else ''}"


def _named(levels: Levels, some: NDArray[Any]) -> list[str]:
    return [levels.names[index] for index in np.flatnonzero(some)]
