"""What the files of one source must have in common, and what is said of them."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from croma_sql.errors import SourceError, counted, listed
from croma_sql.importers.sources import SourceFile

_HDF5 = (".h5", ".hdf5")
_TORCH = (".pt", ".pth")
_WRITERS = {
    "trident": "TRIDENT",
    "clam": "CLAM",
    "stamp": "STAMP",
    "h5": "HDF5 without a known writer",
    "pt": "PyTorch",
    "pathorob": "PathoROB",
    "npy": "NumPy",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "csv": "CSV",
    "anndata": "AnnData",
    "lazyslide": "LazySlide",
}
_LEVELS = {"tile": "tiles", "slide": "slides", "sample": "samples"}
_ENCODER = ("encoder", "extractor", "encoder_name")  # how TRIDENT, STAMP and slide2vec call it
TILE_SIZE = {  # likewise
    "patch_size_level0": "px of level 0",
    "tile_size_lv0": "px of level 0",
    "tile_size_um": "µm",
}


def checked(sources: Sequence[SourceFile], name: str) -> None:
    """Refuse files that are of several levels, or by their writers of several encoders."""
    levels = _grouped(sources, lambda source: _LEVELS[source.level])
    if len(levels) > 1:
        raise SourceError(
            f"{name} holds vectors of {_counted(levels)}. A dataset is of one level: "
            "import them one by one, giving the folder of each or a glob"
        )
    named = [source for source in sources if _encoder(source) is not None]
    encoders = _grouped(named, lambda source: repr(_encoder(source)))
    if len(encoders) > 1:
        raise SourceError(
            f"{name} holds vectors of more than one encoder, as their writers say: "
            f"{_counted(encoders)}. Import them one by one, giving the folder of each or a glob"
        )


def one_of_each_slide(
    sources: Sequence[SourceFile], name: str
) -> tuple[list[SourceFile], list[str]]:
    """Keep one file of each slide, where the others are known to be copies of it.

    Returns
    -------
    the sources that are kept; sentences about those that are not

    Raises
    ------
    SourceError
        Files of which nobody knows that they are copies.
    """
    kept, copies = _without_copies(sources)
    of_slide = defaultdict(list)
    for source in kept:
        if source.slide_id is not None:
            of_slide[source.slide_id].append(source)
    twice = {slide: files for slide, files in of_slide.items() if len(files) > 1}
    if twice:
        slide, files = next(iter(twice.items()))
        raise SourceError(
            f"{name} holds {len(twice)} slide(s) more than once: {listed(twice)}; {slide!r} is in "
            f"{listed(str(file.path) for file in files)}. If they are different slides of one "
            "name, tell them apart by their folders: --slide-id path. If they are of different "
            "encoders or magnifications, import the folders one by one"
        )
    note = f"left out: {len(copies)} .pt, the .h5 of the same slide has the same vectors"
    return kept, [note] if copies else []


def described(sources: Sequence[SourceFile]) -> list[str]:
    """Say in numbers what was recognised."""
    kinds = _grouped(sources, _kind)
    notes = [f"{counted(len(files), 'file')} of {kind}" for kind, files in kinds.items()]
    empty = [source.slide_id for source in sources if not source.n]
    if empty:
        have = "1 slide has" if len(empty) == 1 else f"{len(empty)} slides have"
        notes.append(f"{have} no tiles: {listed(empty)}")
    return notes


def _without_copies(
    sources: Sequence[SourceFile],
) -> tuple[list[SourceFile], list[SourceFile]]:
    """CLAM writes a slide's vectors twice, with coordinates as .h5 and without as .pt."""
    hdf5 = defaultdict(list)
    for source in sources:
        if source.path.suffix.lower() in _HDF5:
            hdf5[_stem(source.path)].append(source)
    copies = [
        source
        for source in sources
        if source.path.suffix.lower() in _TORCH
        if any(_same_vectors(source, other) for other in hdf5[_stem(source.path)])
    ]
    left_out = {source.path for source in copies}
    return [source for source in sources if source.path not in left_out], copies


def _same_vectors(torch: SourceFile, hdf5: SourceFile) -> bool:
    """Go by the folders, which differ in one name at most, the numbers, and the first vector."""
    here, there = torch.path.parent.parts, hdf5.path.parent.parts
    near = len(here) == len(there) and sum(map(str.__ne__, here, there)) <= 1
    alike = (torch.level, torch.n, torch.d) == (hdf5.level, hdf5.n, hdf5.d)
    if not (near and alike):
        return False
    first, same = (source.read(0, min(source.n, 1)).vectors for source in (torch, hdf5))
    return np.array_equal(first, same, equal_nan=True)


def _stem(path: Path) -> str:
    return path.name[: -len(path.suffix)]


def _kind(source: SourceFile) -> str:
    kind = f"{_WRITERS.get(source.format, source.format)}: {_LEVELS[source.level]}"
    encoder = _encoder(source)
    kind += "" if encoder is None else f", encoder {encoder!r}"
    for name, unit in TILE_SIZE.items():
        if name in source.attributes:
            return f"{kind}, {source.attributes[name]} {unit}"
    return kind


def _encoder(source: SourceFile) -> str | None:
    names = (source.attributes[name] for name in _ENCODER if name in source.attributes)
    return next((str(name) for name in names), None)


def _grouped(
    sources: Sequence[SourceFile], by: Callable[[SourceFile], str]
) -> dict[str, list[SourceFile]]:
    groups = defaultdict(list)
    for source in sources:
        groups[by(source)].append(source)
    return dict(groups)


def _counted(groups: dict[str, list[SourceFile]]) -> str:
    return " and of ".join(
        f"{name} ({counted(len(files), 'file')}, first {files[0].path})"
        for name, files in groups.items()
    )
