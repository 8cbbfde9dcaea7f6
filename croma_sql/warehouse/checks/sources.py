"""Whether files of sources tell of vectors that are there."""

from collections import defaultdict
from pathlib import Path

from croma_sql.errors import listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.sources import Record, read_records

AGAIN = "delete it, and import again"


def check_sources(root: Path, file: layout.SourcesFile) -> list[str]:
    """Say what is wrong with a file of sources, but for what the vectors tell."""
    records = read_records(file.path)
    whole = layout.embeddings_path(root, file.encoder, file.dataset)
    if any(record.is_whole for record in records) and not whole.exists():
        return [f"{file.path} tells of vectors that are not there; {AGAIN}"]
    parts = [record.part for record in records if record.part is not None]
    if parts and whole.exists():
        return [
            f"{whole} is in force, and the parts that {file.path} lists are not: an import was "
            "interrupted. Run it again"
        ]
    torn = [key for key, some in _by_source(records).items() if not _joins(some)]
    if torn:
        return [
            f"{file.path} does not list every row of {len(torn)} source(s) once: {listed(torn)}; "
            f"{AGAIN}"
        ]
    return []


def name_leftover(path: Path) -> list[str]:
    """Name what an interrupted import has left."""
    return [
        f"{path} is not in force: an import was interrupted or refused. The next one of the same "
        "encoder and dataset takes it over, or removes it; so it may be deleted"
    ]


def _by_source(records: list[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        found[record.key].append(record)
    return found


def _joins(records: list[Record]) -> bool:
    """Tell whether rows follow each other."""
    row = 0
    for record in sorted(records, key=lambda record: record.first_row):
        if record.first_row != row:
            return False
        row += record.n
    return row == sum(record.n for record in records)
