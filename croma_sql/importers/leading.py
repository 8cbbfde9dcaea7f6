"""Columns before the features of a vector: where the tile is, or its number.

Some writers keep ``level, x, y`` in front of the features, in one array. Taken for features,
numbers of thousands drown all others in every distance.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.errors import CromaSqlError, SourceError, listed
from croma_sql.importers.formats.places import PLACED
from croma_sql.importers.sources import Rows, SourceFile
from croma_sql.vectors import Matrix

LEADING = "leading_columns"  # the attribute that says which columns were taken off
LEVEL = "level"
NONE = "none"  # how the command line says that every column is a feature

ROWS = 64  # of a file that are looked at
_FILES = 5  # of each writer that are looked at
_BITS = 10.0  # a column is whole by chance once in 2 ** _BITS
_MOST = 16  # columns before the features
_ALIKE = 0.01  # share of the other columns that may be whole, too
_HALF_PRECISIONS = ((16, 2.0**-7), (13, 2.0**-10))  # bits of float32 that bfloat16, float16 lack
_GUESSES = {1: "tile_number", 2: "x,y", 3: "level,x,y"}
_WITHOUT = "Save the vectors without them"
_TAKEN = frozenset({"sample_id", "slide_id", "tile", "coord_unit", "tile_size"})


@dataclass(frozen=True, slots=True)
class Edges:
    """How many columns before, and behind, the features hold whole numbers unlike the others."""

    first: int
    last: int


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Check the names of columns before the features.

    Raises
    ------
    SourceError
        An empty name, one that repeats, one that an import writes itself, or x without y.
    """
    told = tuple(name.strip() for name in names)
    lower = [name.lower() for name in told]
    if not all(told) or len(set(lower)) < len(lower):
        raise SourceError(
            f"the leading columns are {listed(told, show=9)}; give each a name of its own"
        )
    if _TAKEN & set(lower):
        raise SourceError(
            f"a leading column is called {listed(sorted(_TAKEN & set(lower)))}, which an import "
            "writes itself; give it another name"
        )
    if ("x" in told) != ("y" in told):
        raise SourceError("of the leading columns one is x or y, and the other is missing")
    return told


def without_leading(
    source: SourceFile, names: Sequence[str], unit: str | None = None
) -> SourceFile:
    """Take columns off the vectors of a source, and keep them as columns of its samples.

    Parameters
    ----------
    names : of the columns, from the first; ``x`` and ``y`` are the coordinates of tiles
    unit : of coordinates; None where it is not known

    Raises
    ------
    SourceError
        The vectors are not longer than that.
    """
    if not source.n and not source.d:
        return source
    if source.d <= len(names):
        raise SourceError(
            f"{source.path} has vectors of {source.d} values, of which {len(names)} are to be "
            f"leading columns ({', '.join(names)}); no feature would be left"
        )
    return replace(
        source,
        d=source.d - len(names),
        read=partial(_read, source, tuple(names), unit),
        attributes={**source.attributes, LEADING: ",".join(names)},
    )


def _read(
    source: SourceFile, names: tuple[str, ...], unit: str | None, start: int, stop: int
) -> Rows:
    rows = source.read(start, stop)
    samples = rows.samples
    leading = rows.vectors[:, : len(names)].astype(np.float64)
    columns = {name: leading[:, i] for i, name in enumerate(names)}
    places = [name for name in PLACED if name in samples.column_names]
    if "x" in columns and places:
        raise SourceError(
            f"{source.path} has coordinates beside its vectors, and x and y among its leading "
            "columns; give the latter other names"
        )
    for name in ("x", "y") if "x" in columns else ():
        samples = samples.append_column(name, pa.array(columns.pop(name)))
    if len(columns) < len(names):
        n = len(samples)
        samples = samples.append_column("coord_unit", pa.repeat(pa.scalar(unit, pa.string()), n))
        samples = samples.append_column("tile_size", pa.nulls(n, pa.float64()))
    for name, values in columns.items():
        samples = samples.append_column(name, _attribute(name, values, source))
    return Rows(samples, np.ascontiguousarray(rows.vectors[:, len(names) :]))


def _attribute(name: str, values: NDArray[np.float64], source: SourceFile) -> pa.Array:
    column = pa.array(values)
    if name != LEVEL:
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise SourceError(
            f"{source.path}: leading column {name!r} holds numbers that are not whole; if it is no "
            "level, give it another name"
        ) from None


