"""Attributes of samples that are there already, joined by sample, slide, patient or the like."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from croma_sql.errors import SourceError, WarehouseError, listed
from croma_sql.importers.attributes import Matched, match_attributes, rows_of
from croma_sql.importers.tables import name_of
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.samples import check_names, check_types, kind_of
from croma_sql.warehouse.parquet import WRITING, metadata, read_batches, read_footer, read_metadata
from croma_sql.warehouse.publish import locked, publishing

BATCH_ROWS = 1 << 17
PLACES = ("tile", "x", "y", "coord_unit", "tile_size")  # of tiles, which a cohort knows nothing of


@dataclass(frozen=True, slots=True)
class Joined:
    """What an import of attributes did.

    n : samples of the dataset
    report : what was matched and what was not, in numbers
    """

    n: int
    report: str


def join_attributes(
    warehouse: str | Path, source: Any, *, dataset: str, on: str | None = None
) -> Joined:
    r"""Join attributes to the samples of a dataset.

    Parameters
    ----------
    warehouse : path or URL
    source : path, URL or frame
        A row per sample, slide, patient or whatever else the samples have in common.
    dataset : str
    on : str, optional
        Name of the column of ``source`` that says what a row is of. See
        `croma_sql.importers.attributes.match_attributes`.

    Returns
    -------
    Joined
        New attributes are NULL for samples without a row; of those that the samples have already,
        they keep what they had.

    Raises
    ------
    SourceError
        The source cannot be read, matches nothing or is ambiguous; or has an attribute under a name
        that tiles have, or of another type than the samples have.
    WarehouseError
        No such warehouse or dataset.

    Examples
    --------
    >>> import tempfile
    >>> import croma_sql, polars as pl
    >>> tiles = pl.DataFrame({"sample_id": ["007:0", "007:1"], "slide_id": ["007", "007"]})
    >>> slides = pl.DataFrame({"slide": ["007.svs", "008.svs"], "label": ["tumour", "normal"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n = croma_sql.import_samples(folder, tiles, dataset="d")
    ...     print(join_attributes(folder, slides, dataset="d").report.replace("; ", "\n"))
    the frame, matched on slide with slide_id: 1 of 1 slides
    1 row has no slide: '008.svs'
    1 is written otherwise: '007.svs' is '007'
    """
    root = layout.open_warehouse(warehouse)
    with locked(root):
        path = layout.samples_files(root).get(dataset)
        if path is None:
            raise WarehouseError(
                f"{root} has no samples of dataset {dataset!r}, only of "
                f"{listed(layout.samples_files(root), show=20) or 'none'}. Import them first"
            )
        return attach(root, source, dataset=dataset, on=on, stored=path, target=path)


def attach(
    root: Path, source: Any, *, dataset: str, on: str | None, stored: Path, target: Path
) -> Joined:
    """Join attributes to samples that are read from one file and written to another, or the same.

    The warehouse is held meanwhile. Errors as in `join_attributes`.
    """
    there = read_footer(stored).schema.to_arrow_schema()
    fixed = [name for name in ("sample_id", "slide_id", *PLACES) if name in there.names]
    text = [field.name for field in there if kind_of(field.type) == "text"]
    matched = match_attributes(source, _known(stored, there), on, taken=fixed, text=text)
    schema = _with_attributes(there, matched, name_of(source))
    _check_other_datasets(root, schema, dataset)
    return Joined(_write(stored, target, matched, schema), matched.report)


def _known(path: Path, schema: pa.Schema) -> dict[str, pa.Array]:
    """Distinct values, as text, of the columns by which samples may be told; ids first."""
    ids = [name for name in ("sample_id", "slide_id") if name in schema.names]
    others = [
        field.name
        for field in schema
        if kind_of(field.type) == "text" or pa.types.is_integer(field.type)
        if field.name not in (*ids, *PLACES)
    ]
    found: dict[str, list[pa.Array]] = {name: [] for name in [*ids, *others]}
    for batch in read_batches(path, BATCH_ROWS, list(found)):
        for name, values in found.items():
            values.append(pc.unique(batch.column(name)))
    return {name: _distinct(values, schema.field(name).type) for name, values in found.items()}


def _distinct(values: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return pc.unique(pa.chunked_array(values, kind)).drop_null().cast(pa.string())


def _with_attributes(there: pa.Schema, matched: Matched, name: str) -> pa.Schema:
    """Add fields of attributes; those that are there already get a type that holds both."""
    attributes = pa.schema([matched.table.field(i) for i in range(1, matched.table.num_columns)])
    new = [field for field in attributes if field.name not in there.names]
    check_names([*there.names, *(field.name for field in new)], name)
    both = [
        _of_both(field, attributes.field(field.name), name)
        if field.name in attributes.names
        else field
        for field in there
    ]
    return pa.schema([*both, *new])


def _of_both(there: pa.Field, here: pa.Field, name: str) -> pa.Field:
    types = {there.type, here.type} - {pa.null()}
    kinds = {kind_of(kind) for kind in types}
    if len(types) <= 1:
        return there.with_type(next(iter(types), pa.null()))
    if kinds == {"text"}:
        return there.with_type(pa.string())
    if kinds == {"number"}:
        whole = all(map(pa.types.is_integer, types))
        return there.with_type(pa.int64() if whole else pa.float64())
    raise SourceError(
        f"{name}: column {here.name!r} is {here.type}, but the samples have it already as "
        f"{there.type}. Write it as that, or give it another name"
    )


def _check_other_datasets(root: Path, schema: pa.Schema, dataset: str) -> None:
    for other, path in layout.samples_files(root).items():
        if other != dataset:
            check_types(schema, read_footer(path).schema.to_arrow_schema(), other)


def _write(stored: Path, target: Path, matched: Matched, schema: pa.Schema) -> int:
    n, about = 0, metadata(read_metadata(stored))
    names = read_footer(stored).schema.to_arrow_schema().names
    with (
        publishing(target) as file,
        pq.ParquetWriter(file, schema.with_metadata(about), **WRITING) as writer,
    ):
        for batch in read_batches(stored, BATCH_ROWS, names):
            writer.write_table(_updated(pa.table(batch), matched, schema))
            n += len(batch)
    return n


def _updated(samples: pa.Table, matched: Matched, schema: pa.Schema) -> pa.Table:
    """Join attributes to some samples; those without a row keep what they had."""
    rows = rows_of(samples, matched)
    old = {name: samples.column(name) for name in samples.column_names}
    new = {name: matched.table.column(name) for name in matched.table.column_names[1:]}
    columns = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        column = new[name].take(rows).cast(kind) if name in new else old[name].cast(kind)
        both = name in new and name in old
        columns.append(
            pc.if_else(pc.is_valid(rows), column, old[name].cast(kind)) if both else column
        )
    return pa.table(columns, schema=schema)
