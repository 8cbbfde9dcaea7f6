"""Slides as TRIDENT, CLAM and plain h5py lay them out, imported, or only read."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from inputs import Data, Inputs

TILES = 2000
CHUNKS = {"trident": 1, "clam": 32, "contiguous": None}
Lap = tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]


def write(data: Data, folder: Path) -> None:
    """Write ``folder/name``, a file for each of ``data.n`` slides."""
    import h5py

    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((2 * TILES, data.d)).astype(data.dtype)
    (folder / data.name).mkdir()
    rows = CHUNKS[data.manifest.removeprefix("slides ")]
    for slide in range(data.n):
        vectors = np.roll(drawn, 7 * slide, axis=0)[:TILES]
        with h5py.File(folder / data.name / f"slide_{slide:04}.h5", "w") as file:
            how = {} if rows is None else {"chunks": (rows, data.d), "maxshape": (None, data.d)}
            file.create_dataset("features", data=vectors, **how).attrs["encoder"] = "uni"
            file["coords"] = rng.integers(0, 90_000, (TILES, 2))
            file["coords"].attrs["patch_size_level0"] = 512


def import_slides(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Import as many slides as there are inputs; of a second encoder, the first is there."""
    import croma_sql

    place = _some(inputs, options)
    root = place.parent / "warehouse"

    def bring(encoder: str) -> int:
        given = {"encoder": encoder, "dataset": "d", "threads": options["threads"]}
        return croma_sql.import_embeddings(root, place, **given).n

    for encoder in options.get("there", ()):
        bring(encoder)

    def describe(n: int) -> dict[str, Any]:
        shutil.rmtree(place.parent)
        return {"rows": np.array([n])}

    return lambda: bring("e"), describe


def h5py_loop(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Read vectors and coordinates, and do nothing with them."""
    import h5py

    place = _some(inputs, options)

    def compute() -> int:
        n = 0
        for path in sorted(place.iterdir()):
            with h5py.File(path) as file:
                vectors, coordinates = file["features"][:], file["coords"][:]
                n += len(vectors) * (len(vectors) == len(coordinates))
        return n

    def describe(n: int) -> dict[str, Any]:
        shutil.rmtree(place.parent)
        return {"rows": np.array([n])}

    return compute, describe


def _some(inputs: Inputs, options: dict[str, Any]) -> Path:
    """Make a folder of the first slides."""
    folder = Path(options["folder"])
    place = Path(tempfile.mkdtemp(dir=folder)) / "slides"
    place.mkdir()
    for path in sorted((folder / options["slides"]).iterdir())[: len(inputs.vectors)]:
        (place / path.name).symlink_to(path)
    return place
