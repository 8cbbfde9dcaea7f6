"""Tiles of PLISM as Owkin extracts them: ``<extractor>/<slide>/features.npy``, (n, 3 + d).

Before the features of a tile are its level in a Deep Zoom pyramid, and its column and row there:
with a unit of their own, 'tile', as only the pyramid knows where in pixels that is.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from croma_sql.errors import SourceError
from croma_sql.importers.formats import arrays
from croma_sql.importers.leading import LEVEL, ROWS, edges, without_leading
from croma_sql.importers.listing import Listing, Options, slide_id_of
from croma_sql.importers.sources import SourceFile
from croma_sql.vectors import Matrix

FORMAT = "plism"
FILE = "features.npy"
UNIT = "tile"
COLUMNS = (LEVEL, "x", "y")

_DEEPEST = 40  # level; a pyramid of 2 ** 40 pixels is none


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | None:
    """Recognise the tiles of a slide, which is named as its folder.

    Returns
    -------
    None where the name is another, or no level, column and row are before the features

    Raises
    ------
    SourceError
        Damaged; or PLISM was asked for, and it is another array.
    """
    if options.leading_columns is not None:
        return None
    mine = options.as_format == FORMAT
    if path.name.lower() != FILE and not mine:
        return None
    plain = arrays.recognise(path, listing, replace(options, as_format=arrays.FORMAT))
    is_plism = plain.level == "tile" and plain.d > len(COLUMNS)
    if is_plism and plain.n:
        is_plism = _has_places(plain.read(0, min(plain.n, ROWS)).vectors, sure=mine)
    if not is_plism or not (plain.n or mine):
        if mine:
            raise SourceError(
                f"{path} is not of PLISM: expected (n, 3 + d), with level, column and row in a "
                "Deep Zoom pyramid before the features"
            )
        return None
    named = replace(plain, format=FORMAT, slide_id=slide_id_of(path.parent, listing, options, ()))
    return without_leading(named, COLUMNS, UNIT)


def remarks(sources: Sequence[SourceFile], listing: Listing, options: Options) -> list[str]:
    """Say what the coordinates are."""
    return [
        "x and y of PLISM are columns and rows of tiles at a Deep Zoom level (coord_unit 'tile')"
    ]


def _has_places(vectors: Matrix, *, sure: bool) -> bool:
    """Tell a level, the same for all, and columns and rows from features."""
    level, *corner = vectors[:, : len(COLUMNS)].astype(np.float64).T
    places = np.stack([level, *corner])
    whole = np.isfinite(places).all() and (places == np.floor(places)).all()
    if not whole or places.min() < 0 or level.max() > _DEEPEST or np.ptp(level):
        return False
    return sure or edges(vectors).first in range(1, len(COLUMNS) + 1)
