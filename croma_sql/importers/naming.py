"""Which encoder a file of vectors is of: by a part of its path, or by what its writer says."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from croma_sql.errors import SourceError
from croma_sql.importers.sources import SourceFile
from croma_sql.importers.together import encoder_of

HOLE = "{encoder}"
HOW = (
    "Say path:NAME for folders called NAME=<encoder>, path:PATTERN such as path:features_{encoder} "
    "or path:{encoder}/*/features.npy, attribute for what the writer says, or attribute:NAME; "
    "or array:{encoder}/features for arrays of HDF5 files"
)


@dataclass(frozen=True, slots=True)
class Naming:
    """How encoders are named.

    said : as the user says it
    name, of_path : of a source, and of a file that cannot be read; None where there is none
    """

    said: str
    name: Callable[[SourceFile], str | None]
    of_path: Callable[[Path], str | None] = lambda path: None


def naming(encoder_from: str) -> Naming:
    """Read how encoders are named.

    Raises
    ------
    SourceError

    Examples
    --------
    >>> naming("path:encoder").said
    'path:encoder'
    """
    kind, colon, rest = encoder_from.partition(":")
    if kind == "attribute" and not colon:
        return Naming(encoder_from, encoder_of)
    if kind == "attribute" and rest:
        return Naming(encoder_from, lambda source: _said(source, rest))
    if kind == "path" and rest:
        pattern = rest if HOLE in rest else f"{rest}={HOLE}"
        if pattern.count(HOLE) == 1:
            parts = [_regex(part) for part in pattern.strip("/").split("/")]
            return Naming(
                encoder_from,
                lambda source: _in_path(source.path, parts),
                lambda path: _in_path(path, parts),
            )
    raise SourceError(f"encoders cannot be named from {encoder_from!r}. {HOW}")


def _said(source: SourceFile, name: str) -> str | None:
    value = source.attributes.get(name)
    return None if value is None else str(value)


def _regex(part: str) -> re.Pattern[str]:
    """Write a part of a pattern as a regular expression; ``*`` is anything."""
    pieces = re.split(r"(\{encoder\}|\*)", part)
    known = {HOLE: "(?P<encoder>.+)", "*": ".*"}
    return re.compile("".join(known.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)


def _in_path(path: Path, parts: list[re.Pattern[str]]) -> str | None:
    """Match a run of the parts of a path, the nearest to the file first."""
    there = path.parts
    for start in range(len(there) - len(parts), -1, -1):
        found = [part.fullmatch(name) for part, name in zip(parts, there[start:], strict=False)]
        if all(found):
            return next(match["encoder"] for match in found if match and match.re.groups)
    return None
