"""Arrays of NumPy, one per slide: ``<slide>.npy``, (n, d) of tiles or (d,) of the slide."""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from croma_sql.errors import SourceError
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.formats.croma import MANIFEST
from croma_sql.importers.formats.numpy_arrays import (
    Array,
    as_vectors,
    open_array,
    read_rows,
    vector_dtype,
)
from croma_sql.importers.listing import Listing, Options, slide_id_of
from croma_sql.importers.sources import Rows, SourceFile

FORMAT = "npy"
SUFFIX = ".npy"


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile:
    """Recognise the vectors of a slide.

    Raises
    ------
    SourceError
        Damaged, of Python objects, not of numbers, or of more than two dimensions; or rows of a
        manifest.
    """
    array = open_array(path)
    manifest = listing.beside(path, MANIFEST)
    if manifest is not None and options.as_format is None:
        raise SourceError(
            f"{path}: its rows seem to be those of {manifest}, which has no column 'sample_id' "
            "that would say so. Rename the one of ids, or say --as npy if every array is a slide"
        )
    if len(array.shape) not in (1, 2) or not array.shape[-1]:
        raise SourceError(
            f"{path} holds an array of shape {array.shape}; expected (n, d), a vector per tile, or "
            "(d,), that of the slide"
        )
    of_slide = len(array.shape) == 1
    size, mtime_ns = size_and_time(path)
    return SourceFile(
        path=path,
        format=FORMAT,
        level="slide" if of_slide else "tile",
        slide_id=slide_id_of(path, listing, options, (SUFFIX,)),
        n=1 if of_slide else array.shape[0],
        d=array.shape[-1],
        dtype=vector_dtype(array.dtype, array.name),
        size=size,
        mtime_ns=mtime_ns,
        read=partial(_read, array),
    )


def _read(array: Array, start: int, stop: int) -> Rows:
    tile = pa.table({"tile": np.arange(start, stop, dtype=np.int32)})
    if len(array.shape) == 1:
        vector = read_rows(array, 0, array.shape[0])
        return Rows(tile.select([]), as_vectors(vector[None, :], array.name)[start:stop])
    return Rows(tile, as_vectors(read_rows(array, start, stop), array.name))
