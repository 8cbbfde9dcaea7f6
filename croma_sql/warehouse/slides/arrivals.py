"""Samples of what is imported by slide, on their way into the dataset."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from croma_sql.errors import CromaSqlError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.attributes import attach
from croma_sql.warehouse.data.samples import read_ids
from croma_sql.warehouse.data.schemas import IDS, rows_of, schema_of
from croma_sql.warehouse.data.sources import Record
from croma_sql.warehouse.parquet import read_rows, write_batches
from croma_sql.warehouse.slides.asked import Asked
from croma_sql.warehouse.slides.changes import Changes
from croma_sql.warehouse.slides.fitting import imported_by_slide
from croma_sql.warehouse.slides.merging import Arrival, merged
from croma_sql.warehouse.slides.parts import Plan
from croma_sql.warehouse.slides.taken import check_samples


def put_samples(asked: Asked, plan: Plan, changes: Changes) -> list[str]:
    """Put samples that arrive among those of the dataset, and attributes with them.

    Returns
    -------
    list of str
        What is to be said of attributes.

    Raises
    ------
    SourceError, WarehouseError
        Samples that are somewhere else already, or do not go together with those there; attributes
        that match nothing.
    """
    root, dataset = asked.root, asked.dataset
    target = layout.samples_path(root, dataset)
    joins = partial(attach, root, dataset=dataset, on=asked.on)
    notes: list[str] = []
    with TemporaryDirectory(prefix="croma_sql_") as aside:
        steps = [*(Path(aside) / f"{i}.parquet" for i in range(len(asked.cohort))), target]
        if plan.parts or changes.replaced:
            notes = _merge(asked, plan, changes, steps[0])
        else:
            steps[0] = target
        return notes + [
            joins(table, stored=before, target=after).report
            for table, (before, after) in zip(asked.cohort, pairwise(steps), strict=True)
        ]


def _merge(asked: Asked, plan: Plan, changes: Changes, target: Path) -> list[str]:
    """Write samples put together; parts whose samples are refused serve no later run: they go."""
    arrival = _arrival(asked, plan, changes)
    try:
        if arrival.level != "tile":
            ids = rows_of(arrival.arriving, IDS).read_all().column(0).combine_chunks()
            check_samples(asked.root, asked.dataset, ids, _ids_of(asked, changes.kept))
        write_batches(target, merged(arrival), {"format": layout.FORMAT})
    except CromaSqlError as error:
        if error.__cause__ is None:  # else what failed is the machine
            for path in map(asked.part, (part.name for part in plan.parts)):
                layout.tiles_path(path).unlink()
                path.unlink()
        raise
    return _without_attributes(arrival) if changes.new and not asked.cohort else []


def _arrival(asked: Asked, plan: Plan, changes: Changes) -> Arrival:
    elsewhere = imported_by_slide(asked.root, asked.dataset)
    elsewhere.pop(asked.encoder, None)
    shared = {record.key for records in elsewhere.values() for record in records}
    alone = [record for record in changes.replaced if record.key not in shared]
    first = next(iter([*changes.replaced, *(record for record, _ in changes.to_read)]))
    slides = pa.array(dict.fromkeys(record.slide_id for record in alone), pa.string())
    return Arrival(
        dataset=asked.dataset,
        level=first.level,
        arriving=[layout.tiles_path(asked.part(part.name)) for part in plan.parts],
        stored=layout.samples_files(asked.root).get(asked.dataset),
        replaced=_ids_of(asked, alone) if first.level == "sample" else slides,
        held=partial(_held, asked),
    )


def _ids_of(asked: Asked, records: Sequence[Record]) -> pa.Array:
    """Read the ids of samples that have a vector, out of the parts that are there."""
    found = [pa.array([], pa.string())]
    for record in records:
        path = asked.part(str(record.part))
        if record.level == "sample" and record.part is not None and path.exists():
            ids = read_rows(path, record.part_row, record.stored, IDS.names).column(0)
            found.append(ids.cast(pa.string()).combine_chunks())
    return pa.concat_arrays(found)


def _held(asked: Asked) -> pa.Array:
    """Read the ids of all vectors that other encoders have of the dataset."""
    files = layout.embeddings_files(asked.root)
    others = [file for file in files if file.dataset == asked.dataset]
    found = [read_ids(file.path) for file in others if file.encoder != asked.encoder]
    return pa.concat_arrays([pa.array([], pa.string()), *found])


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
