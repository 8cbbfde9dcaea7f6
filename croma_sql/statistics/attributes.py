"""Attributes of the samples as a few values each, which rows share."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError
from croma_sql.statistics.conditions import between, equal_to, texts
from croma_sql.statistics.rows import Codes, codes

NOT_ATTRIBUTES = frozenset(
    {
        "benchmark", "encoder", "subset", "sample_id", "group_id", "matched", "d_so", "d_os",
        "margin", "undefined_reason",
    }
)  # fmt: skip
ROLES = ("label", "confounder")  # of some attribute, as a rule: the attribute's name says more
DIGITS = 4  # of a limit between two bins


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of a frame as values that rows share.

    code : (n,) int32, the value of each row; NULL is a value
    values : what they are called; an interval where numbers were binned, None for NULL
    conditions : for each value, the SQL condition that its rows fulfil
    """

    name: str
    code: Codes
    values: Sequence[str | None]
    conditions: list[str]


def attribute_names(frame: pl.DataFrame, but: Sequence[str]) -> list[str]:
    """Columns of a frame of margins that say something about its samples, the roles last.

    What differs in all rows is an id, unless it is a measured number or a time.
    """
    names = [
        column.name
        for column in frame
        if column.name not in NOT_ATTRIBUTES
        and column.name not in but
        and _is_told(column.dtype)
        and not (_may_be_id(column.dtype) and column.n_unique() == len(column))
    ]
    return [name for name in names if name not in ROLES] + [name for name in ROLES if name in names]


def read_attributes(frame: pl.DataFrame, names: Sequence[str], bins: int) -> list[Attribute]:
    """Tell the values of some columns, at least one.

    Raises
    ------
    StatisticsError
        No name, or see `read_attribute`.
    """
    if not names:
        raise StatisticsError(
            "there is no attribute to tell rows apart by; name columns that say what they are of"
        )
    return [read_attribute(frame[name], bins) for name in names]


def read_attribute(column: pl.Series, bins: int) -> Attribute:
    """Tell the values of a column, cutting numbers and times at quantiles if there are many.

    A column of more than ``2 * bins`` different numbers is cut where a fraction 1/bins, 2/bins, ...
    of its rows is at or below: intervals are open on the left. A largest value of many rows stands
    alone. Limits are rounded to four digits as long as that keeps them apart. NaN is NULL.

    Raises
    ------
    StatisticsError
        A column of lists, structs, binary data or durations.

    Examples
    --------
    >>> read_attribute(pl.Series("age", [61, 40, 40, None]), bins=5).conditions
    ['age = 40', 'age = 61', 'age IS NULL']
    >>> many = read_attribute(pl.Series("area", [i / 7 for i in range(100)]), bins=2)
    >>> many.values, many.conditions
    (['<= 7.0', '> 7.0', None], ['area <= 7.0', 'area > 7.0', 'area IS NULL'])
    """
    if not _is_told(column.dtype):
        raise StatisticsError(
            f"column {column.name!r} is of type {column.dtype}; an attribute is text, numbers, "
            "booleans, dates or times"
        )
    nan = column.dtype.is_float() and bool(column.is_nan().any())
    if nan:
        column = column.fill_nan(None)
    elif column.dtype.is_decimal() or column.dtype in (pl.Int128, pl.UInt128):
        column = column.cast(pl.Float64)
    ordered = column.dtype.is_numeric() or column.dtype.is_temporal()
    if ordered and column.n_unique() > 2 * bins:
        return _binned(column, nan, bins)
    as_it_is = ordered or column.dtype == pl.Boolean
    return _as_they_are(column if as_it_is else column.cast(pl.String), nan)


def _is_told(dtype: pl.DataType) -> bool:
    untold = dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Duration)
    return not untold


def _may_be_id(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)


def _as_they_are(column: pl.Series, nan: bool) -> Attribute:
    distinct, code = codes(column.to_frame(), [column.name])
    values = distinct.to_series()
    return Attribute(column.name, code, texts(values), equal_to(values, nan=nan))


def _binned(column: pl.Series, nan: bool, bins: int) -> Attribute:
    present = column.drop_nulls().to_physical()
    physical = present.to_numpy()
    fractions = np.arange(1, bins) / bins
    quantiles = np.quantile(physical, fractions, method="inverted_cdf")
    limits = np.unique(np.minimum(quantiles, physical[physical < physical.max()].max()))
    if column.dtype.is_numeric():
        limits = _rounded(limits)
    null = len(limits) + 1
    code = np.full(len(column), null, np.int32)
    code[column.is_not_null().to_numpy()] = np.searchsorted(limits, physical)
    cuts = pl.Series(column.name, limits).cast(present.dtype).cast(column.dtype)
    conditions = [*between(cuts, nan=nan), *equal_to(column.clear(1), nan=nan)]
    return Attribute(column.name, code, [*_intervals(texts(cuts)), None], conditions)


def _intervals(limits: Sequence[str | None]) -> list[str]:
    within = [f"({low}, {high}]" for low, high in pairwise(limits)]
    return [f"<= {limits[0]}", *within, f"> {limits[-1]}"]


def _rounded(limits: NDArray[Any]) -> NDArray[Any]:
    rounded = np.array([float(f"{limit:.{DIGITS}g}") for limit in limits.tolist()])
    apart = len(np.unique(rounded)) == len(limits)
    return rounded.astype(limits.dtype) if apart else limits
