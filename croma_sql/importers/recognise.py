"""Recognise the writers of the files of a source, and make one list of sources of them."""

import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from croma_sql.errors import SourceError, counted, listed
from croma_sql.importers.finding import Found, find
from croma_sql.importers.formats import (
    anndata,
    arrays,
    croma,
    hdf5,
    hs2p,
    lazyslide,
    pathorob,
    payloads,
    slide2vec,
    tables,
    torch_tensors,
)
from croma_sql.importers.formats.numpy_arrays import directory
from croma_sql.importers.joining import join_coordinates
from croma_sql.importers.listing import Listing, Options
from croma_sql.importers.sources import Coordinates, SourceFile
from croma_sql.importers.together import checked, described, one_of_each_slide
from croma_sql.interrupt import apart
from croma_sql.places import is_local, place

OnFiles = Callable[[int, int], None]
Recognise = Callable[[Path, Listing, Options], SourceFile | Coordinates | None]
Remarks = Callable[[Sequence[SourceFile], Listing, Options], list[str]]


class Reader(NamedTuple):
    """A module that knows formats, by the suffixes of their files.

    remarks : what it says of all its sources together; it raises what is wrong with them
    """

    formats: tuple[str, ...]
    suffixes: tuple[str, ...]
    recognise: Recognise
    remarks: Remarks | None = None


READERS = (  # of one suffix, those that look for more stand first
    Reader(("trident", "clam", "stamp", "h5"), (".h5", ".hdf5"), hdf5.recognise),
    Reader(("slide2vec",), (".pt", ".npz", ".json"), slide2vec.recognise),
    Reader(("pt",), (".pt", ".pth"), torch_tensors.recognise),
    Reader(("hs2p",), (".npz",), hs2p.recognise),
    Reader(("pathorob",), (".npz",), pathorob.recognise, pathorob.remarks),
    Reader(("croma",), (".npy",), croma.recognise, croma.remarks),
    Reader((arrays.FORMAT,), (arrays.SUFFIX,), arrays.recognise),
    Reader((lazyslide.FORMAT,), lazyslide.SUFFIXES, lazyslide.recognise),
    Reader((anndata.FORMAT,), anndata.SUFFIXES, anndata.recognise),
    *(
        Reader((name,), suffixes, tables.recognise, tables.remarks)
        for name, suffixes in tables.FORMATS.items()
    ),
)
FORMATS = tuple(name for reader in READERS for name in reader.formats)
VECTORS = (".h5", ".hdf5", ".pt", ".pth", ".npz", ".npy", ".h5ad", ".zarr")

