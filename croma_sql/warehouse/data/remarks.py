"""What is said of the columns of a table that is imported."""

from collections.abc import Sequence

import pyarrow as pa

from croma_sql.alike import alike_told
from croma_sql.importers.missing import Found, is_text, told
from croma_sql.warehouse.data import names_in_views


def remarks(table: pa.Table, found: Sequence[Found], key: str) -> list[str]:
    """Say which cells are missing, and which values look like one.

    Parameters
    ----------
    table : as it is stored
    found : cells that were read as missing, or might be meant so
    key : the column of ids, of which nothing is said; ``encoder`` where rows are no samples
    """
    attributes = [name for name in table.column_names if name != key]
    notes = told(found) if key == "encoder" else [*told(found), *names_in_views.told(attributes)]
    for field in table.schema:
        if field.name != key and is_text(field.type):
            notes += alike_told(f"column {field.name!r}", table.column(field.name))
    return notes
