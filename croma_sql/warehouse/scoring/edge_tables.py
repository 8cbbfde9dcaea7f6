"""Writing scores files.

Row groups do not depend on how the search was cut, so neither do the bytes of a file.
"""

from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from croma_sql.edges import nearest_lists, typed_lists
from croma_sql.udfs.scope import Wanted
from croma_sql.warehouse.parquet import WRITING, metadata
from croma_sql.warehouse.scoring.memory import GROUP_ROWS
from croma_sql.warehouse.scoring.parts import Part
from croma_sql.warehouse.scoring.schemas import SCHEMAS, Table


def typed_table(part: Part, wanted: Wanted) -> pa.Table:
    """Typed neighbours of some rows."""
    lists = typed_lists(part.found, part.ids)
    columns = _row_columns(part, wanted.m)
    columns |= dict(zip(lists.type.names, lists.flatten(), strict=True))
    for name in ("first_so_rank", "first_os_rank"):
        ranks = np.concatenate([getattr(edges, name) for edges in part.found])
        columns[name] = pa.array(ranks, mask=ranks == 0)
    return pa.table(columns, SCHEMAS["typed_neighbours"])


def nearest_table(part: Part, wanted: Wanted) -> pa.Table:
    """Nearest neighbours of some rows, of any type."""
    lists = nearest_lists(part.found, part.scopes, part.ids, part.anchors)
    columns = _row_columns(part, wanted.k)
    for name in ("type", "distance", "label_hit", "confounder_hit"):
        columns[name] = lists.field(name)
    columns["neighbour_id"] = lists.field("id")
    return pa.table(columns, SCHEMAS["neighbours"])


def _row_columns(part: Part, depth: int) -> dict[str, Any]:
    columns: dict[str, Any] = {name: part.rows.column(name) for name in part.rows.column_names}
    columns["usable"] = pa.array(np.concatenate([edges.usable for edges in part.found]))
    columns["depth"] = pa.array(np.full(len(part.rows), depth, np.int32))
    return columns


class GroupWriter:
    """A Parquet file in groups of `GROUP_ROWS` rows, however they come."""

    def __init__(self, file: BinaryIO, table: Table) -> None:
        self._writer = pq.ParquetWriter(file, SCHEMAS[table], **WRITING)
        self._waiting = SCHEMAS[table].empty_table()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()  # before its file is, also where an exception leaves it unfinished

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        self._waiting = pa.concat_tables([self._waiting, table])
        while len(self._waiting) >= GROUP_ROWS:
            self._write_group(self._waiting.slice(0, GROUP_ROWS))
            self._waiting = self._waiting.slice(GROUP_ROWS)

    def finish(self, about: dict[str, Any]) -> None:
        """Write what is left, and say what made the file."""
        if len(self._waiting):
            self._write_group(self._waiting)
        self._writer.add_key_value_metadata(metadata(about))

    def _write_group(self, table: pa.Table) -> None:
        self._writer.write_table(table.combine_chunks(), row_group_size=GROUP_ROWS)
