"""Columns of text that are numbers, where reading them so loses nothing of what was written."""

from collections.abc import Sequence

import polars as pl

from croma_sql.importers.missing import Found

# Numbers as a spreadsheet writes them. "007" is no number but an id, and stays text.
_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
LARGEST_EXACT = 2.0**53  # from here on float64 skips whole numbers
_AT_LEAST = 2  # different numbers, in a column that one word makes text


def number_type(written: pl.Series) -> type[pl.Int64 | pl.Float64] | None:
    """Tell which numbers some different cells are; None where they are text."""
    for pattern, dtype in ((_INTEGER, pl.Int64), (_NUMBER, pl.Float64)):
        if not written.is_empty() and written.str.contains(pattern).all():
            # "1.1" and "1.10", or ids of twenty digits, may be two things that are one number
            numbers = written.cast(dtype)
            exact = dtype == pl.Int64 or bool((numbers.abs() < LARGEST_EXACT).all())
            return dtype if exact and numbers.n_unique() == len(written) else None
    return None


def with_odd_cells(column: pl.Series, found: Sequence[Found]) -> list[Found]:
    """Find the one cell, or the unclear ones, without which a column of text would be of numbers.

    Parameters
    ----------
    column : (n,) text
    found : what is known of its cells

    Examples
    --------
    >>> with_odd_cells(pl.Series("age", ["40", "61", "52", "adult"]), [])
    [Found(column='age', cell='adult', n=1, rows=4, kind='no number')]
    """
    cells = column.str.strip_chars().drop_nulls()
    distinct = cells.unique(maintain_order=True)
    is_number = distinct.str.contains(_NUMBER)
    odd, numbers = distinct.filter(~is_number).to_list(), distinct.filter(is_number)
    unclear = {one.cell for one in found if one.kind == "unclear"}
    if not odd or (len(odd) > 1 and not unclear.issuperset(odd)):
        return list(found)
    n = {cell: int((cells == cell).sum()) for cell in odd}
    few = 2 * sum(n.values()) <= len(cells) and len(numbers) >= _AT_LEAST
    if not few or number_type(numbers) is None:
        return list(found)
    spoilt = [Found(column.name, cell, n[cell], len(column), "no number") for cell in odd]
    return [one for one in found if one.kind == "missing"] + spoilt
