"""Attributes of the samples as a few values each, and what is said of a value."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.errors import StatisticsError, listed
from croma_sql.statistics.rows import Codes, codes

NOT_ATTRIBUTES = frozenset(
    {
        "benchmark", "encoder", "subset", "sample_id", "group_id", "d_so", "d_os", "margin",
        "undefined_reason",
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
    values: list[str | None]
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
            "there is no attribute to tell rows apart by; "
            f"the columns of the frame are {listed(frame.columns, show=len(frame.columns))}"
        )
    return [read_attribute(frame[name], bins) for name in names]


def read_attribute(column: pl.Series, bins: int) -> Attribute:
    """Tell the values of a column, cutting numbers and times at quantiles if there are many.

    A column of more than ``2 * bins`` different numbers is cut where a fraction 1/bins, 2/bins, ...
    of its rows is at or below: intervals are open on the left. Limits are rounded to four digits
    as long as that keeps them apart. NaN is NULL.

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
    if column.dtype.is_float():
        column = column.fill_nan(None)
    elif column.dtype.is_decimal() or column.dtype in (pl.Int128, pl.UInt128):
        column = column.cast(pl.Float64)
    elif not (column.dtype.is_numeric() or column.dtype.is_temporal()):
        column = column.cast(pl.Boolean if column.dtype == pl.Boolean else pl.String)
    if column.dtype in (pl.String, pl.Boolean) or column.n_unique() <= 2 * bins:
        return _as_they_are(column)
    return _binned(column, bins)


def _is_told(dtype: pl.DataType) -> bool:
    untold = dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Duration)
    return not untold


def _may_be_id(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)


def _as_they_are(column: pl.Series) -> Attribute:
    distinct, code = codes(column.to_frame(), [column.name])
    values = distinct.to_series().to_list()
    return Attribute(
        column.name,
        code,
        _texts(distinct.to_series()),
        [_equal(column.name, value) for value in values],
    )


def _binned(column: pl.Series, bins: int) -> Attribute:
    present = column.drop_nulls()
    physical = present.to_physical().to_numpy()
    fractions = np.arange(1, bins) / bins
    limits = np.unique(np.quantile(physical, fractions, method="inverted_cdf"))
    limits = limits[limits < physical.max()]
    if column.dtype.is_numeric():
        limits = _rounded(limits)
    code = np.full(len(column), len(limits) + 1, np.int32)
    code[column.is_not_null().to_numpy()] = np.searchsorted(limits, physical)
    cuts = pl.Series(column.name, limits).cast(present.to_physical().dtype).cast(column.dtype)
    return Attribute(
        column.name,
        code,
        [*_intervals(_texts(cuts)), None],
        [*_between(column.name, cuts.to_list()), _equal(column.name, None)],
    )


def _intervals(limits: list[str | None]) -> list[str | None]:
    if not limits:
        return ["any"]
    within = [f"({low}, {high}]" for low, high in pairwise(limits)]
    return [f"<= {limits[0]}", *within, f"> {limits[-1]}"]


def _rounded(limits: NDArray[Any]) -> NDArray[Any]:
    rounded = np.array([float(f"{limit:.{DIGITS}g}") for limit in limits.tolist()])
    apart = len(np.unique(rounded)) == len(limits)
    return rounded.astype(limits.dtype) if apart else limits


def _texts(values: pl.Series) -> list[str | None]:
    if values.dtype.is_float():
        return [None if value is None else repr(value) for value in values.to_list()]
    return values.cast(pl.String).to_list()


def _between(name: str, limits: list[Any]) -> list[str]:
    column = identifier(name)
    if not limits:
        return [f"{column} IS NOT NULL"]
    texts = [_literal(limit) for limit in limits]
    within = [f"{column} > {low} AND {column} <= {high}" for low, high in pairwise(texts)]
    return [f"{column} <= {texts[0]}", *within, f"{column} > {texts[-1]}"]


def _equal(name: str, value: object) -> str:
    column = identifier(name)
    return f"{column} IS NULL" if value is None else f"{column} = {_literal(value)}"


def _literal(value: object) -> str:
    """Write a value as SQL does, without the type that DuckDB adds to it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and np.isfinite(value)):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Write a column's name as SQL does, quoted where it must be."""
    plain = name.isidentifier() and name.lower() not in _keywords()
    return name if plain else '"' + name.replace('"', '""') + '"'


@cache
def _keywords() -> frozenset[str]:
    with duckdb.connect() as con:
        found = con.execute(
            "SELECT keyword_name FROM duckdb_keywords() "
            "WHERE keyword_category NOT IN ('unreserved', 'column_name')"
        ).fetchall()
    return frozenset(name for (name,) in found)
