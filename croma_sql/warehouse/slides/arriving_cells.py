"""Attributes that come with vectors: which of their cells are missing."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from croma_sql.importers.missing import Found, Missing, added, is_text, table_without_missing
from croma_sql.warehouse.data import names_in_views
from croma_sql.warehouse.data.remarks import remarks
from croma_sql.warehouse.data.schemas import schema_of
from croma_sql.warehouse.parquet import read_table
from croma_sql.warehouse.slides.merging import Arrival
from croma_sql.warehouse.slides.pieces import PLACES


class ArrivingCells:
    """Cells of samples that arrive, read once, and what was found in them."""

    def __init__(self, missing: Missing, arrival: Arrival) -> None:
        arriving = {name for path in arrival.arriving for name in schema_of(path).names}
        ids = PLACES.names if arrival.level == "tile" else ["sample_id"]
        self._missing = missing
        self._ids = ids
        self._columns = arriving - {*ids}
        self._found: list[Found] = []
        self._rows = 0

    def read(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Make cells of text NULL that stand for a missing value."""
        if not any(field.name in self._columns and is_text(field.type) for field in rows.schema):
            return rows
        return pa.RecordBatchReader.from_batches(rows.schema, self._batches(rows))

    def _batches(self, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            table, found = table_without_missing(pa.table(batch), self._missing, self._ids)
            self._found += found
            self._rows += len(batch)
            yield from table.cast(rows.schema).to_batches()

    def remarks(self, stored: Path) -> list[str]:
        """Say what was found, and which values look like one.

        Parameters
        ----------
        stored : file of all samples of the dataset
        """
        found = [one._replace(rows=self._rows) for one in added(self._found)]
        texts = [
            field.name
            for field in schema_of(stored)
            if field.name in self._columns and is_text(field.type)
        ]
        others = [name for name in schema_of(stored).names if name in self._columns - {*texts}]
        notes = remarks(read_table(stored, texts), found, "sample_id") if texts else []
        return [*names_in_views.told(others), *notes]
