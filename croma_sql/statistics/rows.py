"""Rows with a margin, told apart by level, subset and group."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError, listed
from croma_sql.statistics.frames import as_names, as_numbers, read_columns, without_nulls

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Rows:
    """What is resampled, one entry per row.

    levels : one row per distinct level, in order, with the columns that tell them apart
    level, subset, group : (n,) codes; without subsets all of one
    n_groups : groups in the whole frame
    value : (n,) float64, NaN where undefined
    n_left_out : (levels,) how many units of the level's block were not paired
    """

    levels: pl.DataFrame
    level: Codes
    subset: Codes
    group: Codes
    n_groups: int
    value: NDArray[np.float64]
    n_left_out: NDArray[np.int64] | None = None

    def where(self, kept: NDArray[np.bool_]) -> "Rows":
        """Keep some rows; levels and groups stay."""
        some = {name: getattr(self, name)[kept] for name in ("level", "subset", "group", "value")}
        return replace(self, **some)

    def counts(self) -> dict[str, NDArray[np.int64]]:
        """Rows, undefined rows, and groups with a defined row, of each level."""
        n, defined = len(self.levels), ~np.isnan(self.value)
        pairs = np.unique(
            self.level[defined].astype(np.int64) * self.n_groups + self.group[defined]
        )
        return {
            "n": np.bincount(self.level, minlength=n),
            "n_undefined": np.bincount(self.level[~defined], minlength=n),
            "n_groups": np.bincount(pairs // max(self.n_groups, 1), minlength=n),
        }


def read_rows(
    frame: Any,
    *,
    by: Sequence[str],
    value: str,
    group: str,
    subset: str | None,
    between: str | None = None,
    paired_by: str | Sequence[str] | None = None,
) -> Rows:
    """Read rows, whose levels are those of ``by`` and ``between``, sorted by them.

    Raises
    ------
    StatisticsError
        Columns that are not there or of the wrong type, a row without group, a unit that is not
        paired one to one, or not told apart by anything.
    """
    keys = [*by] if between is None else [*by, between]
    units = [] if paired_by is None else as_names(paired_by)
    if paired_by is not None and not units:
        raise StatisticsError(
            "paired_by names no column; name those that tell the samples of a level apart, or "
            "leave it out"
        )
    subsets = [] if subset is None else [subset]
    read = read_columns(frame, [*keys, value, group, *subsets, *units])
    without_nulls(read[group], "every row belongs to a group (slide, patient, place)")
    levels, level = codes(read, keys)
    distinct_groups, group_code = codes(read, [group])
    rows = Rows(
        levels,
        level,
        codes(read, subsets)[1],
        group_code,
        len(distinct_groups),
        as_numbers(read[value]).fill_null(np.nan).to_numpy(),
    )
    if paired_by is None or between is None:
        return rows
    return _paired(rows, read.select(units), codes(levels, by)[1])


def codes(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, Codes]:
    """Distinct values of some columns, sorted with NULL last, and which of them each row has.

    NaN is NULL. Without columns there is one level, of all rows.

    Raises
    ------
    StatisticsError
        A column of Python objects.

    Examples
    --------
    >>> codes(pl.DataFrame({"dose": [2.0, None, 1.0, float("nan")]}), ["dose"])[1]
    array([1, 2, 0, 2], dtype=int32)
    """
    if not columns:
        return pl.DataFrame({"": [None]}), np.zeros(len(frame), np.int32)
    objects = [name for name in columns if frame[name].dtype == pl.Object]
    if objects:
        raise StatisticsError(
            f"column {listed(objects)} holds Python objects, which cannot be told apart; make them "
            "text or numbers"
        )
    names = {name: str(place) for place, name in enumerate(columns)}
    named = frame.select(columns).rename(names).with_columns(cs.float().fill_nan(None))
    distinct = named.unique().sort(names.values(), nulls_last=True)
    numbered = distinct.with_row_index("code")
    joined = named.join(
        numbered, on=list(names.values()), how="left", nulls_equal=True, maintain_order="left"
    )
    return distinct.rename({new: old for old, new in names.items()}), (
        joined["code"].cast(pl.Int32).to_numpy()
    )


def columns_at(levels: pl.DataFrame, places: NDArray[np.intp]) -> dict[str, pl.Series]:
    """Take rows of the levels, any number of times, as columns by name."""
    return {column.name: column.gather(places) for column in levels}


def _paired(rows: Rows, units: pl.DataFrame, block: Codes) -> Rows:
    """Keep the rows of units that are defined at every level of their block."""
    distinct, unit = codes(units, units.columns)
    n = len(distinct)
    once, times = np.unique(rows.level.astype(np.int64) * n + unit, return_counts=True)
    if (times > 1).any():
        at = once[times > 1][:3]
        names = [(*rows.levels.row(a // n), *distinct.row(a % n)) for a in at]
        raise StatisticsError(
            f"{listed(units.columns)} does not tell the rows of a level apart: "
            f"{listed(names)} is there more than once; add the columns that do to paired_by"
        )
    unit_of_block = block[rows.level].astype(np.int64) * n + unit
    seen, place = np.unique(unit_of_block, return_inverse=True)
    defined = np.bincount(place[~np.isnan(rows.value)], minlength=len(seen))
    block_of_unit = seen // n
    complete = defined == np.bincount(block)[block_of_unit]
    left_out = np.bincount(block_of_unit[~complete], minlength=block.max(initial=-1) + 1)
    return replace(rows.where(complete[place]), n_left_out=left_out[block])
