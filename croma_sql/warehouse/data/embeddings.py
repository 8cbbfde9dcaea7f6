"""Import vectors of an encoder: all at once from one source, or slide by slide from many files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from croma_sql.cohort import checked_threads
from croma_sql.errors import SourceError, listed
from croma_sql.importers.formats import arrays, croma
from croma_sql.importers.formats.patches import is_metadata
from croma_sql.importers.listing import Options
from croma_sql.importers.recognise import OnFiles, recognised
from croma_sql.importers.sources import SourceFile
from croma_sql.importers.tables import is_path, name_of
from croma_sql.importers.vectors import WHOLE
from croma_sql.places import place
from croma_sql.udfs.threads import available_cores
from croma_sql.vectors import OnBadVectors
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.imported import Done, Imported
from croma_sql.warehouse.data.whole import import_whole
from croma_sql.warehouse.slides.asked import Asked
from croma_sql.warehouse.slides.slides import import_slides

MOST_THREADS = 8  # each holds a part in memory


def import_embeddings(
    warehouse: str | Path,
    source: Any,
    *,
    encoder: str,
    dataset: str,
    samples: Any = None,
    on: str | None = None,
    ids: Any = None,
    sample_id: str = "sample_id",
    embedding: str | None = None,
    on_bad_vectors: OnBadVectors = "error",
    as_format: str | None = None,
    coordinates: str | Path | None = None,
    slide_id: Literal["stem", "path"] = "stem",
    prefix: str = "",
    threads: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Imported:
    """Import vectors of an encoder, in the precision they come in.

    A frame, an array, or one .npy, Parquet, Arrow, CSV or TSV file holds one vector per sample of
    the dataset, and replaces what the encoder has there. Anything else is imported by slide: a
    folder, a glob, or a file of one slide, as TRIDENT, CLAM, STAMP, slide2vec, LazySlide and others
    write it (``croma_sql.importers.recognise.FORMATS``). What is there already is not read again;
    slides that are not among the sources any more are kept.

    Parameters
    ----------
    warehouse : path or URL; made a warehouse if it is new or empty
    source : path or URL, glob, frame, or (n, d) array
        A .npy file or an array has no ids: its rows are those of ``ids``, else of ``samples``.
    encoder, dataset : str
    samples : path or frame, or by slide several of them, optional
        The samples of the dataset, imported too as by `import_samples`. By slide: attributes of
        samples, slides or patients, joined as by `croma_sql.join_attributes`.
    on : str, optional
        By slide: the column of ``samples`` that says what a row is of, where it is not found.
    ids : sequence of n ids, optional
        For one source without ids, in the order of its rows.
    sample_id, embedding : str
        Names of the columns, in ``source`` and in ``samples``. By slide, ``embedding`` is the
        dataset, column or obsm key of the vectors, where it is not that of the writer.
    on_bad_vectors : {'error', 'drop', 'null'}
        What to do with vectors that are NULL, hold NaN or inf, or are all zero: refuse, leave the
        sample out for this encoder, or keep it with a NULL embedding.
    as_format : str, optional
        By slide: what the files are, where that is not recognised.
    coordinates : path, URL or glob, optional
        By slide: files of coordinates of tiles, for vectors that come without.
    slide_id : {'stem', 'path'}
        By slide: a slide is called as its file, or as its file with the folders below ``source``.
    prefix : str
        By slide: what every sample_id begins with, lest it is that of another dataset.
    threads : int, optional
        By slide: parts of up to 128 MB that are read and written at once. Default: as many as
        there are cores, at most 8. The result does not depend on it.
    on_progress : callable, optional
        Gets the share of vectors read, in [0, 1]; by slide a
        `croma_sql.warehouse.data.imported.Done`, which is one that also counts slides, after one
        of files that have been looked at.

    Returns
    -------
    Imported

    Raises
    ------
    SourceError
        See `croma_sql.importers`; also ids that do not match the samples one to one, dimensions
        that differ within the encoder, and tiles that are not those of other encoders.
    WarehouseError
        See `croma_sql.warehouse.data.samples.import_samples`.
    """
    if on_bad_vectors not in ("error", "drop", "null"):
        raise SourceError(f"on_bad_vectors is {on_bad_vectors!r}; it is 'error', 'drop' or 'null'")
    given = list(samples) if isinstance(samples, list | tuple) else [samples]
    tables = [table for table in given if table is not None]
    if as_format is None and not tables and ids is None and _has_manifest(source):
        as_format = croma.FORMAT
    if _is_whole(source, as_format):
        only_by_slide = {
            "on": on,
            "coordinates": coordinates,
            "slide_id": None if slide_id == "stem" else slide_id,
            "prefix": prefix or None,
            "several tables of samples": tables[1:] or None,
        }
        _refuse(only_by_slide, f"{name_of(source)} is imported as a whole")
        return import_whole(
            warehouse,
            source,
            encoder=encoder,
            dataset=dataset,
            samples=tables[0] if tables else None,
            ids=ids,
            sample_id=sample_id,
            embedding=embedding,
            on_bad_vectors=on_bad_vectors,
            on_progress=on_progress,
        )
    _refuse({"ids": ids}, f"{source} is imported by slide")
    options = Options(
        as_format=as_format,
        embedding=embedding,
        sample_id=sample_id,
        samples=[place(table) for table in tables if is_path(table)],
        slide_id=slide_id,
    )
    lacking = [path for path in options.samples if not path.exists()]
    if lacking:  # told before hours of reading
        raise SourceError(f"{lacking[0]} does not exist")
    found = recognised(source, options, coordinates, on_progress and _counting(on_progress))
    asked = Asked(
        root=layout.create_warehouse(warehouse),
        encoder=encoder,
        dataset=dataset,
        prefix=prefix,
        embedding=embedding,
        on_bad_vectors=on_bad_vectors,
        cohort=[table for table in tables if not _has_been_read(table, found.sources)],
        on=on,
        threads=checked_threads(threads) or min(available_cores(), MOST_THREADS),
    )
    imported = import_slides(asked, found.sources, on_progress)
    return replace(imported, notes=[*found.notes, *imported.notes])


def _has_manifest(source: Any) -> bool:
    """Tell an array whose ids stand beside it, as croma writes them."""
    path = place(source) if is_path(source) else None
    return (
        path is not None
        and path.suffix.lower() == arrays.SUFFIX
        and path.is_file()
        and path.with_name(croma.MANIFEST).exists()
    )


def _counting(on_progress: Callable[[float], None]) -> OnFiles:
    return lambda n, total: on_progress(Done(n / total, n, total, "recognising"))


def _is_whole(source: Any, as_format: str | None) -> bool:
    if not is_path(source):
        return True
    path = place(source)
    return as_format is None and path.suffix.lower() in WHOLE and path.is_file()


def _refuse(given: Mapping[str, Any], reason: str) -> None:
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise SourceError(f"{reason}, for which {listed(names)} has no meaning; leave it out")


def _has_been_read(table: Any, sources: Sequence[SourceFile]) -> bool:
    """Tell a table of PathoROB's patches, from which its sources have their attributes already."""
    of_patches = any(source.format == "pathorob" for source in sources)
    return of_patches and is_path(table) and is_metadata(place(table))
