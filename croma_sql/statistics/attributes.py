"""Attributes of the samples as a few values each, which rows share."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

import numpy as np
import polars as pl

from croma_sql.errors import StatisticsError, listed
from croma_sql.statistics.conditions import between, equal_to, texts
from croma_sql.statistics.rows import Codes, codes

NOT_ATTRIBUTES = frozenset(
    {
        "benchmark", "encoder", "subset", "sample_id", "group_id", "matched", "d_so", "d_os",
        "margin", "undefined_reason",
    }
)  # fmt: skip
ROLES = ("label", "confounder")  # of some attribute, as a rule: the attribute's name says more
DIGITS = 4  # of a limit between two bins, where that many tell its rows apart
EXACT = 17  # digits that tell any number of 64 bits


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


def check_capitals(names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse attributes that SQL, which takes no notice of capitals, mistakes for other columns.

    Raises
    ------
    StatisticsError
    """
    alike: dict[bytes, list[str]] = {}
    for column in dict.fromkeys([*columns, *names]):
        alike.setdefault(_as_sql_takes(column), []).append(column)
    for name in names:
        same = alike[_as_sql_takes(name)]
        if len(same) == 1:
            continue
        raise StatisticsError(
            f"columns {listed(same)} differ by capitals only, and a condition on one of them would "
            "select rows by another, as SQL takes no notice of capitals; rename all but one"
        )


def _as_sql_takes(name: str) -> bytes:
    return name.encode().lower()  # which takes capitals of ASCII alone


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
    alone. A limit that is no whole number is written with as few digits, from four on, as leave the
    same rows at or below it. NaN is NULL.

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
    if column.dtype == pl.Float16:  # SQL has none and reads it as this
        column = column.cast(pl.Float32)
    ordered = column.dtype.is_numeric() or column.dtype.is_temporal()
    as_it_is = ordered or column.dtype == pl.Boolean
    distinct, code = codes(
        (column if as_it_is else column.cast(pl.String)).to_frame(), [column.name]
    )
    values = distinct.to_series()
    if ordered and len(values) > 2 * bins:
        return _binned(values, code, nan, bins)
    return Attribute(column.name, code, texts(values), equal_to(values, nan=nan))


def _is_told(dtype: pl.DataType) -> bool:
    untold = dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Duration)
    return not untold


def _may_be_id(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)


def _binned(values: pl.Series, code: Codes, nan: bool, bins: int) -> Attribute:
    """Cut ordered values, the last of which may be NULL, of which each row has one."""
    present = values.drop_nulls()
    fractions = np.arange(1, bins) / bins
    quantiles = np.quantile(code[code < len(present)], fractions, method="inverted_cdf")
    last = np.unique(np.minimum(quantiles, len(present) - 2))
    limits = present.gather(last)
    if limits.dtype.is_float():
        limits = _rounded(limits, present.gather(last + 1))
    interval = np.append(np.searchsorted(last, np.arange(len(present))), len(last) + 1)
    conditions = [*between(limits, nan=nan), *equal_to(values.clear(1), nan=nan)]
    binned = interval[code].astype(np.int32)
    return Attribute(values.name, binned, [*_intervals(texts(limits)), None], conditions)


def _intervals(limits: Sequence[str | None]) -> list[str]:
    within = [f"({low}, {high}]" for low, high in pairwise(limits)]
    return [f"<= {limits[0]}", *within, f"> {limits[-1]}"]


def _rounded(limits: pl.Series, following: pl.Series) -> pl.Series:
    """Shorten numbers without reaching those that follow them."""
    return pl.Series(
        limits.name,
        [_shortest(*ends, limits.dtype) for ends in zip(limits, following, strict=True)],
        limits.dtype,
    )


def _shortest(least: float, below: float, dtype: pl.DataType) -> float:
    """Find a number of few digits in [least, below)."""
    narrow = np.float32 if dtype == pl.Float32 else np.float64
    if not math.isfinite(least):
        return least
    for digits in range(DIGITS, EXACT):
        nearest = Decimal(f"{least:.{digits - 1}e}")
        step = Decimal((0, (1,), nearest.adjusted() - digits + 1))
        for tried in (nearest, nearest + step):
            number = float(narrow(float(tried)))
            if least <= number < below:
                return number
    return least
