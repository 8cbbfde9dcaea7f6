"""JSON files that writers put beside their arrays."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from croma_sql.errors import SourceError

Attributes = dict[str, str | int | float]


def read_sidecar(path: Path) -> dict[str, Any]:
    """Read what a writer says of a file.

    Raises
    ------
    SourceError
        Not readable, not JSON, or not an object.
    """
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(
            f"{path} cannot be read as JSON: {error}. It may be cut short; write or copy it again"
        ) from error
    if not isinstance(about, dict):
        raise SourceError(f"{path} is JSON, but not an object that describes a file")
    return about


def attributes_of(about: Mapping[str, Any]) -> Attributes:
    """Keep what is said; what has parts becomes JSON text.

    Examples
    --------
    >>> attributes_of({"encoder_name": "uni2", "mask_path": None, "pooling": {"method": "cls"}})
    {'encoder_name': 'uni2', 'pooling': '{"method": "cls"}'}
    """
    return {name: _plain(value) for name, value in about.items() if value not in (None, "")}


def _plain(value: Any) -> str | int | float:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no word for it
    return value if isinstance(value, str | int | float) else json.dumps(value, sort_keys=True)