def check_features(sources: Sequence[SourceFile]) -> None:
    """Refuse files whose vectors seem to have something else than features before or behind them.

    Of each writer a few files are looked at, and of each file a few rows.

    Raises
    ------
    SourceError
    """
    of_format: dict[str, list[SourceFile]] = {}
    for source in sources:
        if source.n and source.d > 1:
            of_format.setdefault(source.format, []).append(source)
    for files in of_format.values():
        step = max(1, len(files) // _FILES)
        for source in files[::step][:_FILES]:
            check_matrix(
                str(source.path),
                _some_vectors(source),
                "Name them, and they become columns of the samples: --leading-columns {names} "
                "(Python: leading_columns=)",
            )


def check_matrix(name: str, vectors: Matrix, cure: str) -> None:
    """Refuse vectors that seem to have something else than features before or behind them.

    Parameters
    ----------
    name : of what they are from
    vectors : (n, d), some of them
    cure : what to do about leading columns, where ``{names}`` is what they may be

    Raises
    ------
    SourceError
    """
    found = edges(vectors)
    features = (
        "If they are features all the same, say --leading-columns none (Python: leading_columns=())"
    )
    for where, k in (("first", found.first), ("last", found.last)):
        if not k:
            continue
        columns = f"{where} column" if k == 1 else f"{where} {k} columns"
        holds = "holds" if k == 1 else "hold"
        mend = cure.format(names=_GUESSES.get(k, "NAME,...")) if where == "first" else _WITHOUT
        raise SourceError(
            f"{name}: the {columns} of the vectors {holds} whole numbers only, unlike the other "
            f"{vectors.shape[1] - k}: perhaps where a tile is, and no feature. {mend}. {features}"
        )


def edges(vectors: Matrix) -> Edges:
    """Count columns of whole numbers before and behind others that are not.

    A column counts where its numbers would hardly be whole by chance, given their precision: large
    ones of float16 always are. All zero, or within [-1, 1], it does no harm, and is no coordinate.

    Examples
    --------
    >>> features = np.linspace(0.1, 0.9, 12).reshape(4, 3)
    >>> edges(np.hstack([[[16, 100, 7]] * 4, features]))
    Edges(first=3, last=0)
    >>> edges(np.arange(12.0).reshape(4, 3)), edges(features)
    (Edges(first=0, last=0), Edges(first=0, last=0))
    """
    rows = vectors[np.isfinite(vectors).all(axis=1)]
    if not rows.size:
        return Edges(0, 0)
    whole = (rows == np.floor(rows)).all(axis=0)
    telling = whole & (_bits(rows) >= _BITS)
    first = _run(whole, telling, rows)
    last = 0 if first else _run(whole[::-1], telling[::-1], rows[:, ::-1])
    return Edges(first, last)


def _run(whole: NDArray[np.bool_], telling: NDArray[np.bool_], rows: Matrix) -> int:
    """Count the whole columns that come first, up to the last that tells."""
    run = len(whole) if whole.all() else int(np.argmin(whole))
    told = np.flatnonzero(telling[:run])
    k = int(told[-1]) + 1 if len(told) else 0
    others = telling[k:]
    if not k or k > _MOST or len(others) < 2 * k or others.mean() > _ALIKE:
        return 0
    return k if np.abs(rows[:, :k]).max() > 1 else 0


def _bits(rows: Matrix) -> NDArray[np.float64]:
    """Measure for each column how unlikely it is that its numbers are whole, in bits."""
    sizes = np.abs(rows.astype(np.float64))
    step = np.where(sizes > 0, sizes * _precision(rows), 1.0)
    bits: NDArray[np.float64] = np.maximum(0.0, -np.log2(step)).sum(axis=0)
    return bits


def _precision(rows: Matrix) -> float:
    """Tell the precision the numbers had, which may be less than that of their type."""
    kind = rows.dtype
    if kind == np.float16:
        return 2.0**-10
    narrow = rows.astype(np.float32)
    if not np.array_equal(narrow, rows):
        return float(np.finfo(kind).eps)
    bits = np.ascontiguousarray(narrow).view(np.uint32)
    lost = (eps for zeros, eps in _HALF_PRECISIONS if not np.any(bits & ((1 << zeros) - 1)))
    return next(lost, 2.0**-23)


def _some_vectors(source: SourceFile) -> Matrix:
    """Read the first vectors; of a file that cannot be read, the import itself will say so."""
    with suppress(CromaSqlError, OSError, ValueError, LookupError, RuntimeError):
        return source.read(0, min(source.n, ROWS)).vectors
    return np.empty((0, source.d), np.float32)
