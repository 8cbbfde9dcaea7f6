"""Where a path or URL leads: the local disk, or object storage."""

from pathlib import Path
from typing import cast

from croma_sql.errors import CromaSqlError


def place(where: str | Path) -> Path:
    """Make a path of a path or URL; those of object storage behave alike.

    Parameters
    ----------
    where : path, or URL such as ``s3://bucket/folder``

    Returns
    -------
    pathlib.Path, or for a URL a ``upath.UPath`` with the same methods

    Raises
    ------
    CromaSqlError
        A URL, and the library that reads it is not installed.
    """
    if not isinstance(where, str) or "://" not in where:
        return Path(where)
    try:
        from upath import UPath
    except ImportError:
        raise CromaSqlError(
            f"{where} lies on object storage, which needs a library: pip install 'croma-sql[s3]'"
        ) from None
    return cast(Path, UPath(where))


def is_local(path: Path) -> bool:
    """Tell a path of this machine from one of object storage."""
    return isinstance(path, Path)
