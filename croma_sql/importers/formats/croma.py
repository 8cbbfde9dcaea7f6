"""Folders of croma: a matrix per model, with a sidecar each, and the manifest they share.

``<tileset>/{manifest.csv, <Model>.npy, <Model>.npy.json}``: row i of every matrix is row i of the
manifest, and nothing else aligns them. The sidecar, written last, holds the shape of the matrix and
a fingerprint of the manifest (`manifests`), so the columns that this is made of, as ``label``, stay
text as it is written: 007 and 1 are no numbers.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import SourceError, listed
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.formats.manifests import TEXT, fingerprints
from croma_sql.importers.formats.numpy_arrays import (
    Array,
    as_vectors,
    open_array,
    read_rows,
    vector_dtype,
)
from croma_sql.importers.formats.sidecars import attributes_of, read_sidecar
from croma_sql.importers.listing import Listing, Options
from croma_sql.importers.sources import Rows, SourceFile
from croma_sql.importers.tables import read_table

FORMAT = "croma"
MANIFEST = "manifest.csv"


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | None:
    """Recognise the vectors of one model, and read the manifest beside them.

    Raises
    ------
    SourceError
        Damaged; a manifest that is not there, has other rows than the matrix, or ids that are empty
        or repeated; or a sidecar of another matrix or manifest.
    """
    manifest = listing.beside(path, MANIFEST)
    sidecar = listing.beside(path, f"{path.name}.json")
    about = {} if sidecar is None else read_sidecar(sidecar)
    mine = "manifest_fingerprint" in about or options.as_format == FORMAT
    if manifest is None:
        if mine:
            raise SourceError(
                f"{path}: the manifest it was made of, {MANIFEST}, is not beside it, so nobody "
                "knows what its rows are. Copy it there"
            )
        return None
    samples = read_table(manifest, text=TEXT)
    array = open_array(path)
    if "sample_id" not in samples.column_names or len(array.shape) != 2:
        if not mine:
            return None
        raise SourceError(
            f"{path} holds an array of shape {array.shape}, and {manifest} the columns "
            f"{listed(samples.column_names, show=10)}; expected (n, d) and a sample_id for each row"
        )
    _check_ids(samples, manifest)
    _check_rows(array, samples, manifest)
    if sidecar is not None:
        _check_sidecar(about, sidecar, array, samples, manifest)
    measures = [size_and_time(file) for file in (path, manifest)]
    return SourceFile(
        path=path,
        format=FORMAT,
        level="sample",
        slide_id=None,
        n=array.shape[0],
        d=array.shape[1],
        dtype=vector_dtype(array.dtype, array.name),
        size=sum(size for size, _ in measures),
        mtime_ns=max(mtime_ns for _, mtime_ns in measures),
        read=partial(_read, array, samples),
        attributes={"model": path.stem, **attributes_of(about)},
    )


def remarks(sources: Sequence[SourceFile], listing: Listing, options: Options) -> list[str]:
    """Refuse several models at once: each is an encoder by itself."""
    models = defaultdict(list)
    for source in sources:
        models[source.path.parent].append(source.path.name)
    for folder, names in models.items():
        if len(names) > 1:
            raise SourceError(
                f"{folder} holds {len(names)} models: {listed(names, show=10)}. Each is an encoder "
                "by itself: import them one by one, giving the .npy file"
            )
    return []


def _read(array: Array, samples: pa.Table, start: int, stop: int) -> Rows:
    vectors = as_vectors(read_rows(array, start, stop), array.name)
    return Rows(samples.slice(start, stop - start), vectors)


def _check_ids(samples: pa.Table, manifest: Path) -> None:
    ids = samples.column("sample_id")
    if ids.null_count:
        empty = [row for row, value in enumerate(ids.to_pylist(), 1) if value is None]
        raise SourceError(f"{manifest} has no sample_id in row(s) {listed(empty)}; fill them in")
    counts = pc.value_counts(ids)
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist()
    if twice:
        raise SourceError(
            f"{manifest} has {len(twice)} sample_id(s) in more than one row: {listed(twice)}. "
            "Every row of the matrix is a sample of its own; give each an id of its own"
        )


def _check_rows(array: Array, samples: pa.Table, manifest: Path) -> None:
    if len(samples) != array.shape[0]:
        raise SourceError(
            f"{array.path} has {array.shape[0]} vectors, but {manifest} has {len(samples)} rows. "
            "Row i of one is row i of the other, so they are not of one extraction"
        )


def _check_sidecar(
    about: dict[str, Any], sidecar: Path, array: Array, samples: pa.Table, manifest: Path
) -> None:
    """Compare what was written with what is there; a sidecar without these keys says nothing."""
    shape = about.get("output_shape", [about.get("n_samples"), about.get("embedding_dim")])
    dtype = about.get("output_dtype")
    if shape not in ([None, None], list(array.shape)) or dtype not in (None, str(array.dtype)):
        raise SourceError(
            f"{array.path} holds {list(array.shape)} of {array.dtype}, but {sidecar} says {shape} "
            f"of {dtype}. They are of two extractions; copy both again, or extract again"
        )
    expected, possible = about.get("manifest_fingerprint"), fingerprints(samples)
    if expected is not None and possible and expected not in possible:
        raise SourceError(
            f"{manifest} is not the manifest of {array.path}: {sidecar} has another fingerprint "
            f"({str(expected)[:12]}…). Bring back the manifest of the extraction, or extract "
            "again. If only its text has changed and the rows stand as they stood, remove the "
            "sidecar"
        )
