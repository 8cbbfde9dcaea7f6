"""Tiles of slides, with their margins and where they lie, in pixels."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb
import polars as pl
from duckdb import CoalesceOperator, ColumnExpression, ConstantExpression, Expression

from croma_sql.errors import WarehouseError, listed
from croma_sql.exports.tables import frame_of, rows_of
from croma_sql.warehouse.views import statement

SLIDE = "slide_id"
KNOWN = ("sample_id", "margin", "d_so", "d_os", "undefined_reason", SLIDE, "x", "y", "coord_unit")
MARGINS_OWN = 5  # the first of them, which margins have without samples saying anything
ROWS_AT_ONCE = 20_000
_NUMBERS = {"tinyint", "smallint", "integer", "bigint", "hugeint", "float", "double", "decimal"} | {
    "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"
}  # fmt: skip

Tile = dict[str, Any]


def place_tiles(
    con: duckdb.DuckDBPyConnection,
    margins: duckdb.DuckDBPyRelation,
    mpp: float | str | None,
    tile_size: float | None,
    offset_from: tuple[str, str] | None = None,
) -> None:
    """Create the view ``tiles``, of margins that have attributes of their samples beside them.

    Parameters
    ----------
    mpp : micrometres per pixel, or the attribute that says so
    tile_size : where samples do not say it, in the unit of the coordinates
    offset_from : the two attributes, in pixels of level 0, that x and y are to be lessened by

    Raises
    ------
    WarehouseError
        Samples lack an attribute, or one that is to be a number holds text.
    """
    there = {name.lower() for name in margins.columns}
    scales, offsets = [mpp] if isinstance(mpp, str) else [], list(offset_from or ())
    missing = [name for name in (*KNOWN, *scales) if name.lower() not in there]
    if missing:
        raise WarehouseError(
            f"samples have no attribute {listed(missing, show=9)}, so nobody knows where a tile "
            "lies. Import the tiles with their coordinates (croma-sql import embeddings), or "
            "samples with slide_id, x, y, coord_unit ('px' of level 0, or 'um') and tile_size"
        )
    unknown = [name for name in offsets if name.lower() not in there]
    if unknown:
        raise WarehouseError(
            f"samples have no attribute {listed(unknown)}. Join the bounds of the slides to them "
            "(croma-sql import samples FILE --on slide_id), and name their two columns with "
            "--offset-from (Python: offset_from=)"
        )
    _check_numbers(con, margins, ["x", "y", "tile_size", *scales, *offsets])
    size = _number("tile_size") if "tile_size" in there else _constant(None)
    scale = _number(mpp) if isinstance(mpp, str) else _constant(mpp)
    offset_x, offset_y = map(_number, offsets) if offsets else (_constant(0), _constant(0))
    margins.select(
        *map(ColumnExpression, KNOWN[:MARGINS_OWN]),
        ColumnExpression(SLIDE).cast("VARCHAR").alias(SLIDE),
        _number("x").alias("x"),
        _number("y").alias("y"),
        ColumnExpression("coord_unit"),
        CoalesceOperator(size, _constant(tile_size)).alias("tile_size"),
        scale.alias("mpp"),
        offset_x.alias("offset_x"),
        offset_y.alias("offset_y"),
    ).create_view("tiles")


def _check_numbers(
    con: duckdb.DuckDBPyConnection, margins: duckdb.DuckDBPyRelation, names: Sequence[str]
) -> None:
    """Refuse text that is no number, where there are columns of text."""
    types = {
        column.lower(): kind for column, kind in zip(margins.columns, margins.types, strict=True)
    }
    for name in names:
        if name.lower() not in types or types[name.lower()].id in _NUMBERS:
            continue
        margins.select(ColumnExpression(name).cast("VARCHAR").alias("text")).create_view("texts")
        odd = frame_of(con, con.sql(statement("exports", "odd")))["text"].to_list()
        if odd:
            raise WarehouseError(
                f"{name!r} of tiles holds {listed(odd)}, which is no number. Correct it in the "
                "samples and import them again"
            )


def checked_slides(con: duckdb.DuckDBPyConnection, slides: Sequence[str] | None) -> dict[str, int]:
    """Check that it is known where the tiles of slides lie, and count them.

    Raises
    ------
    WarehouseError
        A slide without a margin; tiles without slide, coordinates, unit or size.
    """
    counted = frame_of(con, con.sql(statement("exports", "slides")))
    found = {row[SLIDE]: row for row in counted.to_dicts()}
    unknown = [slide for slide in slides or () if slide not in found]
    if unknown:
        raise WarehouseError(
            f"no tile of slide {listed(unknown)} has a margin; there are those of "
            f"{listed([slide for slide in found if slide is not None], show=10)}"
        )
    if slides is not None:
        found = {slide: found[slide] for slide in found if slide in slides}
    if None in found:
        raise WarehouseError(
            f"{found[None]['n']} samples have no slide_id. Name slides with --slide (Python: "
            "slides=), or leave these samples out of the benchmark"
        )
    for fault, (what, cure) in _FAULTS.items():
        faulty = [slide for slide, row in found.items() if row[fault]]
        if faulty:
            raise WarehouseError(
                f"{sum(found[slide][fault] for slide in faulty)} tiles of slide {listed(faulty)} "
                f"{what}. {cure}, or name other slides with --slide (Python: slides=)"
            )
    return {slide: row["n"] for slide, row in found.items()}


_FAULTS = {
    "n_nowhere": (
        "have no coordinates",
        "Import them again with coordinates (croma-sql import embeddings … --coordinates DIR)",
    ),
    "n_unitless": ("have coordinates in neither 'px' nor 'um'", "Correct their coord_unit"),
    "n_sizeless": (
        "have no tile_size",
        "Give it with --tile-size, in the unit of the coordinates (Python: tile_size=)",
    ),
    "n_unscaled": (
        "have coordinates in micrometres",
        "Say how many of them a pixel of level 0 has with --mpp (Python: mpp=), one number or the "
        "attribute that holds it",
    ),
    "n_unbounded": (
        "have no offset in the attributes that --offset-from names",
        "Fill these in for the slide and join them again (croma-sql import samples FILE --on "
        "slide_id); 0 means that the slide is not cropped",
    ),
    "n_torn": (
        "have more than one offset in the attributes that --offset-from names",
        "A slide has one: name the attributes that hold it, not those of tiles",
    ),
}


def by_slide(
    con: duckdb.DuckDBPyConnection, slides: Sequence[str]
) -> Iterator[tuple[str, Iterator[Tile]]]:
    """Read tiles slide by slide, in the order of text; few are in memory at a time.

    Yields
    ------
    a slide, and its tiles as `croma_sql.exports.features.feature` wants them
    """
    relation = con.sql(statement("exports", "tiles"), params={"slides": list(slides)})
    _, batches = rows_of(relation, ROWS_AT_ONCE)
    frames = (pl.DataFrame(pl.from_arrow(batch)) for batch in batches)
    tiles = (tile for frame in frames for tile in frame.iter_rows(named=True))
    yield from groupby(tiles, key=itemgetter(SLIDE))


def _number(name: str) -> Expression:
    return ColumnExpression(name).cast("DOUBLE")


def _constant(value: float | None) -> Expression:
    return ConstantExpression(value).cast("DOUBLE")
