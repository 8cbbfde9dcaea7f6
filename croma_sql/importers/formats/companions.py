"""Arrays that are beside vectors in one file: where tiles are, and text that names them."""

from collections.abc import Mapping

# Of coordinates, as TRIDENT and CLAM, wsi-toolbox, squidpy and others call them.
COORDINATES = ("coords", "coordinates", "coord", "locations", "positions", "xy")

# Attributes of a source that say what was found in a file without the writer saying so.
VECTORS_ARRAY, COORDINATES_ARRAY, TEXT_ARRAYS = "vectors_array", "coordinates_array", "text_arrays"


def coordinates_among(shapes: Mapping[str, tuple[int, ...]], n: int) -> str | None:
    """Find the coordinates of n tiles among arrays of numbers: by name, else the one (n, 2).

    Parameters
    ----------
    shapes : of arrays that are not the vectors, by name

    Examples
    --------
    >>> coordinates_among({"centroids": (9, 2), "probabilities": (9, 3)}, 9)
    'centroids'
    >>> coordinates_among({"a": (9, 2), "b": (9, 2)}, 9), coordinates_among({"xy": (8, 2)}, 9)
    (None, 'xy')
    """
    named = next((name for name in COORDINATES if name in shapes), None)
    pairs = [name for name, shape in shapes.items() if shape == (n, 2)]
    return named or (pairs[0] if len(pairs) == 1 else None)
