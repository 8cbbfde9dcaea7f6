"""Texts that look like one value: they differ only in spaces, capitals or encoded accents."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import counted

MOST = 3  # groups of alike values shown per column
MOST_VALUES = 100_000  # of a column; with more, its values are ids or free text

_Forms = Callable[[pa.Array], pa.Array]


class Alike(NamedTuple):
    """Values of a column that look like one.

    texts : as written, the most frequent first
    rows : how many rows hold each
    differ : what they differ in, in words
    """

    texts: tuple[str, ...]
    rows: tuple[int, ...]
    differ: str


def alike(column: pa.Array | pa.ChunkedArray) -> list[Alike]:
    """Find values of a text column that differ only in spaces, capitals or encoded accents.

    Parameters
    ----------
    column : (n,) text; NULL is passed over

    Returns
    -------
    list of Alike
        Empty where every value is clearly one of its own, and for more than `MOST_VALUES` values.

    Examples
    --------
    >>> alike(pa.array(["A", "A", "A ", "B", None]))
    [Alike(texts=('A', 'A '), rows=(2, 1), differ='spaces')]
    """
    counts = pc.value_counts(column.cast(pa.string()))
    counts = counts.filter(pc.is_valid(counts.field("values")))
    if len(counts) > MOST_VALUES:
        return []
    texts, rows = counts.field("values"), counts.field("counts")
    keys = _simplest(texts)
    if pc.count_distinct(keys).as_py() == len(texts):
        return []
    code = pc.dictionary_encode(keys).indices.to_numpy()
    times = np.bincount(code)
    some = pa.array(times[code] > 1)
    groups: dict[int, list[tuple[int, str]]] = {}
    found = zip(
        code[times[code] > 1].tolist(), rows.filter(some).to_pylist(),
        texts.filter(some).to_pylist(), strict=True,
    )  # fmt: skip
    for group, n, text in found:
        groups.setdefault(group, []).append((-n, text))
    return [_described(sorted(group)) for group in groups.values()]


def alike_told(name: str, column: pa.Array | pa.ChunkedArray) -> list[str]:
    """Say which values of a column look like one, a sentence per group.

    Parameters
    ----------
    name : what to call the column, such as ``column 'scanner'``

    Examples
    --------
    >>> alike_told("column 'scanner'", pa.array(["A", "A", "A ", "B"]))
    ["column 'scanner': 'A' and 'A ' differ only in spaces (2 and 1 rows)"]
    """
    found = alike(column)
    notes = [f"{name}: {_sentence(group)}" for group in found[:MOST]]
    if len(found) > MOST:
        notes.append(f"{name}: {counted(len(found) - MOST, 'more group')} of values alike")
    return notes


def _sentence(group: Alike) -> str:
    texts, rows = _joined(map(repr, group.texts)), _joined(map(str, group.rows))
    return f"{texts} differ only in {group.differ} ({rows} rows)"


def _joined(words: Iterator[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}"


def _described(group: list[tuple[int, str]]) -> Alike:
    texts = pa.array([text for _, text in group])
    differ = [
        what
        for what in _FORMS
        if pc.count_distinct(_simplest(texts, but=what)).as_py() > 1
    ]  # fmt: skip
    return Alike(
        tuple(texts.to_pylist()), tuple(-n for n, _ in group), " and ".join(differ or _FORMS)
    )


def _simplest(texts: pa.Array, but: str = "") -> pa.Array:
    for what, form in _FORMS.items():
        if what != but:
            texts = form(texts)
    return texts


def _without_spaces(texts: pa.Array) -> pa.Array:
    """Leave single spaces between words, and none around them."""
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[\s\pZ]+", " "))


_FORMS: dict[str, _Forms] = {
    "encoded accents": lambda texts: pc.utf8_normalize(texts, form="NFC"),
    "spaces": _without_spaces,
    "capitals": pc.utf8_lower,
}
