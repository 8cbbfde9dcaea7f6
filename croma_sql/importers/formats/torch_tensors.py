"""PyTorch files of one tensor."""

from pathlib import Path

from croma_sql.importers.listing import Listing, Options
from croma_sql.importers.sources import Coordinates, SourceFile


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | Coordinates | None:
    """Recognise a file of vectors or coordinates."""
    return None
