"""A tile as QuPath reads it: a feature of GeoJSON, and the file of a slide's."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from croma_sql.exports.colours import GREY, band, colour

SUFFIX = ".geojson"
SIDES = ("left", "top", "right", "bottom")
MEASUREMENTS = ("margin", "d_so", "d_os")
DECIMALS = 2  # of a pixel, as QuPath has itself
IDS = uuid.uuid5(uuid.NAMESPACE_URL, "croma_sql")

_write = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def collection(about: Mapping[str, Any], tiles: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Write a feature collection piece by piece, a line for each tile.

    Parameters
    ----------
    about : what the margins are of: a member of the collection that readers pass over
    tiles : see `feature`
    """
    head = _write({"type": "FeatureCollection", "croma_sql": about})
    yield f'{head[:-1]}, "features": ['
    between = "\n"
    for tile in tiles:
        yield between + _write(feature(about, tile))
        between = ",\n"
    yield "\n]}\n"


def feature(about: Mapping[str, Any], tile: Mapping[str, Any]) -> dict[str, Any]:
    """Give one tile, a detection of the kind that QuPath calls a tile.

    Its id is the same whenever it is written again, so that QuPath can tell. What is not known is
    left out: a measurement is a number, or is not there.

    Parameters
    ----------
    about : as in `collection`
    tile : sample_id; left, top, right, bottom in pixels; margin, d_so, d_os, undefined_reason
    """
    margin = tile["margin"]
    if margin is None:
        name, shade, shown = f"undefined ({tile['undefined_reason']})", GREY, GREY
    else:
        name, shade = band(margin)
        shown = colour(margin)
    return {
        "type": "Feature",
        "id": str(uuid.uuid5(IDS, _write([*about.values(), tile["sample_id"]]))),
        "geometry": {"type": "Polygon", "coordinates": [_rectangle(tile)]},
        "properties": {
            "objectType": "tile",
            "name": tile["sample_id"],
            "classification": {"name": name, "color": shade},
            "color": shown,
            "isLocked": True,
            "measurements": {one: tile[one] for one in MEASUREMENTS if tile[one] is not None},
        },
    }


def _rectangle(tile: Mapping[str, Any]) -> list[list[float]]:
    """Go round from the corner of least x and y, to the right first.

    That is counter-clockwise in the numbers, as RFC 7946 asks of the outside of a polygon; on a
    screen, where y goes down, it looks clockwise. QuPath writes rectangles in the same order.
    """
    left, top, right, bottom = (_number(tile[side]) for side in SIDES)
    return [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]


def _number(value: float) -> float:
    """Write whole pixels as whole numbers."""
    rounded = round(value, DECIMALS)
    return int(rounded) if rounded == int(rounded) else rounded
