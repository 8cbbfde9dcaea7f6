"""Ids and attributes of a dataset."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import SourceError, WarehouseError, listed
from croma_sql.importers.tables import read_table, unreadable
from croma_sql.importers.vectors import check_column
from croma_sql.warehouse import layout
from croma_sql.warehouse.publish import write_table

RESERVED = ("dataset", "croma_sql_file")


def import_samples(
    warehouse: str | Path, source: Any, *, dataset: str, sample_id: str = "sample_id"
) -> int:
    """Import ids and attributes; a dataset imported before is replaced as a whole.

    Parameters
    ----------
    warehouse : path; made a warehouse if it is new or empty
    source : path to .csv, .tsv, .parquet, .arrow or .feather, or any frame that speaks Arrow
    dataset : str
    sample_id : str
        Name of the id column; it becomes ``sample_id``. Ids are text, unique in the warehouse.

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
    table = samples_table(source, sample_id=sample_id)
    root = layout.create_warehouse(warehouse)
    check_against_warehouse(root, table, dataset)
    write_samples(root, table, dataset)
    return len(table)


def samples_table(source: Any, *, sample_id: str) -> pa.Table:
    """Read and validate samples: column ``sample_id`` first, then the attributes."""
    name = str(source) if isinstance(source, str | Path) else "the frame"
    table = read_table(source)
    check_column(table.column_names, sample_id, name, "--sample-id")
    ids = as_text(as_column(table.column(sample_id), sample_id), sample_id)
    check_ids(ids, name, sample_id)
    attributes = table.drop_columns([sample_id])
    _check_names(["sample_id", *attributes.column_names], name)
    return attributes.add_column(0, "sample_id", ids)


def check_against_warehouse(root: Path, table: pa.Table, dataset: str) -> None:
    """Refuse ids of other datasets, and to take samples away from vectors that are there."""
    ids = table.column("sample_id").combine_chunks()
    for other in layout.samples_files(root):
        if other != dataset:
            shared = ids.filter(pc.is_in(ids, sample_ids(root, other)))
            if len(shared):
                raise WarehouseError(
                    f"{len(shared)} sample_id(s) are already in dataset {other!r}: "
                    f"{listed(shared.to_pylist())}. Ids are unique in a warehouse: prefix them, or "
                    f"import into dataset {other!r}"
                )
    for file in layout.embeddings_files(root):
        if file.dataset == dataset:
            kept = read_ids(file.path)
            lost = kept.filter(pc.invert(pc.is_in(kept, ids)))
            if len(lost):
                raise WarehouseError(
                    f"{len(lost)} vectors of encoder {file.encoder!r} would lose their sample in "
                    f"dataset {dataset!r}: {listed(lost.to_pylist())}. Delete {file.path} first, "
                    "or keep these samples"
                )


def write_samples(root: Path, table: pa.Table, dataset: str) -> None:
    """Publish validated samples."""
    write_table(layout.samples_path(root, dataset), table, {"format": layout.FORMAT})


def sample_ids(root: Path, dataset: str) -> pa.Array:
    """Ids of a dataset, in the order of its file."""
    return read_ids(layout.samples_path(root, dataset))


def read_ids(path: Path) -> pa.Array:
    """Read the column ``sample_id`` of a warehouse file."""
    try:
        return (
            pq.read_table(path, columns=["sample_id"], partitioning=None).column(0).combine_chunks()
        )
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


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


def _check_names(columns: list[str], name: str) -> None:
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
            "id column becomes 'sample_id'); rename one of them"
        )
    reserved = [column for column in columns if column.lower() in RESERVED]
    if reserved:
        raise SourceError(
            f"{name}: column {reserved[0]!r} is a name that the warehouse uses itself; rename it"
        )