_MAGIC = {
    b"\x89HDF\r\n\x1a\n": ".h5",
    b"\x93NUMPY": ".npy",
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
}
_THREADS_LOCAL = 4
_THREADS_REMOTE = 16
_DEFAULT = Options()


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a source holds.

    sources : files of vectors, sorted by path
    notes : what was recognised, joined, left out and left alone, a plain sentence each
    """

    sources: Sequence[SourceFile]
    notes: Sequence[str]


def recognised(
    source: str | Path,
    options: Options = _DEFAULT,
    coordinates: str | Path | None = None,
    on_progress: OnFiles | None = None,
) -> Recognised:
    """Find the files of vectors of a source, and join coordinates to those that have none.

    Parameters
    ----------
    source : path or URL of a file or folder, or a glob
    options : what the user said of it
    coordinates : file, folder or glob of coordinates; those below ``source`` are joined too
    on_progress : gets how many files have been looked at, and how many there are

    Raises
    ------
    SourceError
        Nothing there, no vectors in it, files that cannot be read or that nobody recognises, files
        of more than one encoder or level, two of one slide, or coordinates that do not fit.
    """
    if options.as_format is not None and options.as_format not in FORMATS:
        raise SourceError(
            f"the format {options.as_format!r} is not known; --as can be {', '.join(FORMATS)}"
        )
    found = find(source)
    here = _recognise_all(found, options, on_progress)
    sources = [file for file in here.values() if isinstance(file, SourceFile)]
    known = [file for file in here.values() if isinstance(file, Coordinates)]
    left = [path for path, file in here.items() if file is None]
    if not sources:
        raise _no_vectors(source, known, left, options)
    given = [] if coordinates is None else _coordinates(coordinates, options)
    checked(sources, str(source))
    sources, about_slides = one_of_each_slide(sources, str(source))
    about_files = described(sources)
    sources, about_coordinates = join_coordinates(sources, given, known)
    remarks = _remarks(sources, found.listing, options)
    notes = [*about_files, *about_slides, *about_coordinates, *remarks]
    if left:
        notes.append(f"left alone: {_by_suffix(left)}")
    return Recognised(sources, notes)


def _remarks(sources: Sequence[SourceFile], listing: Listing, options: Options) -> list[str]:
    remarks = []
    for reader in READERS:
        mine = [source for source in sources if source.format in reader.formats]
        if mine and reader.remarks is not None:
            remarks += reader.remarks(mine, listing, options)
    return remarks


def _coordinates(source: str | Path, options: Options) -> list[Coordinates]:
    here = _recognise_all(find(source), Options(slide_id=options.slide_id))
    known = [file for file in here.values() if isinstance(file, Coordinates)]
    if not known:
        raise SourceError(
            f"{source} holds no coordinates; they are read from the patches of TRIDENT and CLAM "
            "(.h5) and the coordinates of hs2p (.npz)"
        )
    return known


def _recognise_all(
    found: Found, options: Options, on_progress: OnFiles | None = None
) -> dict[Path, SourceFile | Coordinates | None]:
    """Ask for every file, in threads, and say of all that cannot be read in one message."""
    given = found.paths[0] if len(found.paths) == 1 else None
    ask = partial(_ask, listing=found.listing, options=options, given=given)
    threads = _THREADS_LOCAL if is_local(found.listing.root) else _THREADS_REMOTE
    pool = ThreadPoolExecutor(threads, thread_name_prefix="recognise")
    answers: dict[Path, SourceFile | Coordinates | SourceError | None] = {}

    def work() -> None:
        with pool:
            for path, answer in zip(found.paths, pool.map(ask, found.paths), strict=True):
                answers[path] = answer

    def tell() -> None:
        if on_progress is not None:
            on_progress(len(answers), len(found.paths))

    apart(work, partial(pool.shutdown, wait=False, cancel_futures=True), meanwhile=tell)
    tell()
    problems = [(path, error) for path, error in answers.items() if isinstance(error, SourceError)]
    if problems:
        (_, first), *others = problems
        more = f" ({len(others)} more: {listed(str(path) for path, _ in others)})" if others else ""
        raise SourceError(f"{first}{more}") from first
    return {path: file for path, file in answers.items() if not isinstance(file, SourceError)}


def _ask(
    path: Path, listing: Listing, options: Options, given: Path | None
) -> SourceFile | Coordinates | SourceError | None:
    """Ask those who read files of that suffix; where it lies, those of what the file is."""
    readers = _readers(path.suffix.lower(), options)
    try:
        (str(path) if readers else path.suffix).encode()
        if readers or path != given:
            return _first_answer(readers, path, listing, options)
        problem = None
    except UnicodeEncodeError:
        return SourceError(f"{str(path)!r}: the name is not UTF-8; rename the file")
    except SourceError as error:
        problem = error
    others = _readers(_suffix_by_content(path), options)
    try:
        return (others != readers and _first_answer(others, path, listing, options)) or problem
    except SourceError:
        return problem


def _readers(suffix: str, options: Options) -> list[Reader]:
    return [
        reader
        for reader in READERS
        if suffix in reader.suffixes
        if options.as_format is None or options.as_format in reader.formats
    ]


def _first_answer(
    readers: Sequence[Reader], path: Path, listing: Listing, options: Options
) -> SourceFile | Coordinates | None:
    for reader in readers:
        answer = reader.recognise(path, listing, options)
        if answer is not None:
            return answer
    if options.as_format is None and path.suffix.lower() in VECTORS:
        raise SourceError(
            f"{path} is of no writer that is known{_what_it_may_be(path)}, or leave it out: give a "
            "folder or a glob without it"
        )
    return None


def _what_it_may_be(path: Path) -> str:
    """Say what an archive holds, and how to name what a file is."""
    arrays = directory(path) if path.suffix.lower() == ".npz" else {}
    there = f"; its arrays are {listed(arrays, show=10)}" if arrays else ""
    if payloads.VECTORS in arrays:
        return f"{there}. If its vectors are {payloads.VECTORS!r}, say --as {slide2vec.FORMAT}"
    return f"{there}. Name what it is with --as"


def _suffix_by_content(path: Path) -> str:
    """Tell what a file is by its first bytes; empty: something else, or it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            if start.startswith(b"PK\x03\x04"):
                with zipfile.ZipFile(file) as archive:
                    names = archive.namelist()
                return ".pt" if any(name.endswith("/data.pkl") for name in names) else ".npz"
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return ""
    return next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), "")


def _no_vectors(
    source: str | Path, known: Sequence[Coordinates], left: Sequence[Path], options: Options
) -> SourceError:
    path, name = place(source), options.as_format
    if name is None and path in left and not _readers(path.suffix.lower(), options):
        return SourceError(f"{source} is of no kind that embeddings are read from")
    suffixes = (reader.suffixes for reader in READERS if name in reader.formats)
    of = "" if name is None else f" of the format {name!r} ({', '.join(next(suffixes))})"
    found = [f"coordinates of {counted(len(known), 'slide')}"] if known else []
    found += [_by_suffix(left)] if left and path not in left else []
    only = f", only {', '.join(found)}" if found else ""
    return SourceError(f"{source} holds no vectors{of}{only}")


def _by_suffix(paths: Iterable[Path]) -> str:
    counts = Counter(path.suffix.lower() or "without suffix" for path in paths)
    return ", ".join(f"{n} {suffix}" for suffix, n in counts.most_common())
