"""Ids and attributes of a dataset."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CohortError, SourceError, WarehouseError, listed
from croma_sql.importers import tables
from croma_sql.importers.spellings import lost_zeros
from croma_sql.importers.vectors import check_column
from croma_sql.warehouse import layout
from croma_sql.warehouse.parquet import read_footer, read_table, write_table
from croma_sql.warehouse.publish import locked

WITH_TEXT = {"text", "number", "time"}  # kinds that SQL widens to text where datasets differ
RESERVED = ("dataset", "croma_sql_file")


def import_samples(
    warehouse: str | Path,
    source: Any,
    *,
    dataset: str,
    sample_id: str = "sample_id",
    on: str | None = None,
) -> int:
    """Import ids and attributes; a dataset imported before is replaced as a whole.

    Parameters
    ----------
    warehouse : path; made a warehouse if it is new or empty
    source : path to .csv, .tsv, .xlsx, .parquet, .arrow or .feather, or any frame that speaks Arrow
    dataset : str
    sample_id : str
        Name of the id column; it becomes ``sample_id``. Ids are text, unique in the warehouse.
    on : str, optional
        Name of the column that says which samples, slides or patients the rows are of. With it,
        their attributes are joined to the samples that are there: see
        `croma_sql.join_attributes`, which also says what did not match.

    Returns
    -------
    int
        Number of samples. Columns of vectors are left out.

    Raises
    ------
    SourceError
        The source cannot be read, lacks the column, or has empty or repeated ids.
    WarehouseError
        Ids that another dataset has, or vectors that would lose their sample.
    """
    if on is not None:
        from croma_sql.warehouse.data.attributes import join_attributes  # which checks as we do

        return join_attributes(warehouse, source, dataset=dataset, on=on).n
    table = samples_table(source, sample_id=sample_id)
    root = layout.create_warehouse(warehouse)
    with locked(root):
        check_against_warehouse(root, table, dataset)
        write_samples(root, table, dataset)
    return len(table)


def samples_table(source: Any, *, sample_id: str) -> pa.Table:
    """Read and validate samples: column ``sample_id`` first, then the attributes."""
    name = tables.name_of(source)
    table = tables.read_table(source, text=(sample_id,))
    check_column(table.column_names, sample_id, name, "--sample-id")
    attributes = [column for column in table.column_names if column != sample_id]
    check_names(["sample_id", *attributes], name)
    try:
        ids = as_text(as_column(table.column(sample_id), sample_id), sample_id)
        columns = {column: as_column(table.column(column), column) for column in attributes}
    except CohortError as error:
        raise SourceError(f"{name}: {error}") from error
    check_ids(ids, name, sample_id)
    return pa.table({"sample_id": ids, **columns})


def check_against_warehouse(
    root: Path,
    table: pa.Table,
    dataset: str,
    replacing: str | None = None,
    how: str = "",
) -> None:
    """Refuse ids of other datasets, and to take samples away from vectors that are there.

    Vectors of the encoder ``replacing`` are about to be replaced. ``how`` says what prefixes ids.
    """
    ids = table.column("sample_id").combine_chunks()
    for other, path in layout.samples_files(root).items():
        if other != dataset:
            check_types(table.schema, read_footer(path).schema.to_arrow_schema(), other)
            shared = ids.filter(pc.is_in(ids, sample_ids(root, other)))
            if len(shared):
                raise WarehouseError(
                    f"{len(shared)} sample_id(s) are already in dataset {other!r}: "
                    f"{listed(shared.to_pylist())}. Ids are unique in a warehouse: prefix them"
                    f"{how}, or write into dataset {other!r}"
                )
    for file in layout.embeddings_files(root):
        if file.dataset == dataset and file.encoder != replacing:
            kept = read_ids(file.path)
            lost = kept.filter(pc.invert(pc.is_in(kept, ids)))
            if len(lost):
                zeros = lost_zeros(lost, ids)
                raise WarehouseError(
                    f"{len(lost)} vectors of encoder {file.encoder!r} would lose their sample in "
                    f"dataset {dataset!r}: {listed(lost.to_pylist())}. "
                    + (zeros or f"Delete {file.path} first, or keep these samples")
                )


def check_types(ours: pa.Schema, theirs: pa.Schema, dataset: str) -> None:
    """Refuse an attribute that SQL could not put into one column with that of another dataset."""
    for field in ours:
        names = [other for other in theirs if other.name.lower() == field.name.lower()]
        kinds = {kind_of(column.type) for column in (field, *names)}
        if len(kinds - {"text"}) > 1 or (len(kinds) > 1 and not kinds <= WITH_TEXT):
            raise SourceError(
                f"column {field.name!r} is {field.type} here but {names[0].type} in dataset "
                f"{dataset!r}; give it one type in both (text will do)"
            )


def kind_of(kind: pa.DataType) -> str:
    """Tell what types SQL puts into one column without casting to text."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "time" if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else str(kind)


def write_samples(root: Path, table: pa.Table, dataset: str) -> None:
    """Publish validated samples."""
    write_table(layout.samples_path(root, dataset), table, {"format": layout.FORMAT})


def sample_ids(root: Path, dataset: str) -> pa.Array:
    """Ids of a dataset, in the order of its file."""
    return read_ids(layout.samples_path(root, dataset))


def read_ids(path: Path) -> pa.Array:
    """Read the column ``sample_id`` of a warehouse file, as text."""
    if "sample_id" not in read_footer(path).schema.to_arrow_schema().names:
        raise WarehouseError(f"{path} has no column 'sample_id'; import it again")
    return read_table(path, ["sample_id"]).column(0).cast(pa.string()).combine_chunks()


def check_ids(ids: pa.Array, name: str, column: str) -> None:
    """Refuse empty and repeated ids."""
    if not len(ids):
        raise SourceError(f"{name} has no rows")
    empty = pc.or_kleene(pc.is_null(ids), pc.equal(ids, ""))
    if pc.any(empty).as_py():
        rows = pc.indices_nonzero(pc.fill_null(empty, True)).to_pylist()
        raise SourceError(
            f"{name}: column {column!r} is empty in {len(rows)} of {len(ids)} rows "
            f"(first: row {listed([row + 1 for row in rows])}); every sample needs an id"
        )
    counts = pc.value_counts(ids)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist()
    if repeated:
        raise SourceError(
            f"{name}: column {column!r} is not unique: {len(repeated)} id(s) stand in more than "
            f"one row: {listed(repeated)}. Give every sample its own id (for tiles, slide and tile "
            "together)"
        )


def check_names(
    columns: list[str],
    name: str,
    *,
    id_column: str = "sample_id",
    reserved: Sequence[str] = RESERVED,
) -> None:
    """Refuse names that SQL cannot tell apart, cannot say, or that the warehouse uses itself."""
    if any(not column.strip() for column in columns):
        raise SourceError(
            f"{name}: a column has no name (often a saved row index: index=False leaves it out); "
            "name or remove it"
        )
    counts = Counter(column.lower() for column in columns)
    twice = [column for column in columns if counts[column.lower()] > 1]
    if twice:
        raise SourceError(
            f"{name}: columns {listed(twice)} have one name in SQL (capitals do not count, and the "
            f"id column becomes {id_column!r}); rename one of them"
        )
    taken = [column for column in columns if column.lower() in reserved]
    if taken:
        raise SourceError(
            f"{name}: column {taken[0]!r} is a name that the warehouse uses itself; rename it"
        )
