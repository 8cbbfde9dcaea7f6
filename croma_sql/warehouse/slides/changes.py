"""What an import finds, against what was imported before."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from croma_sql.errors import CromaSqlError, SourceError, WarehouseError, listed
from croma_sql.importers.joining import COORDINATES
from croma_sql.importers.sources import SourceFile
from croma_sql.places import place
from croma_sql.vectors import OnBadVectors
from croma_sql.warehouse.data.sources import Record, record_of


@dataclass(slots=True)
class Changes:
    """Sources by what has become of them.

    new, changed : to be read, with what will be recorded of them
    unchanged, gone : sources that stay as they are; those that are no longer there stay, too
    kept : records of these two
    replaced : records of what has changed
    """

    new: list[tuple[Record, SourceFile]] = field(default_factory=list)
    changed: list[tuple[Record, SourceFile]] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    kept: list[Record] = field(default_factory=list)
    replaced: list[Record] = field(default_factory=list)

    @property
    def to_read(self) -> list[tuple[Record, SourceFile]]:
        """Sources that are new or changed."""
        return [*self.new, *self.changed]


def compared(
    found: Iterable[SourceFile],
    there: Sequence[Record],
    lost: Iterable[str],
    embedding: str | None,
    on_bad_vectors: OnBadVectors,
) -> Changes:
    """Compare sources with those recorded.

    Parameters
    ----------
    lost : parts that are recorded but not there any more; their sources are to be read again

    Raises
    ------
    SourceError
        Two files of one slide, here or of which the first was imported and is still there; a file
        that was imported as another slide.
    WarehouseError
        A part is lost, and a source that was in it is not there either.
    """
    known: dict[str, list[Record]] = defaultdict(list)
    for record in there:
        known[record.key].append(record)
    paths = {record.path: record.key for record in there}
    lost = set(lost)
    changes = Changes()
    seen: dict[str, str] = {}
    for file in found:
        now = record_of(file, embedding)
        if seen.setdefault(now.key, now.path) != now.path:
            raise SourceError(
                f"slide {now.key!r} is in {seen[now.key]} and in {now.path}; tell slides of one "
                "name apart by their folders: --slide-id path"
            )
        before = known.pop(now.key, None) or known.pop(_moved_from(now, known), None)
        if before is None:
            _refuse_another_name(now, paths)
            changes.new.append((now, file))
        elif lost.isdisjoint(record.part for record in before) and _is_same(
            now, before, on_bad_vectors
        ):
            changes.unchanged.append(now.key)
            where = _where(now.path, before[0].path)
            changes.kept += [replace(record, path=where) for record in before]
        else:
            _refuse_another(now, before[0])
            changes.changed.append((now, file))
            changes.replaced += before
    for key, before in known.items():
        changes.gone.append(key)
        changes.kept += before
    _refuse_lost([record for record in changes.kept if record.part in lost])
    return changes


def _is_same(now: Record, before: Sequence[Record], on_bad_vectors: OnBadVectors) -> bool:
    """Tell whether reading a source again would give what is there."""
    now = _with_places(now, before[0])
    said = _what_is_said(now)
    if sum(record.n for record in before) != now.n:
        return False
    dropped, null = (any(getattr(record, n) for record in before) for n in ("n_dropped", "n_null"))
    if (dropped and on_bad_vectors != "drop") or (null and on_bad_vectors != "null"):
        return False
    return all(_what_is_said(record) == said for record in before)


def _with_places(now: Record, before: Record) -> Record:
    """Let tiles that come without coordinates this time have those they were imported with."""
    here, there = json.loads(now.attributes), json.loads(before.attributes)
    if COORDINATES in here or COORDINATES not in there or not here.items() <= there.items():
        return now
    return replace(now, attributes=before.attributes)


def _what_is_said(record: Record) -> tuple[object, ...]:
    return (
        record.level,
        record.format,
        record.embedding,
        record.size,
        record.mtime_ns,
        record.d,
        record.dtype,
        record.attributes,
    )


def _moved_from(now: Record, known: Mapping[str, object]) -> str:
    """Find where a file of samples, which has no slide's name, lay before; empty: nowhere.

    It is the one of that file name which is not where it was.
    """
    if now.slide_id is not None:
        return ""
    name = place(now.path).name
    gone = [key for key in known if place(key).name == name and not _exists(key)]
    return gone[0] if len(gone) == 1 else ""


def _where(now: str, before: str) -> str:
    """Say where an unchanged source lies: of copies, the one that was imported."""
    return before if now == before or _exists(before) else now


def _refuse_another(now: Record, before: Record) -> None:
    differ = (now.size, now.mtime_ns) != (before.size, before.mtime_ns)
    if now.path != before.path and differ and _exists(before.path):
        raise SourceError(
            f"slide {now.slide_id!r} was imported from {before.path}, which is still there; "
            f"{now.path} is another file. If they are two slides, import this one into another "
            "dataset, with a --prefix; if they are one, move the other file away, and import again"
        )


def _refuse_another_name(now: Record, paths: Mapping[str, str]) -> None:
    if now.path in paths:
        raise SourceError(
            f"{now.path} was imported as slide {paths[now.path]!r}, and would be {now.key!r} now, "
            "so that its vectors would count twice. Give the same folder and the same --slide-id "
            "as then, or import into another dataset"
        )


def _exists(path: str) -> bool:
    try:
        return place(path).exists()
    except (OSError, CromaSqlError):  # nobody can tell
        return True


def _refuse_lost(lost: Sequence[Record]) -> None:
    if lost:
        files = listed(dict.fromkeys(record.path for record in lost))
        raise WarehouseError(
            f"vectors of {len({record.key for record in lost})} sources are lost, as their files "
            f"are gone from the warehouse: {files}. Import these sources again"
        )
