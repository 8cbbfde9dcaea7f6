"""Archives of PathoROB: ``<model>/<dataset>/<centre>.npz``, one array per patch, of shape (d,).

An archive says no more of a patch than ``<slide_id>-<patch_id>``, and both may hold dashes. So the
keys are made of PathoROB's metadata (`patches`), which the user gives with ``--samples``, or which
lies below the source.
"""

import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.errors import SourceError, counted, listed
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.formats.numpy_arrays import (
    Array,
    as_vectors,
    damage_told,
    directory,
    open_array,
    vector_dtype,
)
from croma_sql.importers.formats.patches import is_metadata, patches
from croma_sql.importers.listing import Listing, Options
from croma_sql.importers.sources import Rows, SourceFile

FORMAT = "pathorob"
_LOCAL_HEADER = struct.Struct("<26x2H")  # of which the lengths of the name and of what follows it


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | None:
    """Recognise the vectors of one centre, and read the metadata of its patches.

    Raises
    ------
    SourceError
        Damaged; vectors of different lengths; no metadata; or one that contradicts itself.
    """
    infos = directory(path)
    first = None if not infos else open_array(path, next(iter(infos)))
    if first is None or len(first.shape) != 1 or first.dtype.kind != "f" or "features" in infos:
        return None
    size = infos[first.key or ""].file_size
    odd = [key for key, info in infos.items() if info.file_size != size]
    if odd:
        raise SourceError(
            f"{path} holds vectors of different lengths: {len(odd)} of {len(infos)} differ from "
            f"the first, {first.key!r}: {listed(odd)}. One encoder has one dimension"
        )
    metadata = _metadata(listing, options)
    if not metadata:
        raise SourceError(
            f"{path} holds {len(infos)} vectors under keys such as {first.key!r}, as PathoROB "
            "writes them. What they are of stands in its metadata: give it with "
            "--samples data/metadata/<dataset>.csv"
        )
    known = patches(metadata)
    samples = pl.DataFrame({"sample_id": list(infos)}).join(
        known, on="sample_id", how="left", maintain_order="left"
    )
    measures = [size_and_time(file) for file in (path, *metadata)]
    return SourceFile(
        path=path,
        format=FORMAT,
        level="sample",
        slide_id=None,
        n=len(infos),
        d=first.shape[0],
        dtype=vector_dtype(first.dtype, first.name),
        size=sum(size for size, _ in measures),
        mtime_ns=max(mtime_ns for _, mtime_ns in measures),
        read=partial(_read, first, list(infos.values()), samples),
        attributes={"metadata": ", ".join(file.name for file in metadata)},
    )


def remarks(sources: Sequence[SourceFile], listing: Listing, options: Options) -> list[str]:
    """Say in numbers which vectors have no metadata, and the other way round.

    Raises
    ------
    SourceError
        No key is one of the metadata; or a key stands in more than one archive.
    """
    metadata = _metadata(listing, options)
    names = listed([str(file) for file in metadata])
    known = set(patches(metadata).get_column("sample_id"))
    keys = Counter(key for source in sources for key in directory(source.path))
    twice = [key for key, count in keys.items() if count > 1]
    if twice:
        raise SourceError(
            f"{len(twice)} patches stand in more than one archive: {listed(twice)}. Each folder "
            "<model>/<dataset> is imported by itself"
        )
    unknown, lacking = keys.keys() - known, known - keys.keys()
    if len(unknown) == len(keys):
        raise SourceError(
            f"no key of {len(keys)} vectors, such as {next(iter(keys))!r}, is the "
            f"<slide_id>-<patch_id> of a row of {names}. Give the metadata of this dataset with "
            "--samples"
        )
    notes = [
        (
            unknown,
            f"{counted(len(unknown), 'vector')} without a row in {names}, so without attributes: ",
        ),
        (lacking, f"{counted(len(lacking), 'row')} of {names} without a vector: "),
    ]
    return [note + listed(sorted(missed)) for missed, note in notes if missed]


def _metadata(listing: Listing, options: Options) -> tuple[Path, ...]:
    """Find the tables of patches: those the user gave, or else those below the source."""
    given = tuple(path for path in options.samples if is_metadata(path))
    if given:
        return given
    return tuple(path for path in listing.paths if path.suffix == ".csv" and _is_readable(path))


def _is_readable(path: Path) -> bool:
    """Tell metadata among tables that are perhaps of something else, and perhaps damaged."""
    try:
        return is_metadata(path)
    except SourceError:
        return False


def _read(
    first: Array, infos: Sequence[zipfile.ZipInfo], samples: pl.DataFrame, start: int, stop: int
) -> Rows:
    vectors = np.empty((stop - start, *first.shape), first.dtype)
    with damage_told(first.path), first.path.open("rb") as file:
        header = _content(file, infos[0])[: first.start]
        for row, info in zip(vectors, infos[start:stop], strict=True):
            row[:] = _vector(_content(file, info), header, first, info)
    rows = samples.slice(start, stop - start).to_arrow()
    return Rows(rows, as_vectors(vectors, str(first.path)))


def _vector(
    content: bytes, header: bytes, first: Array, info: zipfile.ZipInfo
) -> NDArray[np.floating]:
    """Take the numbers behind a header, which is the same in all arrays that are alike."""
    if not content.startswith(header):
        raise SourceError(
            f"{first.path}: array {info.filename.removesuffix('.npy')!r} is not {first.dtype} of "
            f"shape {first.shape}, as the others are"
        )
    return np.frombuffer(content, first.dtype, offset=first.start)


def _content(file: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    """Read a small member of an archive, five times as fast as zipfile does.

    How long it is, the archive's directory has told: no member can unpack to more than that.
    """
    file.seek(info.header_offset)
    name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    file.seek(name + extra, 1)
    content = file.read(info.compress_size)
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{info.filename} is encrypted, or packed as numpy does not")
    if info.compress_type == zipfile.ZIP_DEFLATED:
        content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, info.file_size)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise ValueError(f"{info.filename} does not have the checksum it was written with")
    return content
