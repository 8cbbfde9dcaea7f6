"""Whether encoders that harmonising or pooling made are those of their sources now."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from croma_sql.errors import BenchmarkError, HarmonisationError, WarehouseError
from croma_sql.warehouse.data.samples import POOLED
from croma_sql.warehouse.derived import harmonised, pooled
from croma_sql.warehouse.scoring.made_of import MADE_OF, MadeOf, maker
from croma_sql.warehouse.states.present import Present

ANOTHER = "made by another version of croma_sql"


def derived_reasons(present: Present, encoder: str) -> dict[str, list[str]]:
    """Say why an encoder is out of date, by dataset of its vectors; nothing of imported ones.

    What is made of an encoder that is itself out of date is out of date as well: its numbers are
    those of vectors which nobody would get from the warehouse as it is now.

    Raises
    ------
    CromaSqlError
        A file cannot be read.
    """
    return {dataset: list(reasons) for dataset, reasons in _by_dataset(present, encoder, ())}


def kind_of(present: Present, path: Path) -> str | None:
    """Tell what made a file of vectors: 'harmonised', 'pooled' or, where imported, None."""
    metadata = present.about(path)
    if harmonised.described_in(metadata) is not None:
        return harmonised.KEY
    return POOLED if pooled.described_in(metadata) is not None else None


def version_reasons(made: MadeOf, now: MadeOf) -> Iterator[str]:
    """Say what other version made a table."""
    if made.get("version") != now["version"]:
        yield f"made by version {made.get('version')} of croma_sql"
    elif made.get("columns") != now["columns"]:
        yield ANOTHER


def vectors_reasons(present: Present, encoder: str, made: MadeOf) -> Iterator[str]:
    """Say what became of the vectors of an encoder that something was made of."""
    before, now = set(made["vectors"]), set(present.vectors(encoder))
    if not now:
        yield f"encoder {encoder!r} was removed"
    elif not before <= now:
        what = "were removed" if now < before else "changed"
        yield f"vectors of encoder {encoder!r} {what}"


def rows_reasons(
    present: Present, benchmark: str, made: MadeOf, keep: list[str] | None = None
) -> Iterator[str]:
    """Say what became of the rows of a benchmark that something was made of."""
    if benchmark not in present.files.benchmarks:
        yield f"benchmark {benchmark!r} was removed"
    elif not present.files.samples:
        yield "all samples were removed"
    else:
        try:
            now = present.rows(benchmark, keep)
        except (BenchmarkError, HarmonisationError) as error:
            yield f"benchmark {benchmark!r} fails now ({_first_line(error)})"
            return
        if now.partition(" ")[0] != made["rows"].partition(" ")[0] and keep is None:
            yield f"benchmark {benchmark!r} is of another kind now"
        elif now != made["rows"]:
            yield f"rows of benchmark {benchmark!r} changed"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(". ")


def _by_dataset(
    present: Present, encoder: str, seen: tuple[str, ...]
) -> Iterator[tuple[str, Iterator[str]]]:
    for file in present.encoders.get(encoder, []):
        if file.part is not None:  # parts are always imported
            continue
        metadata = present.about(file.path)
        about = harmonised.described_in(metadata)
        if about is not None:
            yield file.dataset, _of_harmonised(present, about, (*seen, encoder))
            continue
        about = pooled.described_in(metadata)
        if about is not None:
            yield file.dataset, _of_pooled(present, about, file.dataset, (*seen, encoder))


def _of_harmonised(present: Present, about: dict[str, Any], seen: tuple[str, ...]) -> Iterator[str]:
    made, source = about.get(MADE_OF), str(about.get("encoder"))
    if not isinstance(made, dict):
        yield ANOTHER
        return
    yield from version_reasons(made, maker())
    yield from vectors_reasons(present, source, made)
    yield from rows_reasons(present, str(about.get("benchmark")), made, about.get("keep"))
    yield from _of_source(present, source, seen)


def _of_pooled(
    present: Present, about: dict[str, Any], dataset: str, seen: tuple[str, ...]
) -> Iterator[str]:
    made, source = about.get(MADE_OF), str(about.get("encoder"))
    if not isinstance(made, dict):
        yield ANOTHER
        return
    yield from version_reasons(made, maker())
    if source not in present.encoders:
        yield f"encoder {source!r} was removed"
        return
    asked = {name: value for name, value in about.items() if name != MADE_OF}
    try:
        now = pooled.origin(present.files, pooled.Recipe(**asked), dataset).about[MADE_OF]
    except (WarehouseError, TypeError) as error:
        yield _first_line(error)
        return
    if now["vectors"] != made["vectors"]:
        yield f"vectors of encoder {source!r} changed"
    for name in sorted(now["samples"].keys() | made["samples"].keys()):
        if now["samples"].get(name) != made["samples"].get(name):
            yield f"samples of dataset {name!r} changed"
    if now["known"] != made["known"]:
        yield f"samples of dataset {dataset!r} changed"
    yield from _of_source(present, source, seen)


def _of_source(present: Present, source: str, seen: tuple[str, ...]) -> Iterator[str]:
    """Say that the source of a derived encoder is itself out of date."""
    if source in seen:
        return
    for _, reasons in _by_dataset(present, source, seen):
        yield from (f"encoder {source!r} is stale: {reason}" for reason in reasons)
