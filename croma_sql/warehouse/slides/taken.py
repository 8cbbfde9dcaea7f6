"""Whether ids of samples that arrive are somewhere else already."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import SourceError, WarehouseError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.schemas import BATCH_ROWS
from croma_sql.warehouse.data.sources import prefix_of
from croma_sql.warehouse.parquet import read_batches
from croma_sql.warehouse.slides.fitting import imported_by_slide

_TILE = r"^(?P<slide>.*):(?P<tile>[0-9]+)$"


def check_tiles(root: Path, dataset: str, slides: Mapping[str, int]) -> None:
    """Refuse slides of which tiles are in other datasets, under the same ids.

    Parameters
    ----------
    slides : numbers of tiles that arrive, by what their ids begin with before the colon

    Raises
    ------
    WarehouseError
    """
    for other, path in layout.samples_files(root).items():
        if other != dataset:
            taken = sorted(set(_taken_slides(root, other, path, slides)))
            if taken:
                raise WarehouseError(
                    f"tiles of {len(taken)} slide(s) are already in dataset {other!r}: "
                    f"{listed(taken)}. Ids are unique in a warehouse: prefix them with --prefix, "
                    f"or import into dataset {other!r}"
                )


def check_samples(root: Path, dataset: str, ids: pa.Array, kept: pa.Array) -> None:
    """Refuse ids that arrive twice, that kept sources of the encoder have, or other datasets.

    Raises
    ------
    SourceError, WarehouseError
    """
    counts = pc.value_counts(ids)
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if len(twice):
        raise SourceError(
            f"{len(twice)} sample_id(s) are in more than one row of the sources: "
            f"{_listed(twice)}. Give every sample its own id"
        )
    again = ids.filter(pc.is_in(ids, kept))
    if len(again):
        raise SourceError(
            f"{len(again)} sample_id(s) have vectors of this encoder from other files, which are "
            f"kept: {_listed(again)}. Import these files as another dataset, with --prefix, or "
            "give every sample its own id"
        )
    for other, path in layout.samples_files(root).items():
        if other != dataset:
            found = [some.filter(pc.is_in(some, ids)) for some in _ids(path)]
            taken = pa.concat_arrays([pa.array([], pa.string()), *found])
            if len(taken):
                raise WarehouseError(
                    f"{len(taken)} sample_id(s) are already in dataset {other!r}: "
                    f"{_listed(taken)}. Ids are unique in a warehouse: prefix them with --prefix, "
                    f"or import into dataset {other!r}"
                )


def _taken_slides(root: Path, dataset: str, path: Path, slides: Mapping[str, int]) -> Iterator[str]:
    known = imported_by_slide(root, dataset)
    if any(record.level == "tile" for records in known.values() for record in records):
        for encoder, records in known.items():
            prefix = prefix_of(root, encoder, dataset)
            yield from (
                f"{prefix}{record.slide_id}"
                for record in records
                if record.n and f"{prefix}{record.slide_id}" in slides
            )
        return
    names = pa.array(slides, pa.string())
    for ids in _ids(path):
        told = pc.extract_regex(ids, _TILE)
        some = told.filter(pc.fill_null(pc.is_in(pc.struct_field(told, "slide"), names), False))
        for one in some.to_pylist():
            if one["tile"] == str(int(one["tile"])) and int(one["tile"]) < slides[one["slide"]]:
                yield one["slide"]


def _ids(path: Path) -> Iterator[pa.Array]:
    for batch in read_batches(path, BATCH_ROWS, ["sample_id"]):
        yield batch.column(0).cast(pa.string())


def _listed(ids: pa.Array) -> str:
    return listed(ids.slice(0, 4).to_pylist())
