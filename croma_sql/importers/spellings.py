"""Ids of slides and patients as tables spell them: names of files, numbers without their zeros."""

import re
from collections.abc import Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

# Of slides, and of files of vectors, which tables name instead.
_SUFFIXES = (
    "svs tif tiff ndpi mrxs scn czi isyntax i2syntax dcm bif vms vmu svslide qptiff afi zvi lif "
    "vsi h5 hdf5 pt pth npz npy h5ad zarr parquet"
)
_ENDING = rf"(?i)(\.ome)?\.({_SUFFIXES.replace(' ', '|')})$"
_FILE = f"/|{_ENDING}"
_SUFFIX = re.compile(_ENDING)
_COLUMNS = (  # by which a table may name what its rows are of; without case, blanks and _
    *("sampleid", "sample", "tileid", "tile"),
    *("slideid", "slide", "slidename", "slidefile", "slidepath", "wsi", "wsiid", "wsiname"),
    *("wsipath", "filename", "file", "filepath", "path", "image", "imageid", "imagename"),
    *("imagepath", "patientid", "patient", "caseid", "case", "subjectid", "subject"),
    *("participantid", "participant", "submitterid", "bcrpatientbarcode"),
)


def rank_of_key(column: str) -> int | None:
    """Rank a column as what the rows of a table are of, by its name; None: it is none.

    Examples
    --------
    >>> rank_of_key("Slide ID") < rank_of_key("PATIENT"), rank_of_key("centre")
    (True, None)
    """
    name = re.sub(r"[\W_]", "", column).lower()
    return _COLUMNS.index(name) if name in _COLUMNS else None


def respelled(values: pa.Array, known: pa.Array, *, paths: bool) -> dict[str, list[str]]:
    """Find values among known ones that are written in another way.

    A value may be a file, with folders before it: ``scans/a/001.svs`` is ``001``, or ``a/001`` if
    that is known; and so may a known one.

    Parameters
    ----------
    values, known : text, without NULL and repetition
    paths : whether known ones may have folders, which values may lack

    Returns
    -------
    Known ones that a value may be; values that are none are left out.
    """
    tails = {value: list(_tails(value)) for value in values.to_pylist()}
    possible = pa.array(chain(*tails.values()), pa.string())
    is_known = frozenset(possible.filter(pc.is_in(possible, known)).to_pylist())
    by_name: dict[str, list[str]] = {}
    files = known.filter(pc.match_substring_regex(known, _FILE if paths else _ENDING))
    for one in files.to_pylist():
        by_name.setdefault(_name(one), []).append(one)
    found = {}
    for value, shorter in tails.items():
        longest = next((tail for tail in shorter if tail in is_known), None)
        may_be = [longest] if longest is not None else sorted(by_name.get(_name(value), []))
        if may_be:
            found[value] = may_be
    return found


def lost_zeros(some: pa.Array, others: pa.Array) -> str:
    """Say which numbers are the same but for leading zeros, and how to mend it; else empty.

    Examples
    --------
    >>> lost_zeros(pa.array(["7", "8"]), pa.array(["007", "9"]))[:44]
    "'7' is '007' there: leading zeros are lost, "
    """
    pairs = [*_without_zeros(some, others), *((b, a) for a, b in _without_zeros(others, some))]
    if not pairs:
        return ""
    shown = "; ".join(f"{one!r} is {other!r} there" for one, other in pairs[:2])
    more = f" (and {len(pairs) - 2} more)" if len(pairs) > 2 else ""
    return (
        f"{shown}{more}: leading zeros are lost, as Excel drops them from numbers. Format the "
        "column as text, or with as many zeros as an id has digits (000), and save it again"
    )


def _without_zeros(short: pa.Array, long: pa.Array) -> Iterator[tuple[str, str]]:
    padded = long.filter(pc.match_substring_regex(long, "^0+[0-9]+$"))
    full = dict(zip(pc.utf8_ltrim(padded, "0").to_pylist(), padded.to_pylist(), strict=True))
    return ((value, full[value]) for value in short.to_pylist() if value in full)


def _name(value: str) -> str:
    return _parts(value)[-1]


def _tails(value: str) -> Iterator[str]:
    """Cut a file to what it may be known as, the most telling first; others are no files."""
    if _SUFFIX.search(value):
        parts = _parts(value)
        yield from ("/".join(parts[start:]) for start in range(len(parts)))


def _parts(value: str) -> list[str]:
    return re.split(r"[/\\]", _SUFFIX.sub("", value))
