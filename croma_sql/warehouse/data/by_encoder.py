"""Import files of several encoders: each by itself, so that one that fails loses no other."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from croma_sql.errors import CromaSqlError, SourceError, counted
from croma_sql.importers.finding import find
from croma_sql.importers.formats.hdf5_arrays import arrays_like
from croma_sql.importers.listing import Options
from croma_sql.importers.naming import HOLE, naming
from croma_sql.importers.recognise import OnFiles, Recognised, recognised, recognised_by_encoder
from croma_sql.warehouse.data.imported import Imported

OnEncoder = Callable[[str, Imported], None]
_ARRAY = "array:"


@dataclass(frozen=True, slots=True)
class Files:
    """What there is of an encoder.

    embedding : the dataset, column or key of its vectors; None: the writer's own
    found : its files, or what is wrong with them
    """

    encoder: str
    embedding: str | None
    found: Recognised | SourceError


def of_encoders(
    source: str | Path,
    options: Options,
    encoder_from: str,
    coordinates: str | Path | None,
    on_files: OnFiles | None,
) -> list[Files]:
    """Find the files of each encoder, in the order of names.

    Raises
    ------
    SourceError
        Encoders cannot be named so, or there are none.
    """
    if not encoder_from.startswith(_ARRAY):
        names = naming(encoder_from)
        found = recognised_by_encoder(source, options, names, coordinates, on_files)
        return [Files(name, options.embedding, files) for name, files in found.items()]
    pattern = encoder_from.removeprefix(_ARRAY)
    before, hole, after = pattern.partition(HOLE)
    regex = re.compile(f"{re.escape(before)}([^/]+){re.escape(after)}")
    arrays = arrays_like(find(source).paths, regex) if hole else {}
    if not arrays:
        raise SourceError(
            f"{source}: no HDF5 file has an array like {pattern!r}; say where the name of the "
            "encoder is, as in array:{encoder}/features"
        )
    return [
        Files(name, array, _recognised(source, replace(options, embedding=array), coordinates))
        for name, array in sorted(arrays.items())
    ]


def _recognised(
    source: str | Path, options: Options, coordinates: str | Path | None
) -> Recognised | SourceError:
    try:
        return recognised(source, options, coordinates)
    except SourceError as error:
        return error


def import_each(
    files: Sequence[Files], bring: Callable[[Files], Imported], on_encoder: OnEncoder | None
) -> Imported:
    """Import one encoder after the other, all that can be imported.

    Raises
    ------
    SourceError
        Some cannot; the others are imported then.
    """
    done: dict[str, Imported] = {}
    failed: dict[str, CromaSqlError] = {}
    for one in files:
        try:
            done[one.encoder] = bring(one)
        except CromaSqlError as error:
            failed[one.encoder] = error
            continue
        if on_encoder is not None:
            on_encoder(one.encoder, done[one.encoder])
    if failed:
        said = "; ".join(
            f"encoder {name!r}: {error}" if name else str(error) for name, error in failed.items()
        )
        kept = f"{counted(len(done), 'encoder')} imported, {len(failed)} not"
        raise SourceError(f"{kept}: {said}") from next(iter(failed.values()))
    first = next(iter(done.values()))
    n, bad = (sum(getattr(one, name) for one in done.values()) for name in ("n", "bad"))
    return Imported(n, first.d, first.dtype, bad, encoders=done)
