"""Embeddings of slide2vec: ``<sample>.pt`` or ``.npz`` with a sidecar ``<sample>.meta.json``.

The sidecar, written last, says what the array is (``artifact_type``). Of a slide without tiles
there is the sidecar only. Where the tiles lie says hs2p, in a file that the sidecar names.
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.errors import SourceError
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.formats import hs2p
from croma_sql.importers.formats.payloads import Payload, open_payload
from croma_sql.importers.formats.sidecars import attributes_of, read_sidecar
from croma_sql.importers.listing import Listing, Options, slide_id_of
from croma_sql.importers.sources import Coordinates, Level, Rows, SourceFile
from croma_sql.places import is_local

FORMAT = "slide2vec"
SIDECAR = ".meta.json"
_ARRAYS = (".pt", ".npz")
_DTYPES = {"fp16": "float16", "fp32": "float32"}
_GRIDS = ("dense_embeddings", "dense_image_embeddings")

About = dict[str, Any]


class _Artifact(NamedTuple):
    """What the vectors of an array are of, and what the sidecar calls its axes."""

    level: Level
    id: str
    axes: tuple[str, ...]


_ARTIFACTS = {
    "tile_embeddings": _Artifact("tile", "sample_id", ("num_tiles", "feature_dim")),
    "hierarchical_embeddings": _Artifact(
        "tile", "sample_id", ("num_regions", "tiles_per_region", "feature_dim")
    ),
    "slide_embeddings": _Artifact("slide", "sample_id", ("feature_dim",)),
    "patient_embeddings": _Artifact("sample", "patient_id", ("feature_dim",)),
    "image_embeddings": _Artifact("sample", "sample_id", ("feature_dim",)),
}
_ALONE = {1: "slide_embeddings", 2: "tile_embeddings", 3: "hierarchical_embeddings"}  # by axes
_OF_SAMPLE = ("patient_id", "num_slides", "image_path")


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | None:
    """Recognise vectors of tiles, of regions' tiles, of a slide, a patient or an image.

    Raises
    ------
    SourceError
        Damaged; a sidecar of another array, or of none; or a grid of features, which is no vector.
    """
    if path.suffix.lower() == ".json":
        return _empty_slide(path, listing, options)
    sidecar = listing.beside(path, f"{path.stem}{SIDECAR}")
    if sidecar is not None:
        about = read_sidecar(sidecar)
    elif options.as_format == FORMAT:
        about = {"artifact_type": _ALONE.get(len(open_payload(path).shape))}
    else:
        return None
    kind = about.get("artifact_type")
    if kind in _GRIDS:
        raise SourceError(
            f"{path} is a grid of features ({kind}), not a vector. Pool it over its last two axes, "
            "or leave it out: give a folder or a glob without it"
        )
    if kind not in _ARTIFACTS:
        return None
    artifact, payload = _ARTIFACTS[kind], open_payload(path)
    _check(payload, artifact, about, sidecar or path)
    coordinates = _coordinates(about, path, options) if artifact.level == "tile" else None
    in_regions = kind == "hierarchical_embeddings"
    size, mtime_ns = size_and_time(path)
    return SourceFile(
        path=path,
        format=FORMAT,
        level=artifact.level,
        slide_id=_slide_id(path, artifact, about, listing, options),
        n=payload.n,
        d=payload.d,
        dtype=payload.dtype,
        size=size,
        mtime_ns=mtime_ns,
        read=partial(_read, payload, _samples(payload, kind, about, coordinates)),
        attributes=attributes_of(about),
        coordinates=None if in_regions else coordinates,
    )


def _empty_slide(path: Path, listing: Listing, options: Options) -> SourceFile | None:
    """Recognise the sidecar of a slide without tiles, which has no array beside it."""
    if not path.name.lower().endswith(SIDECAR):
        return None
    stem = path.name[: -len(SIDECAR)]
    if any(listing.beside(path, f"{stem}{suffix}") for suffix in _ARRAYS):
        return None
    about = read_sidecar(path)
    kind = about.get("artifact_type")
    if kind not in _ARTIFACTS:
        return None
    if kind != "tile_embeddings" or about.get("num_tiles") != 0:
        missing = f"{stem}.{about.get('format', 'pt')}"
        raise SourceError(
            f"{path} describes vectors ({kind}), but there is no {missing} beside it. Copy it "
            "there, or remove the sidecar"
        )
    artifact, d = _ARTIFACTS[kind], about.get("feature_dim")
    d = d if isinstance(d, int) and d > 0 else 0
    dtype = _DTYPES.get(str(about.get("feature_dtype")), "float32")
    size, mtime_ns = size_and_time(path)
    return SourceFile(
        path=path,
        format=FORMAT,
        level="tile",
        slide_id=_slide_id(path, artifact, about, listing, options),
        n=0,
        d=d,
        dtype=dtype,
        size=size,
        mtime_ns=mtime_ns,
        read=lambda start, stop: Rows(_tiles(None, about, 0, 0), np.empty((0, d), dtype)),
        attributes=attributes_of(about),
    )


def _slide_id(
    path: Path, artifact: _Artifact, about: About, listing: Listing, options: Options
) -> str | None:
    if artifact.level == "sample":
        return None
    stem = slide_id_of(path, listing, options, (SIDECAR, *_ARRAYS))
    return stem if options.slide_id == "path" else str(about.get(artifact.id) or stem)


def _check(payload: Payload, artifact: _Artifact, about: About, sidecar: Path) -> None:
    """Compare the array with what the sidecar says of it."""
    stored, path = about.get("format"), payload.path
    if stored not in (None, path.suffix[1:].lower()):
        raise SourceError(
            f"{path} is not the array that {sidecar} describes, which is a .{stored}. It may be "
            "left over from another run; remove it"
        )
    said = tuple(about.get(axis) for axis in artifact.axes)
    shape = payload.shape[-1:] if payload.shape[:-1] == (1,) and len(said) == 1 else payload.shape
    dtype = _DTYPES.get(str(about.get("feature_dtype")), payload.dtype)
    alike = len(said) == len(shape) and all(
        there in (None, here) for there, here in zip(said, shape, strict=True)
    )
    if not alike or dtype != payload.dtype:
        raise SourceError(
            f"{path} holds {payload.shape} of {payload.dtype}, but {sidecar} says {said} of "
            f"{dtype}. They are of two runs; copy both again, or embed the slide again"
        )


def _coordinates(about: About, array: Path, options: Options) -> Coordinates | None:
    """Find the coordinates that a sidecar names: where the run is now, or where it was."""
    named = about.get("coordinates_npz_path")
    if not isinstance(named, str) or not named:
        return None
    recorded = PurePosixPath(named.replace("\\", "/"))
    depth = 2 if about.get("annotation") is None else 3  # <run>/tiles/[<class>/]<file>
    here = array if len(array.parents) >= depth else array.absolute()
    moved = here.parents[depth - 1].joinpath(*recorded.parts[-depth:])
    for path in (moved, Path(named)) if is_local(array) else (moved,):
        if path.is_file():
            beside = path.with_name(f"{path.stem}{SIDECAR}")
            paths = [path, *([beside] if beside.is_file() else [])]
            return hs2p.recognise(path, Listing(path.parent, paths), options)
    return None


def _samples(
    payload: Payload, kind: str, about: About, coordinates: Coordinates | None
) -> Callable[[int, int], pa.Table]:
    artifact = _ARTIFACTS[kind]
    if artifact.level == "slide":
        return lambda start, stop: _tiles(None, {}, start, stop).select([])
    if artifact.level == "sample":
        names = [name for name in _OF_SAMPLE if isinstance(about.get(name), str | int)]
        sample_id = str(about.get(artifact.id) or payload.path.stem)
        table = pa.Table.from_pylist([{"sample_id": sample_id} | {n: about[n] for n in names}])
        return lambda start, stop: table.slice(start, stop - start)
    if len(artifact.axes) == 3:
        regions, each, _ = payload.shape
        if coordinates is not None and (coordinates.n, math.isqrt(each) ** 2) != (regions, each):
            raise SourceError(
                f"{payload.path} has {regions} regions of {each} tiles, but {coordinates.path} has "
                f"{coordinates.n} square regions. They are of different tilings"
            )
        return partial(_subtiles, payload, about, coordinates)
    return partial(_tiles, payload.numbers, about)


def _tiles(numbers: NDArray[np.int64] | None, about: About, start: int, stop: int) -> pa.Table:
    """List tiles; those of a class of tissue say which, and which slide the classes share."""
    columns = {"tile": pa.array(np.arange(start, stop, dtype=np.int32))}
    if numbers is not None:
        columns["tile_index"] = pa.array(numbers[start:stop])
    if about.get("annotation") is not None:
        for name in ("annotation", "image_path"):
            columns[name] = pa.repeat(str(about.get(name)), stop - start)
    return pa.table(columns)


def _subtiles(
    payload: Payload, about: About, coordinates: Coordinates | None, start: int, stop: int
) -> pa.Table:
    """Tell where the tiles of regions lie: row by row in the square of each region."""
    each = payload.shape[1]
    across = math.isqrt(each)
    region, within = np.divmod(np.arange(start, stop), max(each, 1))
    table = _tiles(None, about, start, stop)
    table = table.append_column("region", pa.array(region.astype(np.int32)))
    if coordinates is None or about.get("subtile_order", "row_major") != "row_major":
        return table
    regions = coordinates.read().take(region)
    size = regions.column("tile_size").to_numpy() / across
    down, right = np.divmod(within, across)
    corners = {"x": right, "y": down}
    for axis, steps in corners.items():
        corner = regions.column(axis).to_numpy() + steps * size
        table = table.append_column(axis, pa.array(corner))
    table = table.append_column("coord_unit", regions.column("coord_unit"))
    return table.append_column("tile_size", pa.array(size))


def _read(payload: Payload, samples: Callable[[int, int], pa.Table], start: int, stop: int) -> Rows:
    return Rows(samples(start, stop), payload.vectors(start, stop))
