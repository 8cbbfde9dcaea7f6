"""Sheets of Excel workbooks, with ids as they are displayed."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date, datetime, time
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from croma_sql.errors import SourceError, listed

EXCEL = (".xlsx", ".xlsm")
OTHER_SHEETS = (".xls", ".xlsb", ".ods", ".numbers")

_MISSING = ("#N/A", "NA", "NaN", "nan")  # in a column of numbers
_EXACT = 10**15  # from here on Excel rounds whole numbers
_LITERAL = r'"[^"]*"|\\.|[-/ ]'
_OF_ZEROS = re.compile(rf"(?:{_LITERAL})*0(?:{_LITERAL}|0)*")  # such as 000, "S"000, 00-00
_CONDITION = re.compile(r"\[[^\]]*\]")  # colours, languages


ChooseText = Callable[[Sequence[str]], Collection[str]]  # of names of columns, those of ids


class _Sheet(NamedTuple):
    """Cells of openpyxl, without the rows that are empty."""

    title: str
    header: Sequence[Any]
    body: Sequence[Sequence[Any]]


def read_sheet(path: Path, choose_text: ChooseText) -> pa.Table:
    """Read the first sheet that is not empty; where it has no column of ids, the one that has.

    Parameters
    ----------
    path : .xlsx or .xlsm
    choose_text : names the columns to keep as text whatever they hold: ids

    Returns
    -------
    pyarrow.Table
        The first row that is not empty names the columns. Empty rows and columns are left out; of
        merged cells, each has their value; a formula has the value that Excel last gave it. Whole
        numbers under a format of zeros are ids, text as displayed ("007"). Else a column is of
        numbers, booleans or dates where every cell is, and of text where cells differ. NULL is an
        empty cell; in a column of numbers, NA too.

    Raises
    ------
    SourceError
        Not a workbook, without rows, without a name above a column, with a name twice, or with
        cells that are not what was entered: formulas without a value, errors, ids that Excel has
        rounded or made dates of.
    """
    visible = (s for s in _workbook(path, values=True).worksheets if s.sheet_state == "visible")
    sheets = [sheet for sheet in map(_read, visible) if sheet]
    if not sheets:
        raise SourceError(f"{path} has no rows: every sheet is empty")
    sheet = _chosen(sheets, choose_text, path)
    where = f"{path}, sheet {sheet.title!r}"
    _refuse_uncomputed(sheet, path, where)
    columns = dict(_named_columns(sheet, where))
    text = choose_text(list(columns))
    return pa.table({name: _array(name, columns[name], name in text, where) for name in columns})


def _workbook(path: Path, *, values: bool) -> Any:
    import openpyxl  # late: it takes a while

    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and the like that it does not read
            return openpyxl.load_workbook(file, data_only=values)
    except OSError:
        raise
    except Exception as error:  # of any kind: it looks at files as they come
        raise SourceError(
            f"{path} is not a readable Excel workbook: it may be cut short, under a password or of "
            "another format. Save it again as .xlsx, or as CSV"
        ) from error


def _read(sheet: Any) -> _Sheet | None:
    full = [row for row in sheet.iter_rows() if any(map(_is_full, row))]
    if not full:
        return None
    first = full[0][0].row
    merged = {
        (row, column): sheet.cell(cells.min_row, cells.min_col)
        for cells in sheet.merged_cells.ranges
        for row in range(cells.min_row, cells.max_row + 1)
        if row == first or cells.min_row > first  # names are not the first row of the body too
        for column in range(cells.min_col, cells.max_col + 1)
    }
    header, *body = ([merged.get((cell.row, cell.column), cell) for cell in row] for row in full)
    return _Sheet(sheet.title, header, body)


def _is_full(cell: Any) -> bool:
    return cell.value is not None and cell.value != ""


def _chosen(sheets: Sequence[_Sheet], choose_text: ChooseText, path: Path) -> _Sheet:
    names = ([str(cell.value) for cell in sheet.header] for sheet in sheets)
    with_ids = [sheet for sheet, some in zip(sheets, names, strict=True) if choose_text(some)]
    if not with_ids or with_ids[0] is sheets[0]:
        return sheets[0]
    if len(with_ids) == 1:
        return with_ids[0]
    raise SourceError(
        f"{path} has a column of ids in several sheets: "
        f"{listed(sheet.title for sheet in with_ids)}. Move the one that is meant to the front"
    )


def _refuse_uncomputed(sheet: _Sheet, path: Path, where: str) -> None:
    """Refuse formulas that no program has computed, which look like empty cells."""
    if all(_is_full(cell) for row in sheet.body for cell in row):
        return
    formulas = _workbook(path, values=False)[sheet.title]
    empty = (cell for row in sheet.body for cell in row if not _is_full(cell))
    found = [c.coordinate for c in empty if formulas[c.coordinate].data_type == "f"]
    if found:
        raise SourceError(
            f"{where}: formulas in {listed(found)} have no value yet, as a program wrote them that "
            "does not compute. Open the file in Excel and save it, or save it as CSV"
        )


def _named_columns(sheet: _Sheet, where: str) -> Iterator[tuple[str, Sequence[Any]]]:
    columns = list(zip(*sheet.body, strict=True)) or [()] * len(sheet.header)
    named = [_is_full(cell) for cell in sheet.header]
    for head, cells, has_name in zip(sheet.header, columns, named, strict=True):
        if not has_name and any(map(_is_full, cells)):
            full = next(filter(_is_full, cells))
            raise SourceError(
                f"{where}: column {full.column_letter} has no name in the first row with cells, "
                f"{head.row}. Titles above the table and headers of two rows look like this; "
                "leave one row of names, one for each column"
            )
    counts = Counter(str(head.value) for head in compress(sheet.header, named))
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise SourceError(
            f"{where} has more than one column {listed(twice)}; rename or remove one, and split "
            "merged cells in the row of names"
        )
    yield from zip(counts, compress(columns, named), strict=True)


def _array(name: str, cells: Sequence[Any], is_text: bool, where: str) -> pa.Array:
    broken = [cell for cell in cells if cell.data_type == "e" and cell.value not in _MISSING]
    if broken:
        raise SourceError(
            f"{where}: column {name!r} has errors in {listed(c.coordinate for c in broken)} "
            f"({listed(c.value for c in broken)}); mend the formulas, or empty the cells"
        )
    if is_text:
        _refuse_spoilt_ids(name, cells, where)
        return pa.array(map(_as_text, cells), pa.string())
    full = [cell for cell in cells if _is_full(cell) and cell.value not in _MISSING]
    kinds = {_kind(cell) for cell in full}
    if kinds == {"time"}:
        return _times([cell.value if _is_full(cell) else None for cell in cells])
    if len(kinds) == 1 and kinds <= {"number", "boolean"}:
        known = set(map(id, full))
        return pa.array([cell.value if id(cell) in known else None for cell in cells])
    return pa.array(map(_as_text, cells), pa.string())


def _kind(cell: Any) -> str:
    if isinstance(cell.value, bool):
        return "boolean"
    if isinstance(cell.value, int | float):
        exact = isinstance(cell.value, float) or abs(cell.value) < _EXACT
        return "number" if exact and _displayed(cell) is None else "text"
    return "time" if isinstance(cell.value, date) else "text"


def _times(values: Sequence[date | None]) -> pa.Array:
    dates = all(value is None or _is_day(value) for value in values)
    return pa.array(values, pa.timestamp("us")).cast(pa.date32() if dates else pa.timestamp("us"))


def _is_day(value: date) -> bool:
    return not isinstance(value, datetime) or value.time() == time()


def _as_text(cell: Any) -> str | None:
    """Write a cell as it is displayed, numbers in full."""
    value = cell.value
    if not _is_full(cell) or value == "#N/A":
        return None
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime) and _is_day(value):
        return str(value.date())
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return _displayed(cell) or str(value)


def _displayed(cell: Any) -> str | None:
    """Write a whole number that is under a format of zeros and literals; else None.

    The first zero takes the digits that are too many.
    """
    form = _CONDITION.sub("", cell.number_format.partition(";")[0])
    whole = isinstance(cell.value, int) and not isinstance(cell.value, bool) and cell.value >= 0
    if not whole or form == "0" or not _OF_ZEROS.fullmatch(form):
        return None
    parts = re.findall(rf"{_LITERAL}|0", form)
    places = parts.count("0")
    digits = str(cell.value).rjust(places, "0")
    extra = len(digits) - places
    shown = [digits[: extra + 1], *digits[extra + 1 :]]
    return "".join(
        shown.pop(0) if part == "0" else part.strip('"').removeprefix("\\") for part in parts
    )


def _refuse_spoilt_ids(name: str, cells: Sequence[Any], where: str) -> None:
    dates = [c.coordinate for c in cells if isinstance(c.value, date | time)]
    if dates:
        raise SourceError(
            f"{where}: ids in column {name!r} are dates in {listed(dates)}, which Excel makes of "
            "ids such as 3-4. Format the column as text and enter them again"
        )
    rounded = [c.coordinate for c in cells if _is_number(c) and abs(c.value) >= _EXACT]
    if rounded:
        raise SourceError(
            f"{where}: ids in column {name!r} are numbers of more than 15 digits in "
            f"{listed(rounded)}, which Excel rounds. Format the column as text and enter them again"
        )


def _is_number(cell: Any) -> bool:
    return isinstance(cell.value, int | float) and not isinstance(cell.value, bool)
