"""Import vectors slide by slide: only those that are new or have changed, in parts of many slides.

Parts are written first, and count for nothing. Then, while the warehouse is held, samples get the
tiles that are new, and the file of sources is replaced by one that lists the new parts: that is the
moment from which they are in force. Files that are not any more go last. A run that is killed at
any point leaves what was there in force; the next one finds the parts that are done, and ends with
the same files.
"""

from collections.abc import Sequence

from croma_sql.errors import SourceError, WarehouseError, listed
from croma_sql.importers.sources import SourceFile
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.imported import Imported, Slides
from croma_sql.warehouse.data.sources import Record, read_sources, write_sources
from croma_sql.warehouse.publish import locked
from croma_sql.warehouse.slides.arrivals import put_samples
from croma_sql.warehouse.slides.asked import Asked
from croma_sql.warehouse.slides.changes import Changes, compared
from croma_sql.warehouse.slides.fitting import check_fit, imported_by_slide, in_parts
from croma_sql.warehouse.slides.part_files import Rooms, Writing
from croma_sql.warehouse.slides.part_threads import OnProgress, write_all
from croma_sql.warehouse.slides.parts import in_order, planned
from croma_sql.warehouse.slides.taken import check_tiles


def import_slides(
    asked: Asked, sources: Sequence[SourceFile], on_progress: OnProgress | None = None
) -> Imported:
    """Import vectors from the files of slides.

    Parameters
    ----------
    asked
    sources : each slide once
    on_progress : gets how much has been read

    Raises
    ------
    SourceError
        Sources that cannot be read or do not fit together, or with what is there.
    WarehouseError
        The warehouse cannot be written, or another import was faster.
    """
    there = _there(asked)
    changes = compared(sources, there, _lost(asked, there), asked.embedding, asked.on_bad_vectors)
    _check(asked, changes, [*changes.kept, *(record for record, _ in changes.to_read)])
    plan = planned(changes, there, asked.prefix, asked.on_bad_vectors)
    how = Writing(asked.part, asked.prefix, asked.on_bad_vectors, Rooms())
    written = write_all(plan.parts, how, asked.threads, on_progress)
    records = in_order([*plan.kept, *written])
    if not any(record.stored > record.n_null for record in records):
        raise SourceError("not one of the vectors has a direction")
    with locked(asked.root):
        if _there(asked) != there or not all(map(how.is_written, plan.parts)):
            raise WarehouseError(
                f"dataset {asked.dataset!r} of encoder {asked.encoder!r} was changed by another "
                "import meanwhile; run this one again"
            )
        _check(asked, changes, records)
        notes = [*put_samples(asked, plan, changes), *_lacking(asked, records)]
        if records != there:
            path = layout.sources_path(asked.root, asked.encoder, asked.dataset)
            write_sources(path, records, asked.prefix)
        _clean(asked, records)
    return _told(changes, records, notes)


def _there(asked: Asked) -> list[Record]:
    return in_parts(read_sources(asked.root, asked.encoder, asked.dataset))


def _lost(asked: Asked, there: Sequence[Record]) -> list[str]:
    parts = dict.fromkeys(record.part for record in there if record.part is not None)
    return [part for part in parts if not asked.part(part).exists()]


def _check(asked: Asked, changes: Changes, records: Sequence[Record]) -> None:
    """Check sources against each other and what is there, before they are read, and after."""
    check_fit(asked.root, asked.encoder, asked.dataset, asked.prefix, records)
    tiles = {
        f"{asked.prefix}{record.slide_id}": record.n
        for record, _ in changes.to_read
        if record.level == "tile" and record.n
    }
    if tiles:
        check_tiles(asked.root, asked.dataset, tiles)


def _lacking(asked: Asked, records: Sequence[Record]) -> list[str]:
    """Say which slides have vectors under other encoders only."""
    elsewhere = imported_by_slide(asked.root, asked.dataset)
    here = {record.slide_id for record in records}
    known = {record.slide_id for some in elsewhere.values() for record in some}
    missing = sorted(str(slide) for slide in known - here - {None})
    if not missing:
        return []
    return [
        f"{len(missing)} of {len(known | here)} slides of dataset {asked.dataset!r} have vectors "
        f"under other encoders only: {listed(missing)}"
    ]


def _clean(asked: Asked, records: Sequence[Record]) -> None:
    """Remove what is not in force any more; the file of an import as a whole last."""
    parts = {record.part for record in records if record.part is not None}
    in_force = set(map(asked.part, parts))
    for path in layout.parts_there(asked.root, asked.encoder, asked.dataset):
        if path not in in_force:
            path.unlink()
    layout.embeddings_path(asked.root, asked.encoder, asked.dataset).unlink(missing_ok=True)


def _told(changes: Changes, records: Sequence[Record], notes: Sequence[str]) -> Imported:
    found = next(record for record in records if record.n)
    return Imported(
        n=sum(record.stored for record in records),
        d=found.d,
        dtype=found.dtype,
        bad=sum(record.n_dropped + record.n_null for record in records),
        slides=Slides(
            new=len(changes.new),
            changed=len(changes.changed),
            unchanged=len(changes.unchanged),
            gone=len(changes.gone),
            empty=sum(not record.n for record in records),
        ),
        notes=notes,
    )
