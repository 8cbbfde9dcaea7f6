"""Cells that stand for a missing value, in a column of text as in one of numbers.

`MISSING` are the cells that pandas reads as missing, and R as far as it has such cells. They are
what programs write where they have no value, so that no lab means a class or a centre by them
unless it says so.
"""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

import polars as pl
import pyarrow as pa

from croma_sql.errors import SourceError, listed

MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)
UNCLEAR = frozenset(  # in small letters: missing to some, a value to others
    {"-", "--", "---", "'--", ".", "..", "...", "?", "??", "/", "_", "*", "na", "n.a.", "nd"}
    | {"none", "n.d.", "nil", "missing", "unknown", "unk", "not available", "not known"}
    | {"not applicable", "[not available]", "[not applicable]", "[unknown]", "[not evaluated]"}
    | {"undefined", "unspecified", "not specified", "not reported", "#ref!", "#value!"}
)  # fmt: skip
SHOWN = 10  # columns that get a sentence each

Kind = Literal["missing", "unclear", "no number", "id"]


@dataclass(frozen=True, slots=True)
class Missing:
    """What the user says of cells.

    also : cells that are missing values, beside those of `MISSING`
    text : columns that are kept as they are written, as text in which only empty cells are missing
    """

    also: Sequence[str] = ()
    text: Sequence[str] = ()

    @classmethod
    def of(cls, missing: str | Sequence[str], text: str | Sequence[str]) -> "Missing":
        """Take what a caller said, one name or several."""
        as_list = [[given] if isinstance(given, str) else list(given) for given in (missing, text)]
        return cls(*as_list)

    @property
    def cells(self) -> frozenset[str]:
        """All cells that are missing values, without spaces around them."""
        return MISSING | {cell.strip() for cell in self.also}

    def check(self, columns: Collection[str], name: str) -> None:
        """Refuse columns that are not there.

        Raises
        ------
        SourceError
        """
        absent = [column for column in self.text if column not in columns]
        if absent:
            raise SourceError(
                f"{name} has no column {listed(absent)} to keep as text; its columns are "
                f"{listed(columns, show=20)}. Name it with --text as it is spelled there"
            )


DEFAULT = Missing()


class Found(NamedTuple):
    """A cell that may stand for a missing value.

    column, cell : where, and as written, without spaces around it
    n, rows : how many cells of how many rows
    kind : read as missing; unclear, and left as text; text in a column of numbers; or an id
    """

    column: str
    cell: str
    n: int
    rows: int
    kind: Kind


def without_missing(cells: pl.Series, missing: Collection[str]) -> tuple[pl.Series, list[Found]]:
    """Make cells of text NULL that stand for a missing value; spaces around them do not count.

    Parameters
    ----------
    cells : (n,) text
    missing : as `Missing.cells`

    Returns
    -------
    the cells, and those that were found: read as missing, or unclear

    Examples
    --------
    >>> without_missing(pl.Series("site", ["Bern", "NA ", "-"]), MISSING)[1]
    [Found(column='site', cell='NA', n=1, rows=3, kind='missing'), \
Found(column='site', cell='-', n=1, rows=3, kind='unclear')]
    """
    stripped = cells.str.strip_chars()
    distinct = stripped.unique().drop_nulls()
    spelled = distinct.filter(distinct.is_in(list(missing))).to_list()
    unclear = distinct.filter(distinct.str.to_lowercase().is_in(list(UNCLEAR)))
    found = [
        *_counts(stripped, spelled, "missing"),
        *_counts(stripped, [cell for cell in unclear if cell not in spelled], "unclear"),
    ]
    if not spelled:
        return cells, found
    kept = pl.select(pl.when(~stripped.is_in(spelled)).then(cells).alias(cells.name))
    return kept.to_series(), found


