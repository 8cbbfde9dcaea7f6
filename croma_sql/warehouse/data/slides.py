"""Import vectors slide by slide: only those that are new or have changed, in parts of many slides.

Parts are written first, and count for nothing. Then, while the warehouse is held, samples get the
tiles that are new, and the file of sources is replaced by one that lists the new parts: that is the
moment from which they are in force. Files that are not any more go last. A run that is killed at
any point leaves what was there in force; the next one finds the parts that are done, and ends with
the same files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from croma_sql.errors import CromaSqlError, SourceError, WarehouseError, listed
from croma_sql.importers.sources import SourceFile
from croma_sql.vectors import OnBadVectors
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.attributes import attach
from croma_sql.warehouse.data.changes import Changes, compared
from croma_sql.warehouse.data.fitting import check_fit, imported_by_slide, in_parts
from croma_sql.warehouse.data.imported import Imported, Slides
from croma_sql.warehouse.data.merging import Arrival, merged
from croma_sql.warehouse.data.part_files import Rooms, Writing
from croma_sql.warehouse.data.part_threads import OnProgress, write_all
from croma_sql.warehouse.data.parts import Plan, in_order, planned
from croma_sql.warehouse.data.schemas import schema_of
from croma_sql.warehouse.data.sources import Record, read_sources, write_sources
from croma_sql.warehouse.parquet import write_batches
from croma_sql.warehouse.publish import locked


@dataclass(frozen=True, slots=True)
class Asked:
    """What is imported, and how.

    root : a warehouse
    prefix : what every sample_id begins with
    embedding : dataset, column or key of the vectors; None: the writer's own
    cohort : tables of attributes; on : the column that says what their rows are of
    threads : how many parts are written at once
    """

    root: Path
    encoder: str
    dataset: str
    prefix: str
    embedding: str | None
    on_bad_vectors: OnBadVectors
    cohort: Sequence[Any]
    on: str | None
    threads: int


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
    fits = partial(check_fit, asked.root, asked.encoder, asked.dataset, asked.prefix)
    fits([*changes.kept, *(record for record, _ in changes.to_read)])
    plan = planned(changes, there, asked.prefix, asked.on_bad_vectors)
    how = Writing(partial(_part, asked), asked.prefix, asked.on_bad_vectors, Rooms())
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
        fits(records)
        notes = [*_put_samples(asked, plan, changes), *_lacking(asked, records)]
        if records != there:
            path = layout.sources_path(asked.root, asked.encoder, asked.dataset)
            write_sources(path, records, asked.prefix)
        _clean(asked, records)
    return _told(changes, records, notes)


def _there(asked: Asked) -> list[Record]:
    return in_parts(read_sources(asked.root, asked.encoder, asked.dataset))


def _part(asked: Asked, name: str) -> Path:
    return layout.part_path(asked.root, asked.encoder, asked.dataset, name)


def _lost(asked: Asked, there: Sequence[Record]) -> list[str]:
    parts = dict.fromkeys(record.part for record in there if record.part is not None)
    return [part for part in parts if not _part(asked, part).exists()]


def _put_samples(asked: Asked, plan: Plan, changes: Changes) -> list[str]:
    """Put samples that arrive among those of the dataset, and attributes with them."""
    root, dataset = asked.root, asked.dataset
    target = layout.samples_path(root, dataset)
    joins = partial(attach, root, dataset=dataset, on=asked.on)
    notes: list[str] = []
    with TemporaryDirectory(prefix="croma_sql_") as aside:
        steps = [*(Path(aside) / f"{i}.parquet" for i in range(len(asked.cohort))), target]
        if plan.parts or changes.replaced:
            arrival = _arrival(asked, plan, changes)
            notes = _without_attributes(arrival) if changes.new and not asked.cohort else []
            _merge(asked, plan, arrival, steps[0])
        else:
            steps[0] = target
        return notes + [
            joins(table, stored=before, target=after).report
            for table, (before, after) in zip(asked.cohort, pairwise(steps), strict=True)
        ]


def _merge(asked: Asked, plan: Plan, arrival: Arrival, target: Path) -> None:
    """Write samples put together; parts whose samples are refused serve no later run: they go."""
    try:
        with merged(arrival) as rows:
            write_batches(target, rows, {"format": layout.FORMAT})
    except CromaSqlError as error:
        if error.__cause__ is None:  # else what failed is the machine
            for part in plan.parts:
                path = _part(asked, part.name)
                layout.tiles_path(path).unlink()
                path.unlink()
        raise


def _arrival(asked: Asked, plan: Plan, changes: Changes) -> Arrival:
    files = layout.samples_files(asked.root)
    elsewhere = imported_by_slide(asked.root, asked.dataset)
    elsewhere.pop(asked.encoder, None)
    shared = {record.key for records in elsewhere.values() for record in records}
    alone = [record for record in changes.replaced if record.key not in shared]
    first = next(iter([*changes.replaced, *(record for record, _ in changes.to_read)]))
    return Arrival(
        dataset=asked.dataset,
        level=first.level,
        arriving=[layout.tiles_path(_part(asked, part.name)) for part in plan.parts],
        stored=files.pop(asked.dataset, None),
        replaced=_in_parts(asked, alone),
        kept=_in_parts(asked, changes.kept),
        held=[
            file.path
            for file in layout.embeddings_files(asked.root)
            if alone and file.dataset == asked.dataset and file.encoder != asked.encoder
        ],
        others=files,
    )


def _in_parts(asked: Asked, records: Sequence[Record]) -> list[tuple[Path, Record]]:
    there = ((_part(asked, record.part), record) for record in records if record.part)
    return [(path, record) for path, record in there if path.exists()]


def _without_attributes(arrival: Arrival) -> list[str]:
    """Say what the samples have that those which arrive do not."""
    arriving = {name for path in arrival.arriving for name in schema_of(path).names}
    stored = [] if arrival.stored is None else schema_of(arrival.stored).names
    names = [name for name in stored if name not in arriving]
    if not names or not arriving:
        return []
    return [
        f"samples that are new have no {listed(names)} yet; join attributes with --samples, or "
        "later: croma-sql import samples FILE --on COLUMN"
    ]


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
    in_force = {_part(asked, record.part) for record in records if record.part is not None}
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
