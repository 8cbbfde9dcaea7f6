"""Coordinates of hs2p, the tiler of slide2vec: ``<slide>.coordinates.npz`` and its sidecar.

The archive holds ``tile_index``, ``x`` and ``y`` (level 0), sorted by x, then y, and the fraction
of tissue in each tile. The sidecar ``<slide>.coordinates.meta.json`` holds the size of the tiles:
since hs2p 3 in groups (``tiling``, ``slide``, ...), before that in one. Of a slide without tiles
there is the sidecar only.
"""

from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from croma_sql.errors import SourceError
from croma_sql.importers.formats.numpy_arrays import Array, directory, open_array, read_rows
from croma_sql.importers.formats.places import Places
from croma_sql.importers.formats.sidecars import attributes_of, read_sidecar
from croma_sql.importers.listing import Listing, Options, slide_id_of
from croma_sql.importers.sources import Coordinates

FORMAT = "hs2p"
_NUMBERS = ("tile_index", "x", "y")
_TISSUE = ("tissue_fractions", "tissue_fraction")  # the second name is that of hs2p 2
_GROUPS = ("provenance", "slide", "tiling", "artifact")
_LEVEL_0 = (None, "level0_px", "level_0")


def recognise(path: Path, listing: Listing, options: Options) -> Coordinates | None:
    """Recognise the coordinates of a slide's tiles.

    Raises
    ------
    SourceError
        Damaged; columns of different lengths or not of numbers; or a sidecar of another tiling.
    """
    found = directory(path)
    if not set(_NUMBERS) <= found.keys():
        return None
    tissue = next((name for name in _TISSUE if name in found), None)
    columns = [open_array(path, name) for name in (*_NUMBERS, *filter(None, [tissue]))]
    n = _length(columns, path)
    sidecar = listing.beside(path, f"{path.stem}.meta.json")
    about = {} if sidecar is None else _flat(read_sidecar(sidecar))
    if about.get("n_tiles", about.get("num_tiles", n)) != n:
        raise SourceError(
            f"{path} has {n} tiles, but {sidecar} says otherwise; they are of two runs. "
            "Tile the slide again"
        )
    if about.get("coordinate_space") not in _LEVEL_0:
        raise SourceError(
            f"{sidecar}: the coordinates are in {about['coordinate_space']!r}; those of level 0 "
            "are read"
        )
    size = about.get("tile_size_lv0")
    slide_id = slide_id_of(path, listing, options, (".coordinates.npz", ".npz"))
    if options.slide_id == "stem":
        slide_id = str(about.get("sample_id") or slide_id)
    return Coordinates(
        path=path,
        format=FORMAT,
        slide_id=slide_id,
        n=n,
        read=partial(_read, columns, size if isinstance(size, int | float) else None),
        attributes=attributes_of(about),
    )


def _flat(about: dict[str, Any]) -> dict[str, Any]:
    groups = [about[name] for name in _GROUPS if isinstance(about.get(name), dict)]
    return dict(chain.from_iterable(group.items() for group in groups)) if groups else about


def _length(columns: list[Array], path: Path) -> int:
    shapes = {column.shape for column in columns}
    numbers = all(column.dtype.kind in "iuf" for column in columns)
    if len(shapes) != 1 or len(columns[0].shape) != 1 or not numbers:
        found = ", ".join(f"{column.key} {column.shape} {column.dtype}" for column in columns)
        raise SourceError(f"{path} is not one number per tile in every column: {found}")
    return columns[0].shape[0]


def _read(columns: list[Array], tile_size: float | None) -> pa.Table:
    n = columns[0].shape[0]
    index, x, y, *tissue = (read_rows(column, 0, n) for column in columns)
    if len(np.unique(index)) < n:
        raise SourceError(f"{columns[0].path} numbers more than one tile alike; tile it again")
    names, placed = Places("px", tile_size).columns(np.column_stack((x, y)))
    table = pa.table([pa.array(index.astype(np.int64)), *placed], ["tile_index", *names])
    return table.append_column("tissue_fraction", pa.array(tissue[0])) if tissue else table
