"""HDF5 files of TRIDENT, CLAM and STAMP, and of whoever else keeps a matrix in one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.errors import SourceError, listed
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.formats.hdf5_attributes import Said, read_attributes
from croma_sql.importers.formats.places import Places, micrometres, pixels, step_of, told
from croma_sql.importers.hdf5_datasets import dataset, datasets, is_written, opened, read_rows
from croma_sql.importers.listing import Listing, Options, slide_id_of
from croma_sql.importers.sources import Coordinates, Level, Rows, SourceFile
from croma_sql.vectors import as_matrix

if TYPE_CHECKING:
    import h5py

VECTORS = ("features", "feats", "embeddings", "patch_embeddings")
COORDINATES = "coords"
_STAMP = {"stamp_version", "feat_type", "tile_size_um"}
_TRIDENT = {"savetodir", "encoder"}  # on vectors
_TRIDENT_COORDINATES = {"patch_size_level0", "level0_magnification"}


@dataclass(frozen=True, slots=True)
class _Contents:
    """What a file holds: vectors under a name, coordinates, either or both, and what is said."""

    name: str
    vectors: Any  # h5py.Dataset or None, as coordinates
    coordinates: Any
    said: Said


@dataclass(frozen=True, slots=True)
class _Matrix:
    """The vectors of a file, and how to read the coordinates beside them, if there are any."""

    path: Path
    name: str
    level: Level
    n: int
    d: int
    dtype: np.dtype[Any]
    row_id: str
    places: Places | None

    def read(self, start: int, stop: int) -> Rows:
        """Read some rows."""
        if start >= stop:
            return Rows(self._samples(start, start, None), np.empty((0, self.d), self.dtype))
        with opened(self.path) as file:
            stored = file[self.name]
            if _shape(stored) not in ((self.n, self.d), (self.d,)):
                raise OSError("it has changed meanwhile; import it again")
            vectors = stored[()][None] if stored.ndim == 1 else read_rows(stored, start, stop)
            return Rows(self._samples(start, stop, file), as_matrix(vectors))

    def _samples(self, start: int, stop: int, file: "h5py.File | None") -> pa.Table:
        if self.level == "sample":
            return pa.table({"sample_id": pa.array([self.row_id][start:stop], pa.string())})
        tile = pa.table({"tile": np.arange(start, stop, dtype=np.int32)})
        if self.level == "slide":
            return tile.select([])
        if self.places is None:
            return tile
        pairs = np.empty((0, 2)) if file is None else _pairs(file[COORDINATES], start, stop)
        for name, column in zip(*self.places.columns(pairs), strict=True):
            tile = tile.append_column(name, column)
        return tile


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | Coordinates | None:
    """Recognise vectors of tiles, of a slide or of a patient, or coordinates of tiles.

    Returns
    -------
    None for AnnData

    Raises
    ------
    SourceError
        Not readable as HDF5; no dataset of vectors; one that is no (n, d) matrix of numbers, or was
        never written; or of tiles, more or fewer vectors than coordinates.
    """
    names = VECTORS if options.embedding is None else (options.embedding,)
    with opened(path, to_read=False) as file:
        held = _contents(file, names)
        if held.vectors is not None:
            return _vectors(held, path, listing, options)
        if held.coordinates is not None:
            return _coordinates(held, path, listing, options)
        if held.said.file.get("encoding-type") == "anndata" or "obs" in file:
            return None
        there = list(datasets(file))
        if not there:
            raise SourceError(
                f"{path} holds no datasets. Leave it out: give a folder or a glob without it"
            )
        raise SourceError(
            f"{path} holds no vectors under {' or '.join(map(repr, names))}; its datasets are "
            f"{listed(there, show=10)}. Name the one that holds vectors with --embedding, "
            "or leave the file out: give a folder or a glob without it"
        )


def _contents(file: "h5py.File", names: Sequence[str]) -> _Contents:
    found = ((name, dataset(file, name)) for name in names)
    name, vectors = next((item for item in found if item[1] is not None), ("", None))
    coordinates = dataset(file, COORDINATES)
    return _Contents(name, vectors, coordinates, read_attributes(file, vectors, coordinates))


def _vectors(held: _Contents, path: Path, listing: Listing, options: Options) -> SourceFile:
    stored, said, name = held.vectors, held.said, held.name
    if stored.dtype.kind not in "fiu" or stored.dtype.itemsize > 8:
        raise SourceError(f"{path}: {name!r} is of dtype {stored.dtype}; expected numbers")
    level, n, d = _level(held, path)
    if n and not is_written(stored):
        raise SourceError(
            f"{path}: of the {n} vectors in {name!r} some were never written; whoever wrote the "
            "file was interrupted. Write it again, or leave it out"
        )
    kind = options.as_format or _kind(held)
    places = None
    if level == "tile" and held.coordinates is not None:
        if (count := _count(held.coordinates, path)) != n:
            raise SourceError(f"{path} has {n} vectors in {name!r}, but {count} coordinates")
        places = _places(held.coordinates, said, kind)
    slide_id = slide_id_of(path, listing, options, _suffixes(path))
    dtype = as_matrix(np.empty((0, 1), stored.dtype)).dtype
    matrix = _Matrix(path, name, level, n, d, dtype, slide_id, places)
    return SourceFile(
        path,
        kind,
        level,
        None if level == "sample" else slide_id,
        n,
        d,
        dtype.name,
        *size_and_time(path),
        matrix.read,
        said.plain(),
    )


def _coordinates(held: _Contents, path: Path, listing: Listing, options: Options) -> Coordinates:
    kind, n = _kind(held), _count(held.coordinates, path)
    places = _places(held.coordinates, held.said, kind)
    suffixes = ("_patches.h5", *_suffixes(path)) if kind == "trident" else _suffixes(path)

    def read() -> pa.Table:
        with opened(path) as file:
            names, columns = places.columns(_pairs(file[COORDINATES], 0, n))
            return pa.table(columns, names)

    slide_id = slide_id_of(path, listing, options, suffixes)
    return Coordinates(path, kind, slide_id, n, read, held.said.plain())


def _suffixes(path: Path) -> tuple[str, ...]:
    return (path.suffix.lower(),)


def _kind(held: _Contents) -> str:
    """Tell the writer."""
    said = held.said
    if held.name == "feats" or _STAMP & said.file.keys():
        return "stamp"
    if _TRIDENT & said.vectors.keys() or _TRIDENT_COORDINATES & said.coordinates.keys():
        return "trident"
    if held.vectors is None or held.coordinates is None:
        return "clam" if "patch_level" in said.coordinates else "h5"
    dtypes = held.vectors.dtype == np.float32 and held.coordinates.dtype.kind == "i"
    return "clam" if held.name == "features" and dtypes and not said.anywhere() else "h5"


def _level(held: _Contents, path: Path) -> tuple[Level, int, int]:
    """Tell what the vectors are of, how many they are, and how long."""
    said, of = held.said, held.said.file.get("feat_type")
    if of is None and "encoder" in said.file and held.coordinates is None:
        of = "slide"  # STAMP, before it said so
    encoded = of in ("slide", "patient")
    match _shape(held.vectors):
        case (0,):
            trident_slide = "savetodir" in said.vectors and "encoder" not in said.vectors
            return "slide" if encoded or trident_slide else "tile", 0, 0
        case (d,):
            return "sample" if of == "patient" else "slide", 1, d
        case (1, d) if encoded and d:
            return "sample" if of == "patient" else "slide", 1, d
        case (n, d) if not encoded and (d or not n):
            return "tile", n, d
    expected = "one vector" if encoded else "(n, d), a vector per row"
    shape = None if held.vectors is None else held.vectors.shape
    raise SourceError(f"{path}: {held.name!r} is of shape {shape}; expected {expected}")


def _shape(stored: "h5py.Dataset") -> tuple[int, ...] | None:
    """Get the shape without the axis of a batch of one, which some writers leave in front."""
    shape: tuple[int, ...] | None = stored.shape
    return shape[1:] if shape is not None and len(shape) == 3 and shape[0] == 1 else shape


def _places(coordinates: "h5py.Dataset", said: Said, kind: str) -> Places:
    attributes = {**said.file, **said.coordinates}
    if kind == "stamp":
        return micrometres(attributes, lambda: step_of(_pairs(coordinates, 0, None)))
    if kind == "h5" and coordinates.dtype.kind == "f":
        return told(attributes)
    return pixels(attributes)


def _count(coordinates: "h5py.Dataset", path: Path) -> int:
    match _shape(coordinates):
        case (n, 2) if coordinates.dtype.kind in "iuf":
            return n
        case (0,):
            return 0
        case (2,) if coordinates.dtype.kind in "iuf":
            return 1  # TRIDENT squeezes those of a slide's one tile
    raise SourceError(
        f"{path}: {COORDINATES!r} is of shape {coordinates.shape} and dtype {coordinates.dtype}; "
        "expected (n, 2) numbers, x and y of a tile per row"
    )


def _pairs(coordinates: "h5py.Dataset", start: int, stop: int | None) -> NDArray[Any]:
    if coordinates.ndim == 1:
        return np.reshape(coordinates[()], (-1, 2))[start:stop]
    return read_rows(coordinates, start, coordinates.shape[-2] if stop is None else stop)
