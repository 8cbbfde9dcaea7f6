"""Fingerprints of croma's manifests, as its ``scripts/bench/input_fingerprint.py`` makes them.

A digest of the text of some columns. One of croma's scripts takes the cells as they are written,
another as pandas reads them, to which 007 is 7, and NA a missing cell.
"""

import hashlib
import json
from collections.abc import Sequence

import pyarrow as pa

_COLUMNS = ("sample_id", "label", "confounder", "group_id", "image_path")
_OPTIONAL = ("subset",)
TEXT = (*_COLUMNS, *_OPTIONAL)  # read_table is to keep them as they are written
_MISSING_IN_PANDAS = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)
_BOOLEAN = {"True": "True", "TRUE": "True", "true": "True"} | {
    "False": "False", "FALSE": "False", "false": "False"
}  # fmt: skip


def fingerprints(manifest: pa.Table) -> set[str]:
    """Make all fingerprints that a manifest can have; none where it lacks columns.

    Examples
    --------
    >>> row = {"sample_id": "s", "label": "1", "confounder": "c", "group_id": "g"}
    >>> len(fingerprints(pa.Table.from_pylist([row | {"image_path": "a.png"}])))
    1
    >>> len(fingerprints(pa.Table.from_pylist([row | {"image_path": "007"}])))
    2
    >>> fingerprints(pa.Table.from_pylist([row]))
    set()
    """
    if not set(_COLUMNS) <= set(manifest.column_names):
        return set()
    names = [*_COLUMNS, *(name for name in _OPTIONAL if name in manifest.column_names)]
    cells = [manifest.column(name).to_pylist() for name in names]
    as_written = [[(cell or "").strip() for cell in column] for column in cells]
    return {_digest(names, columns) for columns in (as_written, [*map(_as_in_pandas, cells)])}


def _digest(names: list[str], columns: Sequence[Sequence[str]]) -> str:
    content = {
        "columns": names,
        "rows": [list(row) for row in zip(*columns, strict=True)],
        "confounder_column": "confounder",
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _as_in_pandas(cells: Sequence[str | None]) -> list[str]:
    """Write the cells of a column as pandas does that has inferred its type."""
    present = [cell for cell in cells if cell is not None and cell not in _MISSING_IN_PANDAS]
    missing = len(present) < len(cells)
    if _are(present, int) and not missing:
        return [str(int(cell)) for cell in present]
    if _are(present, float):
        written = {cell: str(float(cell)) for cell in present}
    elif all(cell in _BOOLEAN for cell in present):
        written = _BOOLEAN
    else:
        written = {cell: cell.strip() for cell in present}
    return [written.get(cell or "", "nan") for cell in cells]


def _are(cells: Sequence[str], kind: type[int] | type[float]) -> bool:
    try:
        return not any("_" in cell or kind(cell) is None for cell in cells)
    except ValueError:
        return False
