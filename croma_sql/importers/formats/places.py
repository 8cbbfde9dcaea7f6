"""Where tiles lie, in which unit, and how large they are: what writers of HDF5 say of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

PLACED = ("x", "y", "coord_unit", "tile_size")
HISTORIC_STEP, HISTORIC_SIZE = 224, 256.0  # tiles of STAMP before it wrote units, and in µm
_UNITS = {"px": "px", "pixel": "px", "pixels": "px", "um": "um", "µm": "um", "μm": "um"}


@dataclass(frozen=True, slots=True)
class Places:
    """How to read the coordinates of a file.

    unit : 'px' of level 0, 'um', or None where nobody says
    tile_size : edge of a tile in that unit, or None
    scale : what coordinates are multiplied with to be in that unit
    """

    unit: str | None
    tile_size: float | None
    scale: float = 1.0

    def columns(self, pairs: NDArray[Any]) -> tuple[list[str], list[pa.Array]]:
        """Make columns ``x``, ``y``, ``coord_unit`` and ``tile_size`` of (n, 2) coordinates."""
        scaled = pairs.astype(np.float64) * self.scale
        columns = [
            pa.array(np.ascontiguousarray(scaled[:, 0])),
            pa.array(np.ascontiguousarray(scaled[:, 1])),
            pa.repeat(pa.scalar(self.unit, pa.string()), len(pairs)),
            pa.repeat(pa.scalar(self.tile_size, pa.float64()), len(pairs)),
        ]
        return list(PLACED), columns


def pixels(attributes: Mapping[str, Any]) -> Places:
    """Read what TRIDENT and CLAM say of coordinates, which are pixels of level 0.

    TRIDENT gives the size at level 0. CLAM gives it at ``patch_level``, and how many pixels of
    level 0 are one there, not always a round number, along x and y.

    Examples
    --------
    >>> pixels({"patch_size": 256, "patch_size_level0": 512}).tile_size
    512.0
    >>> pixels({"patch_size": 256, "patch_level": 1, "downsample": (4.0001, 4.0003)}).tile_size
    1024.0
    >>> pixels({"patch_size": 224, "level0_magnification": 40, "target_magnification": 20})
    Places(unit='px', tile_size=448.0, scale=1.0)
    """
    level0, size = _number(attributes, "patch_size_level0"), _number(attributes, "patch_size")
    if level0 is not None or size is None:
        return Places("px", level0)
    downsample = _number(attributes, "downsample")
    if downsample is not None:
        return Places("px", float(round(size * downsample)))
    here, target = (_number(attributes, f"{at}_magnification") for at in ("level0", "target"))
    return Places("px", size * here / target if here and target else None)


def micrometres(attributes: Mapping[str, Any], step: Callable[[], float]) -> Places:
    """Read what STAMP says of coordinates, which are µm.

    Its oldest files say no unit; where tiles are 224 apart, 224 are 256 µm.

    Parameters
    ----------
    attributes : of the file
    step : call it to measure the step of the tiles (`step_of`)
    """
    in_um, size = attributes.get("unit") == "um", _number(attributes, "tile_size")
    said = _number(attributes, "tile_size_um") or (size if in_um else None)
    if said is not None or in_um:
        return Places("um", said)
    if round(size or step()) == HISTORIC_STEP:
        return Places("um", HISTORIC_SIZE, HISTORIC_SIZE / HISTORIC_STEP)
    return Places(None, None)


def told(attributes: Mapping[str, Any]) -> Places:
    """Read the unit of coordinates that are no whole numbers, where an attribute says it."""
    unit = str(attributes.get("unit", "")).lower()
    return Places(_UNITS.get(unit), None)


def step_of(pairs: NDArray[Any]) -> float:
    """Measure the smallest step between columns, or rows, of tiles; 0 where there is none."""
    finite = pairs[np.isfinite(pairs).all(axis=1)].astype(np.float64)
    steps = [np.diff(np.unique(axis)) for axis in finite.T]
    return min((float(step.min()) for step in steps if len(step)), default=0.0)


def _number(attributes: Mapping[str, Any], name: str) -> float | None:
    """Read a number, the first of several; None: there is none, or none above 0."""
    try:
        number = float(np.ravel(attributes[name])[0])
    except (KeyError, ValueError, TypeError, IndexError):
        return None
    return number if np.isfinite(number) and number > 0 else None
