"""Whether sources fit together, and what is there of their encoder and their dataset."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from croma_sql.errors import SourceError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.embedding_files import read_shape
from croma_sql.warehouse.data.schemas import schema_of
from croma_sql.warehouse.data.sources import Record, prefix_of, read_sources

_LEVELS = {"tile": "tiles", "slide": "slides", "sample": "samples"}


def check_fit(
    root: Path, encoder: str, dataset: str, prefix: str, records: Sequence[Record]
) -> None:
    """Check the sources of an encoder's vectors of a dataset, those that are new and those kept.

    Raises
    ------
    SourceError
        No vectors at all; vectors that differ in length or precision from each other, or in length
        from other datasets of the encoder; slides whose tiles are not as many as under another
        encoder; another level or prefix than the dataset has.
    """
    if not any(record.n for record in records):
        raise SourceError(
            f"none of the {len(records)} slides has a tile; there is nothing to import"
        )
    _check_alike(records)
    d = next(record.d for record in records if record.n)
    for file in layout.embeddings_files(root):
        if file.encoder == encoder and file.dataset != dataset:
            _check_dimension(d, read_shape(file.path).d, file.dataset)
            break
    known = imported_by_slide(root, dataset)
    _check_level(root, dataset, {record.level for record in records}, known)
    for other, theirs in known.items():
        _check_prefix(prefix, prefix_of(root, other, dataset), other, dataset)
        if other != encoder:
            _check_counts(_counts(records), _counts(theirs), other, dataset)


def imported_by_slide(root: Path, dataset: str) -> dict[str, list[Record]]:
    """Read what the vectors of a dataset were imported from, by encoder."""
    found = {
        file.encoder: in_parts(read_sources(root, file.encoder, dataset))
        for file in layout.sources_files(root)
        if file.dataset == dataset
    }
    return {encoder: records for encoder, records in found.items() if records}


def in_parts(records: Iterable[Record]) -> list[Record]:
    """Keep what was imported by slide."""
    return [record for record in records if not record.is_whole]


def _check_alike(records: Sequence[Record]) -> None:
    kinds: dict[tuple[int, str], list[str]] = defaultdict(list)
    for record in records:
        if record.n:
            kinds[record.d, record.dtype].append(record.key)
    if len(kinds) > 1:
        (usual, most), *rest = sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))
        odd = "; ".join(
            f"{d} {dtype} values in {len(keys)}: {listed(keys)}" for (d, dtype), keys in rest
        )
        raise SourceError(
            f"vectors have {usual[0]} {usual[1]} values in {len(most)} sources, but {odd}. One "
            "encoder has vectors of one length and precision: leave these out, extract them again, "
            "or give them another encoder name"
        )


def _check_dimension(d: int, theirs: int, dataset: str) -> None:
    if d != theirs:
        raise SourceError(
            f"these vectors have {d} dimensions, but the same encoder has {theirs} in dataset "
            f"{dataset!r}; give other vectors another encoder name"
        )


def _check_level(
    root: Path, dataset: str, levels: set[str], known: Mapping[str, Sequence[Record]]
) -> None:
    there = {record.level for records in known.values() for record in records}
    path = layout.samples_files(root).get(dataset)
    if not there and path is not None:
        has_tiles = {"slide_id", "tile"} <= set(schema_of(path).names)
        there = {"tile"} if has_tiles else {"slide", "sample"}
    if len(levels) > 1 or not levels <= (there or levels):
        here, theirs = (_words(some) for some in (levels, there))
        raise SourceError(
            f"these are vectors of {here}, but dataset {dataset!r} is one of {theirs}. Import them "
            "as another dataset; attributes of slides are joined to their tiles with --samples"
        )


def _words(levels: Iterable[str]) -> str:
    return " and ".join(_LEVELS[level] for level in sorted(levels))


def _check_prefix(prefix: str, theirs: str | None, other: str, dataset: str) -> None:
    if theirs is not None and theirs != prefix:
        raise SourceError(
            f"ids of dataset {dataset!r} begin with {theirs!r}, under which encoder {other!r} was "
            f"imported, not with {prefix!r}. Give the same --prefix, or import into another dataset"
        )


def _check_counts(
    ours: Mapping[str, int], theirs: Mapping[str, int], other: str, dataset: str
) -> None:
    differ = [key for key, n in ours.items() if theirs.get(key, n) != n]
    if differ:
        raise SourceError(
            f"{len(differ)} slide(s) have another number of vectors than under encoder {other!r}: "
            f"{listed(differ)}; {differ[0]!r} has {ours[differ[0]]} here and {theirs[differ[0]]} "
            f"there. Tiles of dataset {dataset!r} are the same under every encoder: import these "
            "as another dataset, with a --prefix"
        )


def _counts(records: Iterable[Record]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for record in records:
        if record.slide_id is not None:
            counts[record.key] += record.n
    return counts
