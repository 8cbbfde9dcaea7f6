"""What is said of values of a column, as SQL would say it."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import duckdb
import polars as pl

BARE_DIGITS, BARE_DIGITS_32 = 15, 7
"""How many digits of a number SQL may read as a decimal and then round to the number meant.

One in quotes becomes a number of the column's type at once.
"""


def equal_to(values: pl.Series, *, nan: bool = False) -> list[str]:
    """One condition for each value; ``nan``: some rows hold NaN, which goes with NULL.

    Examples
    --------
    >>> print(*equal_to(pl.Series("site of origin", ["St. Olav's", None])), sep=", ")
    "site of origin" = 'St. Olav''s', "site of origin" IS NULL
    """
    column = _identifier(values.name)
    absent = f"({column} IS NULL OR isnan({column}))" if nan else f"{column} IS NULL"
    return [absent if literal is None else f"{column} = {literal}" for literal in _literals(values)]


def between(limits: pl.Series, *, nan: bool = False) -> list[str]:
    """One condition for each interval that the limits make, open on the left.

    ``nan`` as in `equal_to`: SQL takes NaN for the largest number.

    Examples
    --------
    >>> between(pl.Series("age", [40, 60]))
    ['age <= 40', 'age > 40 AND age <= 60', 'age > 60']
    """
    column = _identifier(limits.name)
    literals = _literals(limits)
    within = [f"{column} > {low} AND {column} <= {high}" for low, high in pairwise(literals)]
    last = f"{column} > {literals[-1]}" + (f" AND NOT isnan({column})" if nan else "")
    return [f"{column} <= {literals[0]}", *within, last]


def texts(values: pl.Series) -> Sequence[str | None]:
    """Write values as briefly as tells them apart."""
    if values.dtype == pl.Time:
        return values.dt.to_string("%H:%M:%S%.f").to_list()
    return values.cast(pl.String).to_list()


def _literals(values: pl.Series) -> list[str | None]:
    return [
        text if text is None or _is_bare(text, values.dtype) else _quoted(text, "'")
        for text in texts(values)
    ]


def _is_bare(text: str, dtype: pl.DataType) -> bool:
    if not dtype.is_float():
        return dtype == pl.Boolean or dtype.is_numeric()
    if "e" in text:
        return dtype == pl.Float64
    digits = text.lstrip("-0.").replace(".", "")
    return "inf" not in text and len(digits) <= (
        BARE_DIGITS if dtype == pl.Float64 else BARE_DIGITS_32
    )


def _identifier(name: str) -> str:
    plain = name.isidentifier() and name.lower() not in _keywords()
    return name if plain else _quoted(name, '"')


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, 2 * quote) + quote


@cache
def _keywords() -> frozenset[str]:
    """Words that cannot be the name of a column as they are."""
    with duckdb.connect() as con:
        found = con.execute(
            "SELECT keyword_name FROM duckdb_keywords() "
            "WHERE keyword_category NOT IN ('unreserved', 'column_name')"
        ).fetchall()
    return frozenset(name for (name,) in found)
