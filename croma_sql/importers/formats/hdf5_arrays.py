"""Which datasets of an HDF5 file are vectors, coordinates, or text of tiles."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from croma_sql.importers.formats.companions import COORDINATES, coordinates_among
from croma_sql.importers.formats.places import PLACED
from croma_sql.importers.hdf5_datasets import dataset, opened

if TYPE_CHECKING:
    import h5py

_OF_IMPORT = ("sample_id", "slide_id", "tile", *PLACED)  # names that an import writes itself


def nested_vectors(file: "h5py.File", names: Sequence[str]) -> list[str]:
    """List vectors in groups of a file, such as ``uni/features``, by their last names."""
    import h5py

    found: list[str] = []

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim >= 2 and item.dtype.kind in "fiu":
            found.extend([name] if "/" in name and name.rpartition("/")[2] in names else [])

    file.visititems(visit)
    return sorted(found)


def arrays_like(paths: Sequence[Path], pattern: re.Pattern[str]) -> dict[str, str]:
    """Find datasets of HDF5 files by a pattern: what its group matches, and the dataset."""
    import h5py

    found: dict[str, str] = {}

    def visit(name: str, item: object) -> None:
        match = pattern.fullmatch(name)
        if match is not None and isinstance(item, h5py.Dataset):
            found[match[1]] = name

    for path in paths:
        if path.suffix.lower() in (".h5", ".hdf5"):
            with opened(path, to_read=False) as file:
                file.visititems(visit)
    return found


def coordinates_beside(file: "h5py.File", vectors: str, n: int) -> str:
    """Find the coordinates of n vectors, in their group or in the file; empty: there are none."""
    for group in _groups(vectors):
        here = {
            name: _without_batch(item.shape)
            for name, item in _members(file, group)
            if f"{group}{name}" != vectors and item.shape is not None and item.dtype.kind in "iuf"
        }
        found = coordinates_among(here, n)
        if found is not None and (found in COORDINATES or _are_far(file[f"{group}{found}"])):
            return f"{group}{found}"
    return ""


def texts_beside(file: "h5py.File", vectors: str, n: int) -> dict[str, str]:
    """Find text of n tiles, as HEST's barcodes: what each is called, and where it is."""
    import h5py

    found: dict[str, str] = {}
    for group in _groups(vectors):
        for name, item in _members(file, group):
            is_text = h5py.check_string_dtype(item.dtype) is not None
            if is_text and item.shape in ((n,), (n, 1)) and name.lower() not in _OF_IMPORT:
                found.setdefault(name, f"{group}{name}")
    return found


def read_text(stored: "h5py.Dataset", start: int, stop: int) -> pa.Array:
    """Read some rows of text, which is UTF-8."""
    rows = stored.asstr("utf-8")[start:stop]
    return pa.array(rows.reshape(-1).tolist(), pa.string())


def _groups(vectors: str) -> list[str]:
    group = vectors.rpartition("/")[0]
    return [f"{group}/", ""] if group else [""]


def _members(file: "h5py.File", group: str) -> Iterator[tuple[str, "h5py.Dataset"]]:
    for name in file[group] if group else file:
        found = dataset(file, f"{group}{name}")
        if found is not None:
            yield name, found


def _without_batch(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[1:] if len(shape) == 3 and shape[0] == 1 else shape


def _are_far(pairs: "h5py.Dataset") -> bool:
    """Tell places from probabilities of two classes."""
    return pairs.dtype.kind != "f" or bool((abs(pairs[()]) > 1).any())
