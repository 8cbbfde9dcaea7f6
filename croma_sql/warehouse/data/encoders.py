"""Attributes of encoders: family, size, corpus, what they have seen, and which are controls."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CohortError, SourceError, listed
from croma_sql.importers import tables
from croma_sql.importers.vectors import check_column
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.samples import check_names
from croma_sql.warehouse.parquet import write_table

TRUE, FALSE = ("true", "1", "1.0"), ("false", "0", "0.0", "")


def import_encoders(warehouse: str | Path, source: Any, *, encoder: str = "encoder") -> int:
    """Import attributes of encoders; those imported before are replaced as a whole.

    Parameters
    ----------
    warehouse : path; made a warehouse if it is new or empty
    source : path to .csv, .tsv, .xlsx, .parquet, .arrow or .feather, or any frame that speaks Arrow
        One row per encoder. A column ``is_control`` says which ones are shown in comparisons but
        never ranked, such as natural-image encoders: true or false (or 1 or 0), where it is empty
        false. All others are attributes. Encoders that have no vectors here may be among them.
    encoder : str
        Name of the column of encoder names; it becomes ``encoder``.

    Returns
    -------
    int
        Number of encoders.

    Raises
    ------
    SourceError
        The source cannot be read, lacks the column, has empty or repeated names, or an
        ``is_control`` that is neither true nor false.

    Examples
    --------
    >>> import tempfile
    >>> import croma_sql, polars as pl
    >>> frame = pl.DataFrame({"encoder": ["UNI2-h", "DINOv2-B"], "is_control": [False, True]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n = import_encoders(folder, frame)
    ...     croma_sql.connect(folder).sql("FROM encoders ORDER BY encoder").fetchall()
    [('DINOv2-B', True), ('UNI2-h', False)]
    """
    name = tables.name_of(source)
    table = validated(tables.read_table(source, text=(encoder,)), name, encoder)
    root = layout.create_warehouse(warehouse)
    write_table(layout.encoders_path(root), table, {"format": layout.FORMAT})
    return len(table)


def validated(table: pa.Table, name: str, encoder: str) -> pa.Table:
    """Put the columns ``encoder`` and ``is_control`` first, then the attributes.

    Raises
    ------
    SourceError
        See `import_encoders`.
    """
    check_column(table.column_names, encoder, name, "--encoder")
    others = [column for column in table.column_names if column != encoder]
    check_names(["encoder", *others], name, id_column="encoder", reserved=())
    try:
        names = as_text(as_column(table.column(encoder), encoder), encoder)
        columns = {column: as_column(table.column(column), column) for column in others}
    except CohortError as error:
        raise SourceError(f"{name}: {error}") from error
    _check_unique(names, name, encoder)
    told = next((column for column in others if column.lower() == "is_control"), None)
    is_control = (
        pa.array([False] * len(names))
        if told is None
        else _as_boolean(columns.pop(told), names, name, told)
    )
    return pa.table({"encoder": names, "is_control": is_control, **columns})


def _check_unique(names: pa.Array, name: str, column: str) -> None:
    if not len(names):
        raise SourceError(f"{name} has no rows")
    empty = pc.fill_null(pc.equal(names, ""), True)
    if pc.any(empty).as_py():
        rows = pc.indices_nonzero(empty).to_pylist()
        raise SourceError(
            f"{name}: column {column!r} is empty in {len(rows)} of {len(names)} rows "
            f"(first: row {listed([row + 1 for row in rows])}); every encoder needs a name"
        )
    counts = pc.value_counts(names)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist()
    if repeated:
        raise SourceError(
            f"{name}: column {column!r} is not unique: {len(repeated)} encoder(s) stand in more "
            f"than one row: {listed(repeated)}. Leave one row for each"
        )


def _as_boolean(values: pa.Array, names: pa.Array, name: str, column: str) -> pa.Array:
    try:
        written = pc.utf8_lower(pc.utf8_trim_whitespace(as_text(values, column)))
    except CohortError as error:
        raise SourceError(f"{name}: {error}") from error
    written = pc.fill_null(written, "")
    known = pc.is_in(written, pa.array([*TRUE, *FALSE]))
    if not pc.all(known).as_py():
        strange = pc.invert(known)
        raise SourceError(
            f"{name}: column {column!r} is neither true nor false for "
            f"{listed(names.filter(strange).to_pylist())} "
            f"({listed(values.filter(strange).to_pylist())}); write true, false or nothing"
        )
    return pc.is_in(written, pa.array(TRUE))