def table_without_missing(
    table: pa.Table, missing: Missing, written: Collection[str] = ()
) -> tuple[pa.Table, list[Found]]:
    """Make cells of text NULL that stand for a missing value, in all columns of text but some.

    Parameters
    ----------
    table : of any columns; categories are text
    written : columns that are kept as they are, those of ids
    """
    found: list[Found] = []
    for at, field in enumerate(table.schema):
        if field.name in (*written, *missing.text) or not is_text(field.type):
            continue
        cells = pl.Series(field.name, table.column(at)).cast(pl.String)
        kept, some = without_missing(cells, missing.cells)
        found += some
        if any(cell.kind == "missing" for cell in some):
            table = table.set_column(at, field.name, kept.to_arrow().cast(pa.string()))
    return table, found


def is_text(kind: pa.DataType) -> bool:
    """Tell a column of text, or of categories of text."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def missing_ids(ids: pa.Array, column: str, missing: Missing) -> list[Found]:
    """Find ids that are spelled as a missing value; they stay as they are."""
    cells = pl.Series(column, ids)
    found = without_missing(cells, missing.cells)[1]
    return [one._replace(kind="id") for one in found if one.kind == "missing" and one.cell]


def added(found: Iterable[Found]) -> list[Found]:
    """Add up what was found in several pieces of a table, each of other rows.

    Examples
    --------
    >>> added([Found("a", "NA", 1, 5, "missing"), Found("a", "NA", 2, 7, "missing")])
    [Found(column='a', cell='NA', n=3, rows=12, kind='missing')]
    """
    sums: dict[tuple[str, str, Kind], Found] = {}
    for one in found:
        known = sums.get((one.column, one.cell, one.kind), one._replace(n=0, rows=0))
        total = known._replace(n=known.n + one.n, rows=known.rows + one.rows)
        sums[one.column, one.cell, one.kind] = total
    return list(sums.values())


def with_more(found: Sequence[Found], more: Iterable[Found]) -> list[Found]:
    """Add what was found in other columns."""
    columns = {one.column for one in found}
    return [*found, *(one for one in more if one.column not in columns)]


def told(found: Sequence[Found]) -> list[str]:
    """Say what was read as missing and what was not, a sentence per column.

    Examples
    --------
    >>> told([Found("site", "NA", 2, 12, "missing")])[0]
    "column 'site': 'NA' in 2 of 12 rows read as missing"
    >>> told([Found("site", "-", 2, 12, "unclear")])
    ["column 'site': '-' in 2 of 12 rows is text; --missing - reads it as missing"]
    """
    notes: list[str] = []
    for kind, ending in _ENDINGS.items():
        of_kind = [one for one in found if one.kind == kind]
        by_column = {
            column: list(some) for column, some in groupby(of_kind, key=lambda one: one.column)
        }
        for column, some in list(by_column.items())[:SHOWN]:
            where = " and ".join(f"{one.cell!r} in {one.n} of {one.rows} rows" for one in some)
            cure = " ".join(_option(one.cell) for one in some)
            verb = "are" if len(some) > 1 else "is"
            notes.append(f"column {column!r}: {where} {ending.format(verb=verb, cure=cure)}")
        more = list(by_column)[SHOWN:]
        if more:
            notes.append(f"{len(more)} more columns have such cells: {listed(more)}")
        if of_kind and kind == "missing":
            notes.append("--text COLUMN keeps the cells of a column as they are written")
    return notes


_ENDINGS: Mapping[Kind, str] = {
    "missing": "read as missing",
    "unclear": "{verb} text; {cure} reads it as missing",
    "id": "{verb} an id as written; ids are never read as missing",
    "no number": "{verb} no number, so the column is text; {cure} reads it as missing",
}


def _counts(stripped: pl.Series, cells: Sequence[str], kind: Kind) -> list[Found]:
    if not cells:
        return []
    counts = stripped.filter(stripped.is_in(cells)).value_counts(sort=True)
    return [Found(stripped.name, cell, n, len(stripped), kind) for cell, n in counts.iter_rows()]


def _option(cell: str) -> str:
    """Write the option that reads a cell as missing, as a shell takes it."""
    between = "=" if cell.startswith("--") else " "
    return f"--missing{between}{shlex.quote(cell)}"
