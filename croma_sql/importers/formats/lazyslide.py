"""LazySlide: a store of SpatialData per slide, ``<slide>.zarr``, with a table per encoder.

A table ``<model>_<tiles>`` has a row per tile of the element ``<tiles>`` of shapes, whose polygons
are in pixels of level 0. Vectors of the slide that were made of them are in its ``uns``. The store
says how the slide was tiled. A table that was saved on its own, .h5ad or .zarr, has no shapes.
"""

import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from croma_sql.errors import SourceError, listed
from croma_sql.importers.anndata_tables import (
    NAMES,
    Stored,
    encoder_of,
    find_matrix,
    find_table,
    link_of,
    measured,
    opened_store,
    read_matrix,
    read_obs,
)
from croma_sql.importers.finding import STORE, size_and_time
from croma_sql.importers.formats.places import PLACED
from croma_sql.importers.listing import Listing, Options, slide_id_of
from croma_sql.importers.polygons import bounds
from croma_sql.importers.sources import Rows, SourceFile
from croma_sql.importers.tables import unreadable

FORMAT = "lazyslide"
SUFFIXES = (STORE, ".h5ad")

_OF_STORE = ("tile_spec", "slide_properties")  # what LazySlide says of the slide
_OF_SLIDE = ("mpp", "magnification")
_TILE_ID = "tile_id"
_INDEX = "__index_level_0__"


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of tiles.

    path, mtime_ns : of the store
    table : its path in the store; empty: it is the store
    matrix : of its vectors
    region, region_key, instance_key : of which shapes the tiles are, by which columns of obs
    """

    path: Path
    mtime_ns: int
    table: str
    matrix: Stored
    region: str
    region_key: str
    instance_key: str

    def read(self, start: int, stop: int) -> Rows:
        """Read some tiles, or the slide."""
        with opened_store(self.path, self.table) as group:
            vectors = read_matrix(group, self.matrix.key, start, stop)
        if self.matrix.key.startswith("uns/"):
            return Rows(pa.table({"tile": np.arange(start, stop)}).select([]), vectors)
        return Rows(_tiles(self).slice(start, stop - start), vectors)


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | None:
    """Recognise a table of tiles, or the vector of a slide.

    ``options.embedding`` names the table, or its encoder, where there is more than one, and after a
    slash perhaps a matrix in it, or the key under which LazySlide put the vector that it made of
    the tiles (``uni_tiles/agg_slide``).

    Returns
    -------
    None where nothing says that LazySlide wrote it

    Raises
    ------
    SourceError
        Damaged, more than one table to choose from, or tiles of several elements.
    """
    with opened_store(path, to_read=False) as root:
        about = {name: root.attrs[name] for name in _OF_STORE if name in root.attrs}
        if not about and not _was_saved_alone(root):
            return None
        found = find_table(root, options.embedding, str(path))
        if found is None:
            return None
        table, embedding = found
        group, name = (root[table], f"{path}, {table},") if table else (root, str(path))
        link = link_of(group)
        if not {"region", "region_key", "instance_key"} <= {*link}:
            raise SourceError(
                f"{name} does not say which tiles its rows are; extract features again"
            )
        matrix = _slide(group, embedding, name) or find_matrix(group, embedding, name)
    region = link["region"]
    if len(region) > 1:
        raise SourceError(
            f"{name} has tiles of several elements: {listed(region)}; save one of each"
        )
    size, mtime_ns = size_and_time(path)
    tiles = _Table(
        path, mtime_ns, table, matrix, region[0], *link["region_key"], *link["instance_key"]
    )
    return SourceFile(
        path=path,
        format=FORMAT,
        level="slide" if matrix.key.startswith("uns/") else "tile",
        slide_id=slide_id_of(path, listing, options, SUFFIXES),
        n=matrix.n,
        d=matrix.d,
        dtype=matrix.dtype,
        size=size,
        mtime_ns=mtime_ns,
        read=tiles.read,
        attributes=_said(about, tiles),
    )


def _was_saved_alone(root: Any) -> bool:
    return link_of(root).get("instance_key") == [_TILE_ID]


def _slide(group: Any, embedding: str | None, name: str) -> Stored | None:
    """Find vectors that LazySlide made of tiles; of the whole slide there is one."""
    key = f"uns/agg_ops/{embedding}/features"
    if embedding is None or key not in group:
        return None
    matrix = measured(group, key, name)
    if matrix.n != 1:
        raise SourceError(
            f"{name} has {matrix.n} vectors under {embedding!r}, of parts of the slide; expected 1"
        )
    return matrix


def _said(about: dict[str, Any], tiles: _Table) -> dict[str, str | int | float]:
    """Say of the file what its writer does: the table, how it was tiled, the slide."""
    name = tiles.table.rpartition("/")[2]
    said: dict[str, Any] = {"table": name, "encoder": encoder_of(name, tiles.region)}
    said = {key: value for key, value in said.items() if value}
    said |= {"matrix": tiles.matrix.key, "tile_key": tiles.region}
    spec = about.get("tile_spec", {}).get(tiles.region, {})
    said |= {f"tile_spec.{key}": value for key, value in spec.items()}
    slide = about.get("slide_properties", {})
    said |= {f"slide_properties.{key}": slide.get(key) for key in _OF_SLIDE}
    return {key: value for key, value in said.items() if isinstance(value, str | int | float)}


@lru_cache(maxsize=4)  # tiles are read part by part, from several threads
def _tiles(of: _Table) -> pa.Table:
    """Read what is known of the tiles: where they lie, then columns of shapes and of obs."""
    obs = read_obs(of.path, of.table, of.mtime_ns)
    if len(obs) != of.matrix.n:
        raise SourceError(f"{of.path} has {of.matrix.n} vectors but {len(obs)} tiles in obs")
    number = pa.array(np.arange(len(obs), dtype=np.int32))
    instance = obs.column(of.instance_key).combine_chunks()
    columns = {"tile": number, **_places(of, instance)}
    columns |= {name: obs.column(name) for name in obs.column_names if name not in columns}
    if instance.cast(pa.string()).equals(number.cast(pa.string())):
        del columns[of.instance_key]
    return pa.table(columns).drop_columns([NAMES, of.region_key])


def _places(of: _Table, instance: pa.Array) -> dict[str, pa.Array]:
    """Read where tiles lie; nothing where the store does not say it."""
    file = of.path / "shapes" / of.region / "shapes.parquet"
    if not of.table or not file.exists():
        return {}
    try:
        with file.open("rb") as content:
            shapes = pq.read_table(content)
        return _joined(of, instance, shapes)
    except (OSError, KeyError, ValueError, struct.error, pa.ArrowException) as error:
        raise unreadable(file, error) from error


def _joined(of: _Table, instance: pa.Array, shapes: pa.Table) -> dict[str, pa.Array]:
    """Take the shape of each tile: its corner and size, then what else is said of it."""
    ids = next((name for name in (of.instance_key, _INDEX) if name in shapes.column_names), None)
    known = pa.array(range(len(shapes))) if ids is None else shapes.column(ids).combine_chunks()
    rows = pc.index_in(instance.cast(pa.string()), known.cast(pa.string()))
    if rows.null_count:
        lost = instance.filter(pc.is_null(rows))
        raise SourceError(
            f"{of.path}: {len(lost)} of {len(instance)} tiles have no shape in {of.region!r}: "
            f"{listed(lost.to_pylist())}. They were tiled again since; extract features again"
        )
    shapes = shapes.take(rows)
    corners = bounds(shapes.column("geometry").combine_chunks())
    width, height = (corners[:, 2:] - corners[:, :2]).T
    square = pa.array(width, mask=~np.isclose(width, height))
    columns = (pa.array(corners[:, 0]), pa.array(corners[:, 1]), pa.repeat("px", len(rows)), square)
    others = [c for c in shapes.column_names if c not in ("geometry", ids, _INDEX, *PLACED)]
    return dict(zip(PLACED, columns, strict=True)) | {c: shapes.column(c) for c in others}
