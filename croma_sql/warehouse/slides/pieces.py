"""Rows on their way into a part: read from their source, or out of the part that has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CohortError, CromaSqlError, SourceError, WarehouseError, listed
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.sources import Rows, SourceFile
from croma_sql.importers.tables import unreadable
from croma_sql.vectors import Matrix, OnBadVectors, as_matrix, rows_with_direction
from croma_sql.warehouse.data.embedding_files import checksum
from croma_sql.warehouse.data.samples import check_ids, check_names
from croma_sql.warehouse.data.sources import Record
from croma_sql.warehouse.parquet import read_metadata, read_rows

PLACES = pa.schema(
    {
        "sample_id": pa.string(),
        "slide_id": pa.string(),
        "tile": pa.int32(),
        "x": pa.float64(),
        "y": pa.float64(),
        "coord_unit": pa.string(),
        "tile_size": pa.float64(),
    }
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a source, as they will be stored.

    ids, vectors, null : of the rows that are stored; NULL vectors hold anything
    dropped : ids of the rows that are not
    samples : what is known of all of them; None where the warehouse has it already
    """

    ids: pa.Array
    vectors: Matrix
    null: NDArray[np.bool_]
    dropped: list[str]
    samples: pa.Table | None


def read_source(
    record: Record, source: SourceFile, prefix: str, on_bad_vectors: OnBadVectors
) -> Chunk:
    """Read rows of a source.

    Raises
    ------
    SourceError
        It cannot be read, is not what it said it is, has changed since it was recognised, or holds
        vectors without direction.
    """
    rows = _read(record, source)
    samples = _samples(record, rows.samples, prefix)
    ids, vectors = samples.column("sample_id").combine_chunks(), rows.vectors
    good = rows_with_direction(vectors)
    if good.all():
        return Chunk(ids, vectors, ~good, [], samples)
    if on_bad_vectors == "error":
        _refuse_bad(record, good)
    if on_bad_vectors == "null":
        return Chunk(ids, vectors, ~good, [], samples)
    kept = pa.array(good)
    dropped = ids.filter(pc.invert(kept)).to_pylist()
    return Chunk(ids.filter(kept), vectors[good], ~good[good], dropped, samples)


def read_kept(record: Record, part: Path) -> Chunk:
    """Read rows out of the part that they are in.

    Raises
    ------
    SourceError, WarehouseError
        The part cannot be read, or does not hold what was written into it.
    """
    table = read_rows(part, record.part_row, record.stored, ["sample_id", "embedding"])
    column = table.column("embedding").combine_chunks()
    null, vectors = np.asarray(pc.is_null(column)), as_matrix(column)
    dropped = _dropped(record, part)
    if (len(dropped), checksum(vectors, null)) != (record.n_dropped, record.checksum):
        raise WarehouseError(
            f"{part} is damaged: the vectors of {record.key!r} are not those that were imported. "
            "Delete it, and import again"
        )
    ids = table.column("sample_id").cast(pa.string()).combine_chunks()
    return Chunk(ids, vectors, null, dropped, None)


def ids_of(record: Record, prefix: str) -> pa.Array:
    """Name tiles by their slide and their row, or a slide by itself."""
    if record.level == "slide":
        return pa.array([f"{prefix}{record.slide_id}"])
    return _prefixed(f"{prefix}{record.slide_id}:", _tiles(record).cast(pa.string()))


def described(record: Record, dropped: list[str]) -> dict[str, Any]:
    """Tell, in the metadata of a part, what `read_kept` and a later run need to know of a piece."""
    return {
        "key": record.key,
        "first_row": record.first_row,
        "n": record.n,
        "part_row": record.part_row,
        "n_null": record.n_null,
        "checksum": record.checksum,
        "dropped": dropped,
    }


def _dropped(record: Record, part: Path) -> list[str]:
    for told in read_metadata(part).get("pieces", []):
        if described(record, told.get("dropped")) | {"key": told.get("key")} == told:
            return list(told["dropped"])
    raise WarehouseError(
        f"{part} does not say any more what is in it: it is damaged, or another tool has written "
        "it. Delete it, and import again"
    )


def _read(record: Record, source: SourceFile) -> Rows:
    path, first, n = source.path, record.first_row, record.n
    try:
        before = size_and_time(path)
        rows = source.read(first, first + n)
        changed = size_and_time(path) != before or before[1] > source.mtime_ns
    except CromaSqlError:
        raise
    except (OSError, ValueError, LookupError, RuntimeError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
    if changed:
        raise SourceError(f"{path} has changed while it was read. Import again when it is written")
    found = (*rows.vectors.shape, str(rows.vectors.dtype))
    if found != (n, record.d, record.dtype):
        raise SourceError(
            f"{path} gave {found[0]} vectors of {found[-2]} {found[-1]} values where "
            f"{n} of {record.d} {record.dtype} values were expected; it may be damaged"
        )
    return rows


def _refuse_bad(record: Record, good: NDArray[np.bool_]) -> NoReturn:
    rows = (np.flatnonzero(~good) + record.first_row).tolist()
    of = "" if record.slide_id is None else f" of slide {record.slide_id!r}"
    raise SourceError(
        f"{record.path}: {len(rows)} of {len(good)} vectors{of} hold NaN or inf, or are all zero, "
        f"first in row(s) {listed(rows)}. Leave their samples out for this encoder with "
        "--on-bad-vectors drop, or keep them with a NULL margin: --on-bad-vectors null"
    )


def _samples(record: Record, found: pa.Table, prefix: str) -> pa.Table:
    """Give ids to rows, and columns the types that they have in every dataset."""
    try:
        known = {name: as_column(found.column(name), name) for name in found.column_names}
        if record.level == "sample":
            own = as_text(known.pop("sample_id"), "sample_id")
            check_ids(own, record.path, "sample_id")
            columns = {"sample_id": _prefixed(prefix, own)} | known
        elif record.level == "slide":
            ours = {"sample_id": ids_of(record, prefix), "slide_id": pa.array([record.slide_id])}
            columns = ours | {name: known[name] for name in known if name not in ours}
        else:
            columns = _of_tiles(record, known, prefix)
        check_names(list(columns), record.path)
        return pa.table(columns)
    except CohortError as error:
        raise SourceError(f"{record.path}: {error}") from error
    except (KeyError, pa.ArrowException) as error:
        raise SourceError(
            f"{record.path}: what it says of its rows cannot be kept: {error}"
        ) from error


def _of_tiles(record: Record, known: Mapping[str, pa.Array], prefix: str) -> dict[str, pa.Array]:
    ours = {
        "sample_id": ids_of(record, prefix),
        "slide_id": pa.repeat(record.slide_id, record.n),
        "tile": _tiles(record),
    }
    places = {
        field.name: known[field.name].cast(field.type)
        if field.name in known
        else pa.nulls(record.n, field.type)
        for field in PLACES
        if field.name not in ours
    }
    more = {name: column for name, column in known.items() if name not in PLACES.names}
    return ours | places | more


def _tiles(record: Record) -> pa.Array:
    return pa.array(np.arange(record.first_row, record.first_row + record.n, dtype=np.int32))


def _prefixed(prefix: str, ids: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(prefix, ids, "") if prefix else ids
