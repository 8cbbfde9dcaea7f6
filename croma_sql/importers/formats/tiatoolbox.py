"""Arrays of TIAToolbox: ``<i>.features.<head>.npy`` beside ``<i>.position.npy`` and a file_map.dat.

Positions are (n, 4): left, top, right and bottom, in pixels of the resolution that was read, which
no file says; so their unit is unknown. Which slide ``<i>`` is says file_map.dat, a pickle, which
could run anything: it is never read.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from croma_sql.errors import SourceError
from croma_sql.importers.formats import arrays
from croma_sql.importers.formats.numpy_arrays import Array, open_array, read_rows
from croma_sql.importers.formats.places import PLACED
from croma_sql.importers.listing import Listing, Options, slide_id_of
from croma_sql.importers.sources import Coordinates, SourceFile

FORMAT = "tiatoolbox"
FILE_MAP = "file_map.dat"
_POSITION = ".position.npy"
_FEATURES = re.compile(r"\.features\.[0-9]+\.npy$", re.IGNORECASE)


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | Coordinates | None:
    """Recognise the features of a slide, or the positions of its tiles.

    Returns
    -------
    None where the name is another, or there are features without positions

    Raises
    ------
    SourceError
        Damaged; or positions that are none.
    """
    ending = _FEATURES.search(path.name)
    if path.name.lower().endswith(_POSITION):
        return _positions(path, listing, options)
    if ending is None:
        return None
    position = listing.beside(path, f"{path.name[: ending.start()]}{_POSITION}")
    if position is None:
        return None
    plain = arrays.recognise(path, listing, replace(options, as_format=arrays.FORMAT))
    slide_id = slide_id_of(path, listing, options, (ending[0].lower(),))
    coordinates = _positions(position, listing, options)
    return replace(plain, format=FORMAT, slide_id=slide_id, coordinates=coordinates)


def remarks(sources: Sequence[SourceFile], listing: Listing, options: Options) -> list[str]:
    """Say that nobody has looked what the slides are called."""
    found = next((path for path in listing.paths if path.name == FILE_MAP), None)
    notes = ["coordinates of TIAToolbox are in pixels of the resolution that was read: no unit"]
    if found is not None:
        notes.append(
            f"{found} is not read, as it is a pickle, which could run anything. Slides are called "
            "by number, as the files are: say which is which with a table of slide_id and "
            "attributes, --samples FILE"
        )
    return notes


def _positions(path: Path, listing: Listing, options: Options) -> Coordinates:
    array = open_array(path)
    if len(array.shape) != 2 or array.shape[1] != 4 or array.dtype.kind not in "iuf":
        raise SourceError(
            f"{path} holds an array of shape {array.shape} and dtype {array.dtype}; expected "
            "(n, 4): left, top, right and bottom of a tile per row"
        )
    slide_id = slide_id_of(path, listing, options, (_POSITION,))
    return Coordinates(path, FORMAT, slide_id, array.shape[0], partial(_read, array))


def _read(array: Array) -> pa.Table:
    left, top, right, bottom = read_rows(array, 0, array.shape[0]).astype(np.float64).T
    n, width = len(left), right - left
    edge = pa.array(width, mask=~np.isclose(width, bottom - top))
    unit = pa.nulls(n, pa.string())
    columns = [pa.array(np.ascontiguousarray(axis)) for axis in (left, top)]
    return pa.table([*columns, unit, edge], names=PLACED)
