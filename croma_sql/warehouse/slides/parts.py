"""Which rows of which sources lie together in a file: parts, planned before anything is read.

A part is named by a digest of what it will hold. So a run that follows one that was interrupted
plans the same parts, and finds by their names those that are done.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from croma_sql.importers.sources import SourceFile
from croma_sql.vectors import OnBadVectors
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.sources import Record
from croma_sql.warehouse.slides.changes import Changes

PART_BYTES = 1 << 27  # of vectors, at most
BESIDE = 128  # bytes that a row takes beside its vector, about: an id and coordinates


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a source that go into a part.

    record : what is known of them before they are read
    source : where they are read from; None: from the part that they are in
    """

    record: Record
    source: SourceFile | None


@dataclass(frozen=True, slots=True)
class Part:
    """Pieces that go into one file, in the order of slides."""

    name: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written, and what is not.

    parts : to be written, and listed
    kept : records that stay as they are, and those of sources without rows
    """

    parts: list[Part]
    kept: list[Record]


def planned(
    changes: Changes, there: Sequence[Record], prefix: str, on_bad_vectors: OnBadVectors
) -> Plan:
    """Plan parts for what is to be read, and for what lay together with it.

    A part of which a source has changed is written again without it; so are small parts, lest a
    folder that grows by a slide a day end in as many files.
    """
    dissolved = _dissolved(changes, there)
    to_copy = (Piece(record, None) for record in changes.kept if record.part in dissolved)
    pieces = [*_to_read(changes), *to_copy]
    pieces.sort(key=lambda piece: _place(piece.record))
    parts = [Part(_digest(some, prefix, on_bad_vectors), tuple(some)) for some in _packed(pieces)]
    empty = [record for record, _ in changes.to_read if not record.n]
    kept = [record for record in changes.kept if record.part not in dissolved]
    return Plan(parts, [*kept, *empty])


def in_order(records: Iterable[Record]) -> list[Record]:
    """Sort records by slide, as rows lie in parts."""
    return sorted(records, key=_place)


def row_bytes(record: Record) -> int:
    """How much a row takes, about."""
    return record.d * np.dtype(record.dtype).itemsize + BESIDE


def _place(record: Record) -> tuple[str, str, int]:
    return record.slide_id or "", record.path, record.first_row


def _dissolved(changes: Changes, there: Sequence[Record]) -> Collection[str | None]:
    if not any(record.n for record, _ in changes.to_read):
        small: set[str | None] = set()
    else:
        sizes: dict[str | None, int] = defaultdict(int)
        for record in there:
            sizes[record.part] += record.n * row_bytes(record)
        small = {part for part, size in sizes.items() if size < PART_BYTES // 2}
    return (small | {record.part for record in changes.replaced}) - {None}


def _to_read(changes: Changes) -> Iterator[Piece]:
    """Cut sources that are larger than a part into pieces that are not."""
    for record, source in changes.to_read:
        most = max(1, PART_BYTES // row_bytes(record))
        for first in range(0, record.n, most):
            n = min(most, record.n - first)
            yield Piece(replace(record, first_row=first, n=n), source)


def _packed(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    some: list[Piece] = []
    size = 0
    for piece in pieces:
        more = piece.record.n * row_bytes(piece.record)
        if some and size + more > PART_BYTES:
            yield some
            some, size = [], 0
        some.append(piece)
        size += more
    if some:
        yield some


def _digest(pieces: Sequence[Piece], prefix: str, on_bad_vectors: OnBadVectors) -> str:
    holds = [piece.record.values() for piece in pieces]
    text = json.dumps([layout.FORMAT, prefix, on_bad_vectors, holds], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
