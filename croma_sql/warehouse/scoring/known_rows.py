"""Digests of the rows of benchmarks, kept so that no benchmark is run to learn that it is the same.

The file is an aid: it says what a SELECT over files of known content gives, so an entry is never
out of date, and without the file the SELECT is run. Only what scores and harmonises writes it.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from croma_sql.errors import WarehouseError
from croma_sql.version import __version__
from croma_sql.warehouse.identities import identity
from croma_sql.warehouse.publish import publishing

NAME = ".rows.json"
MOST = 1000


def question(select: bytes, samples: Mapping[str, Path], keep: Any = None) -> str:
    """Digest what the rows of a benchmark depend on.

    Parameters
    ----------
    select : text of the benchmark
    samples : files of samples, by dataset
    keep : what is asked for beside the benchmark's own columns

    Raises
    ------
    SourceError
        A file of samples cannot be read.
    """
    held = {name: identity(path) for name, path in samples.items()}
    asked = [__version__, select.decode(errors="replace"), held, keep]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def read_known(root: Path) -> dict[str, str]:
    """Read digests of rows, by question; none where the file is missing or damaged."""
    try:
        known = json.loads((root / "scores" / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(name): str(rows) for name, rows in known.items()} if isinstance(known, dict) else {}


def keep_known(root: Path, found: Mapping[str, str]) -> None:
    """Keep further digests; a place that cannot be written stays as it is."""
    known = read_known(root)
    if found.items() <= known.items():
        return
    rest = {name: rows for name, rows in known.items() if name not in found}
    last = [*rest.items(), *found.items()][-MOST:]
    with suppress(WarehouseError), publishing(root / "scores" / NAME) as file:
        file.write(json.dumps(dict(last), indent=1).encode() + b"\n")
