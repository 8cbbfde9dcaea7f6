"""Text files of cells: which encoding and separator they have, and where their names stand."""

import csv
import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TextIO

from croma_sql.errors import SourceError, listed

SEPARATORS = ",;\t"

_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # a mark at the start; without it, half of the bytes are 0
_LONGEST_HEADER = 100  # lines


@dataclass(frozen=True, slots=True)
class Delimited:
    """How a text file is laid out.

    separator : of cells
    skipped : lines before the names
    names : of the columns
    first : cells of the first row, empty where there is none
    """

    separator: str
    skipped: int
    names: tuple[str, ...]
    first: tuple[str, ...]


def read_layout(path: Path) -> Delimited:
    """Find out how a text file is laid out.

    The separator is the one of comma, semicolon and tab that stands most often between the names,
    or what a first line ``sep=;`` of Excel says.

    Raises
    ------
    SourceError
        Not UTF-8, lines that end as on old Macs, or a name twice.
    """
    with path.open("rb") as file:
        start = file.read(256)
        if start.startswith(_UTF16) or start.count(0) > len(start) // 4:
            raise SourceError(
                f"{path} is not UTF-8 but UTF-16, as Excel writes 'Unicode Text'. Save it as "
                "'CSV UTF-8', or as .xlsx"
            )
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return _layout(lines, path)


def _layout(lines: TextIO, path: Path) -> Delimited:
    skipped, separator = 0, ""
    for line in lines:
        told = re.fullmatch(r"sep=(.)\s*", line, re.IGNORECASE)
        if line.strip() and not told:
            break
        separator = told[1] if told else separator
        skipped += 1
    else:
        return Delimited(",", 0, (), ())
    if line.endswith("\r"):
        raise SourceError(
            f"{path} ends its lines with CR alone, as old Macs do. Save it as 'CSV UTF-8'"
        )
    header = [line]
    while "".join(header).count('"') % 2 and len(header) < _LONGEST_HEADER:
        header += [next(lines, '"')]  # a name of several lines
    bare = re.sub('"[^"]*"', "", "".join(header))
    separator = separator or max(SEPARATORS, key=bare.count)  # of equals the first: a comma
    rows = csv.reader(chain(header, lines), delimiter=separator)
    names = next(rows)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SourceError(f"{path} has more than one column {listed(twice)}; rename or remove one")
    first = next((row for row in rows if row), [])
    return Delimited(separator, skipped, tuple(names), tuple(first))
