"""Bounds of polygons as GeoParquet keeps them: well-known binary, or lists of GeoArrow."""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_POLYGON = 3
_FIRST = 13  # byte of the first point


def bounds(polygons: pa.Array) -> NDArray[np.float64]:
    """Measure polygons.

    Parameters
    ----------
    polygons : binary (WKB), or lists of rings of points, which are structs or pairs (GeoArrow)

    Returns
    -------
    (n, 4) least x and y, largest x and y of the outer ring

    Raises
    ------
    ValueError
        Not polygons, or empty ones.

    Examples
    --------
    >>> bounds(pa.array([[[{"x": 0.0, "y": 1.0}, {"x": 2.0, "y": 1.0}, {"x": 2.0, "y": 5.0}]]]))
    array([[0., 1., 2., 5.]])
    """
    if pa.types.is_binary(polygons.type) or pa.types.is_large_binary(polygons.type):
        rings = map(_outer_ring, polygons.to_pylist())
    elif pa.types.is_list(polygons.type) and pa.types.is_list(polygons.type.value_type):
        rings = map(_points, pc.list_element(polygons, 0))
    else:
        raise ValueError(f"geometry of type {polygons.type}; expected polygons")
    corners = [(*ring.min(axis=0), *ring.max(axis=0)) for ring in rings]
    return np.array(corners, np.float64).reshape(-1, 4)


def _outer_ring(polygon: bytes) -> NDArray[np.float64]:
    order = "<" if polygon[0] else ">"
    kind, _, points = struct.unpack_from(f"{order}3I", polygon, 1)
    if kind != _POLYGON:
        raise ValueError(f"geometry of kind {kind}; expected polygons ({_POLYGON})")
    return np.frombuffer(polygon, f"{order}f8", 2 * points, _FIRST).reshape(points, 2)


def _points(ring: pa.ListScalar) -> NDArray[np.float64]:
    points = ring.values
    if pa.types.is_struct(points.type):
        return np.stack([points.field(axis).to_numpy() for axis in ("x", "y")], axis=1)
    return np.asarray(points.flatten(), np.float64).reshape(len(points), -1)
