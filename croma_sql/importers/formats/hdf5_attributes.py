"""What writers say in the attributes of HDF5 files."""

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import h5py

_MOST = 16  # elements of an array that is an attribute: a shape or a pair of factors, not data


@dataclass(frozen=True, slots=True)
class Said:
    """The attributes of a file, of its vectors and of its coordinates, as stored."""

    file: Mapping[str, Any]
    vectors: Mapping[str, Any]
    coordinates: Mapping[str, Any]

    def anywhere(self) -> dict[str, Any]:
        """Merge them; what is said of the vectors counts most."""
        return {**self.file, **self.coordinates, **self.vectors}

    def plain(self) -> dict[str, str | int | float]:
        """Merge them as text and numbers.

        Arrays become JSON, which TRIDENT makes of dictionaries itself. It also writes ``'None'``
        for what it does not know: that, and empty attributes, are left out.
        """
        plain = {name: _plain(value) for name, value in self.anywhere().items()}
        return {name: value for name, value in plain.items() if value not in (None, "None")}


def read_attributes(
    file: "h5py.File", vectors: "h5py.Dataset | None", coordinates: "h5py.Dataset | None"
) -> Said:
    """Read the attributes of a file and of two of its datasets."""
    return Said(*({} if item is None else _readable(item) for item in (file, vectors, coordinates)))


def _readable(item: "h5py.HLObject") -> dict[str, Any]:
    """Read all attributes except those of a type that h5py does not know."""
    attributes, read = item.attrs, {}
    for name in attributes:
        with suppress(TypeError, ValueError, OSError):
            read[name] = attributes[name]
    return read


def _plain(value: Any) -> str | int | float | None:
    if isinstance(value, np.ndarray):
        return json.dumps(value.tolist(), default=_text) if value.size <= _MOST else None
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it
    return value if isinstance(value, int | float) else _text(value)


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.encode(errors="replace").decode() if isinstance(value, str) else None
