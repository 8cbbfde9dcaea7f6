"""What a file holds, in a few letters, mostly without reading it."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from croma_sql.importers.tables import unreadable
from croma_sql.places import Version, opened, version_of
from croma_sql.warehouse.parquet import A_FOOTER, METADATA_KEY, WRITING

CONTENT = "content"
_END = 8  # bytes after the footer: its length, and PAR1


class Content:
    """A digest of rows as they are written, for the metadata of their file."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, rows: pa.Table) -> None:
        """Take further rows."""
        for batch in rows.combine_chunks().to_batches():
            self._digest.update(batch.serialize())

    def about(self) -> dict[str, Any]:
        """Give the entry of the metadata."""
        return {CONTENT: self._digest.hexdigest()}


def identity(path: Path) -> str:
    """Digest what a file holds.

    A file of vectors that this package wrote says in its footer what it holds: a digest of its
    rows (`Content`), or of a part the checksums of its pieces. Then the digest is one of the
    footer, which changes with them, with the number of rows and with the size of every page. Of
    any other file every byte is read. Neither depends on when the file was written or where it is,
    so a copied warehouse has the same digests. A file whose version has not changed is not read
    again by this process.

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    try:
        return _identity(path, version_of(path))
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error


@lru_cache(maxsize=1 << 16)
def _identity(path: Path, version: Version) -> str:
    footer = _footer(path)
    if footer and _is_sealed(footer):
        size = version[1]
        return f"footer {hashlib.sha256(footer).hexdigest()} of {size}"
    with opened(path) as file:
        return f"bytes {hashlib.file_digest(file, 'sha256').hexdigest()}"


def _footer(path: Path) -> bytes:
    """Read the footer of a Parquet file, to the end of the file; nothing of any other file."""
    with opened(path, A_FOOTER) as file:
        size = file.seek(0, 2)
        start = max(0, size - A_FOOTER)
        file.seek(start)
        end = file.read()
        length = int.from_bytes(end[-_END:-4], "little") + _END
        if end[-4:] != b"PAR1" or length > size:
            return b""
        if length > len(end):
            file.seek(size - length)
            return file.read()
        return end[-length:]


def _is_sealed(footer: bytes) -> bool:
    """Tell a file of vectors that says what it holds, as it was written.

    A tool that reads such a file and writes it again may keep what the footer says of the rows it
    had, but it does not write columns as this package does.
    """
    found = pq.read_metadata(pa.BufferReader(footer))
    try:
        about = json.loads((found.metadata or {})[METADATA_KEY])
    except (KeyError, ValueError, RecursionError):
        return False
    if not isinstance(about, dict):
        return False
    if about.get("pieces"):
        return True
    return bool(about.get(CONTENT)) and all(
        _is_ours(found.row_group(i).column(found.num_columns - 1))
        for i in range(found.num_row_groups)
    )


def _is_ours(column: pq.ColumnChunkMetaData) -> bool:
    return (
        column.compression == str(WRITING["compression"]).upper()
        and not column.has_dictionary_page
        and not column.is_stats_set
    )
