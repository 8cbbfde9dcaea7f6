"""Columns of samples that came in by slide, which imports and exports cannot do without."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import WarehouseError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.sources import read_sources
from croma_sql.warehouse.parquet import read_footer, read_table

_NEEDED = {"tile": ("slide_id", "tile"), "slide": ("slide_id",)}
_PLACES = ("x", "y", "coord_unit", "tile_size")


def lost_columns(root: Path, dataset: str) -> list[str]:
    """List what samples of a dataset lack that every import by slide gives them."""
    path = layout.samples_files(root).get(dataset)
    if path is None:
        return []
    there = read_footer(path).schema.to_arrow_schema().names
    return [name for name in _needed(root, dataset) if name not in there]


def refuse_lost_columns(root: Path, dataset: str) -> None:
    """Refuse samples that came in by slide and do not say any more of which slide they are.

    Raises
    ------
    WarehouseError
    """
    lost = lost_columns(root, dataset)
    if lost:
        raise WarehouseError(f"samples of dataset {dataset!r} {told(lost)}")


def told(lost: Sequence[str]) -> str:
    """Say what samples lack, and how to mend it."""
    return (
        f"have no column {listed(lost)}, which an import by slide had given them. Import samples "
        "with all their columns (croma-sql import samples), or import the vectors as another "
        "dataset"
    )


def as_tiles(root: Path, table: pa.Table, dataset: str, replacing: str | None = None) -> pa.Table:
    """Check samples that replace those of a dataset, and give columns of tiles their types.

    Parameters
    ----------
    replacing : an encoder whose vectors are replaced too, so that it does not count

    Raises
    ------
    WarehouseError
        The dataset came in by slide, and these samples lack a column that its tiles have, or say
        that one of them is of another slide.
    """
    path, needed = layout.samples_files(root).get(dataset), _needed(root, dataset, replacing)
    if path is None or not needed:
        return table
    there = read_footer(path).schema.to_arrow_schema()
    kept = [name for name in _PLACES if name in there.names]
    lacking = [name for name in (*needed, *kept) if name not in table.column_names]
    if lacking:
        raise WarehouseError(
            f"dataset {dataset!r} was imported by slide, and these samples would replace its "
            f"samples without {listed(lacking, show=6)}. Join their attributes to the samples "
            "instead: --on COLUMN, the one that names samples, slides or patients (Python: on=)"
        )
    for name in (*needed, *kept):
        at = table.column_names.index(name)
        kind = there.field(name).type if name in there.names else table.schema.field(at).type
        table = table.set_column(at, name, _cast(table.column(name), kind, name, dataset))
    if {*needed} <= {*there.names}:
        _check_slides(table, read_table(path, ["sample_id", *needed]), needed, dataset)
    return table


def _cast(column: pa.ChunkedArray, kind: pa.DataType, name: str, dataset: str) -> pa.ChunkedArray:
    try:
        return column.cast(kind)
    except pa.ArrowException as error:
        raise WarehouseError(
            f"column {name!r} is {column.type}, but {kind} in dataset {dataset!r}, which was "
            f"imported by slide ({error}). Leave it as it was"
        ) from error


def _check_slides(table: pa.Table, there: pa.Table, needed: Sequence[str], dataset: str) -> None:
    ids = table.column("sample_id").combine_chunks()
    known = there.column("sample_id").cast(pa.string()).combine_chunks()
    rows = pc.index_in(ids, known)
    for name in needed:
        before = there.column(name).take(rows)
        differ = pc.fill_null(pc.not_equal(before, table.column(name)), False)
        moved = ids.filter(differ.combine_chunks())
        if len(moved):
            raise WarehouseError(
                f"{len(moved)} samples of dataset {dataset!r} have another {name} here than the "
                f"import by slide gave them: {listed(moved.to_pylist())}. Leave it as it was"
            )


def _needed(root: Path, dataset: str, but: str | None = None) -> tuple[str, ...]:
    for file in layout.sources_files(root):
        if file.dataset == dataset and file.encoder != but:
            levels = {
                record.level
                for record in read_sources(root, file.encoder, dataset)
                if not record.is_whole
            }
            for level in ("tile", "slide"):
                if level in levels:
                    return _NEEDED[level]
    return ()
