"""What vectors were imported from: which files, when written, and in which part they lie now."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from croma_sql.errors import WarehouseError
from croma_sql.importers.sources import SourceFile
from croma_sql.importers.tables import unreadable
from croma_sql.places import Version, is_local, version_of
from croma_sql.warehouse import layout
from croma_sql.warehouse.parquet import read_metadata, read_table, write_table

SCHEMA = pa.schema(
    {
        "slide_id": pa.string(),
        "level": pa.string(),
        "format": pa.string(),
        "embedding": pa.string(),
        "path": pa.string(),
        "size": pa.int64(),
        "mtime_ns": pa.int64(),
        "first_row": pa.int64(),
        "n": pa.int64(),
        "n_dropped": pa.int64(),
        "n_null": pa.int64(),
        "part": pa.string(),
        "part_row": pa.int64(),
        "d": pa.int32(),
        "dtype": pa.string(),
        "checksum": pa.int64(),
        "attributes": pa.string(),
    }
)


@dataclass(frozen=True, slots=True)
class Record:
    """Rows of a source file that lie in one part, or a source without rows.

    slide_id : NULL where samples bring their own ids
    level, format, d, dtype, size, mtime_ns : as in `croma_sql.importers.sources.SourceFile`
    embedding : dataset, column or key of the vectors in the file, where one was asked for
    path : absolute, or a URL
    first_row, n : which rows of the file these are
    n_dropped, n_null : vectors without direction among them, left out or kept as NULL
    part : NULL where there are no rows, or where the file was imported as a whole
    part_row : where they begin in the part
    checksum : CRC-32 of the vectors that are stored, row after row, without those that are NULL
    attributes : what the writer says of the file, as JSON
    """

    slide_id: str | None
    level: str
    format: str
    embedding: str | None
    path: str
    size: int
    mtime_ns: int
    first_row: int
    n: int
    n_dropped: int
    n_null: int
    part: str | None
    part_row: int
    d: int
    dtype: str
    checksum: int
    attributes: str

    def values(self) -> list[Any]:
        """All of them, in the order of the columns."""
        return [getattr(self, name) for name in SCHEMA.names]

    @property
    def key(self) -> str:
        """What tells the source: its slide, else where it lies."""
        return self.path if self.slide_id is None else self.slide_id

    @property
    def stored(self) -> int:
        """Rows of the part."""
        return self.n - self.n_dropped

    @property
    def is_whole(self) -> bool:
        """Tell a file that was imported as a whole, not in parts."""
        return self.part is None and self.n > 0


def record_of(file: SourceFile, embedding: str | None) -> Record:
    """Describe a source of which nothing has been read yet."""
    return Record(
        slide_id=file.slide_id,
        level=file.level,
        format=file.format,
        embedding=embedding,
        path=str(file.path.absolute() if is_local(file.path) else file.path),
        size=file.size,
        mtime_ns=file.mtime_ns,
        first_row=0,
        n=file.n,
        n_dropped=0,
        n_null=0,
        part=None,
        part_row=0,
        d=file.d,
        dtype=file.dtype,
        checksum=0,
        attributes=_as_json(file.attributes),
    )


def read_sources(root: Path, encoder: str, dataset: str) -> list[Record]:
    """Read the sources of an encoder's vectors of a dataset; none where they are not known."""
    path = layout.sources_path(root, encoder, dataset)
    return read_records(path) if path.exists() else []


def read_records(path: Path) -> list[Record]:
    """Read a file of sources.

    Raises
    ------
    WarehouseError
        Other columns, or empty where nothing may be.
    """
    try:
        return list(_records(path, version_of(path)))
    except OSError as error:
        raise unreadable(path, error) from error


@lru_cache(maxsize=64)
def _records(path: Path, version: Version) -> tuple[Record, ...]:
    table = read_table(path)
    if not table.schema.equals(SCHEMA):
        raise WarehouseError(
            f"{path} has other columns than sources have; delete it, and import again"
        )
    may_be_null = ("slide_id", "embedding", "part")
    for name in SCHEMA.names:
        if name not in may_be_null and table.column(name).null_count:
            raise WarehouseError(
                f"{path}: column {name!r} is NULL somewhere; delete it, and import again"
            )
    columns = (table.column(name).to_pylist() for name in SCHEMA.names)
    return tuple(
        Record(**dict(zip(SCHEMA.names, row, strict=True))) for row in zip(*columns, strict=True)
    )


def prefix_of(root: Path, encoder: str, dataset: str) -> str | None:
    """Read what the ids of an encoder's vectors begin with; None where no sources are known."""
    path = layout.sources_path(root, encoder, dataset)
    return str(read_metadata(path).get("prefix", "")) if path.exists() else None


def write_sources(path: Path, records: Sequence[Record], prefix: str) -> None:
    """Publish what vectors were imported from: from now on, the parts listed here are in force."""
    columns = zip(*(record.values() for record in records), strict=True)
    table = pa.table(dict(zip(SCHEMA.names, map(list, columns), strict=True)), SCHEMA)
    write_table(path, table, {"format": layout.FORMAT, "prefix": prefix})


def _as_json(attributes: Mapping[str, str | int | float]) -> str:
    known = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in attributes.items()
    }
    return json.dumps(known, ensure_ascii=False, sort_keys=True, default=str)
