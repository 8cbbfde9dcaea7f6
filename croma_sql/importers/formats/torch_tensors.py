"""PyTorch files of one tensor, or of a NumPy array, or of a dictionary with one.

CLAM saves tensors; TRIDENT saves arrays under the same suffix. Neither keeps coordinates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.errors import SourceError, listed
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.formats.places import Places, pixels, told
from croma_sql.importers.listing import Listing, Options, slide_id_of
from croma_sql.importers.sources import Level, Rows, SourceFile
from croma_sql.importers.torch_archives import load
from croma_sql.vectors import Matrix, as_matrix

VECTORS = ("features", "feats", "embeddings")
COORDINATES = "coords"


@dataclass(frozen=True, slots=True)
class _Matrix:
    """The vectors of a file, under a key of its dictionary or bare, and its coordinates."""

    path: Path
    key: str | None
    level: Level
    n: int
    d: int
    dtype: np.dtype[Any]
    places: Places | None

    def read(self, start: int, stop: int) -> Rows:
        """Read some rows."""
        loaded = load(self.path) if start < stop else None
        if loaded is None:
            vectors: Matrix = np.empty((0, self.d), self.dtype)
        else:
            stored = loaded if self.key is None else loaded[self.key]
            if _shape(stored) not in ((self.n, self.d), (self.d,)):
                raise SourceError(f"{self.path} has changed meanwhile; import it again")
            vectors = as_matrix(as_array(stored.reshape(self.n, self.d)[start:stop]))
        samples = pa.table({"tile": np.arange(start, start + len(vectors), dtype=np.int32)})
        if self.level == "slide":
            return Rows(samples.select([]), vectors)
        if self.places is not None:
            pairs = (
                np.empty((0, 2)) if loaded is None else as_array(loaded[COORDINATES])[start:stop]
            )
            for name, column in zip(*self.places.columns(pairs), strict=True):
                samples = samples.append_column(name, column)
        return Rows(samples, vectors)


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile:
    """Recognise vectors of tiles, or of a slide.

    Raises
    ------
    SourceError
        Not loadable as weights only; no tensor or array in it, or none of vectors; or more or
        fewer coordinates than vectors.
    """
    loaded = load(path)
    key = _key(loaded, path, options)
    stored = loaded if key is None else loaded[key]
    check_numbers(stored, path)
    level, n, d = _level(stored, path)
    places = _places(loaded, n, path) if key is not None and level == "tile" else None
    dtype = as_matrix(np.empty((0, 1), as_array(stored[:0]).dtype)).dtype
    return SourceFile(
        path,
        "pt",
        level,
        slide_id_of(path, listing, options, (path.suffix.lower(),)),
        n,
        d,
        dtype.name,
        *size_and_time(path),
        _Matrix(path, key, level, n, d, dtype, places).read,
        _attributes(loaded),
    )


def _key(loaded: Any, path: Path, options: Options) -> str | None:
    """Find the vectors in what was loaded; None: it is the vectors."""
    if _is_array(loaded):
        return None
    if not isinstance(loaded, Mapping):
        raise SourceError(f"{path} holds a {type(loaded).__name__}; expected a tensor of vectors")
    names = VECTORS if options.embedding is None else (options.embedding,)
    found = next((name for name in names if _is_array(loaded.get(name))), None)
    if found is None:
        kinds = (
            f"{name} {tuple(item.shape) if _is_array(item) else type(item).__name__}"
            for name, item in loaded.items()
        )
        raise SourceError(
            f"{path} holds no vectors under {' or '.join(map(repr, names))}, only "
            f"{listed(kinds, show=10)}. Name the key that holds vectors with --embedding, or leave "
            "the file out: give a folder or a glob without it"
        )
    return found


def _is_array(item: Any) -> bool:
    import torch

    return isinstance(item, torch.Tensor | np.ndarray)


def _shape(stored: Any) -> tuple[int, ...]:
    """Get the shape without the axis of a batch of one, which some writers leave in front."""
    shape = tuple(stored.shape)
    return shape[1:] if len(shape) == 3 and shape[0] == 1 else shape


def _level(stored: Any, path: Path) -> tuple[Level, int, int]:
    match _shape(stored):
        case (0,):
            return "tile", 0, 0  # so TRIDENT saves a slide without tiles
        case (d,):
            return "slide", 1, d
        case (n, d) if d or not n:
            return "tile", n, d
    raise SourceError(
        f"{path} holds an array of shape {tuple(stored.shape)}; expected (n, d), a vector per row"
    )


def check_numbers(stored: Any, path: Path) -> None:
    """Refuse what is no matrix of numbers in memory."""
    if isinstance(stored, np.ndarray):
        sound = stored.dtype.kind in "fiu" and stored.dtype.itemsize <= 8
    else:
        import torch

        dense = stored.layout == torch.strided and not stored.is_quantized and not stored.is_meta
        number = not stored.is_complex() and stored.dtype != torch.bool
        sound = dense and number
        if sound and stored.numel() * stored.element_size() > stored.untyped_storage().nbytes():
            raise SourceError(
                f"{path} repeats what it holds to a shape of {tuple(stored.shape)}; save a tensor "
                "that was made contiguous"
            )
    if not sound:
        raise SourceError(f"{path} holds an array of {stored.dtype}; expected dense numbers")


def as_array(stored: Any) -> NDArray[Any]:
    """Copy to NumPy, which knows no bfloat16 and no float8: float32 holds them exactly."""
    if isinstance(stored, np.ndarray):
        return stored
    import torch

    known = (torch.float16, torch.float32, torch.float64)
    if stored.is_floating_point() and stored.dtype not in known:
        stored = stored.float()
    array: NDArray[Any] = stored.detach().resolve_neg().numpy()
    return array.copy()  # of a file that is mapped into memory


def _places(loaded: Mapping[str, Any], n: int, path: Path) -> Places | None:
    coordinates: Any = loaded.get(COORDINATES)
    if not _is_array(coordinates):
        return None
    check_numbers(coordinates, path)
    if tuple(coordinates.shape) != (n, 2):
        raise SourceError(
            f"{path} has {n} vectors, but {COORDINATES!r} is of shape {tuple(coordinates.shape)}; "
            f"expected ({n}, 2)"
        )
    whole = as_array(coordinates[:0]).dtype.kind in "iu"
    return pixels(_attributes(loaded)) if whole else told(_attributes(loaded))


def _attributes(loaded: Any) -> dict[str, str | int | float]:
    if not isinstance(loaded, Mapping):
        return {}
    return {str(name): item for name, item in loaded.items() if isinstance(item, str | int | float)}
