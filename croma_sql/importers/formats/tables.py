"""Tables of features, one per slide: Parquet, Arrow, CSV and TSV, of whatever writer.

Vectors are a column of lists, or a column per feature (`croma_sql.importers.features`). With a
column of sample ids, rows are samples and the other columns their attributes. Without it they are
tiles of the slide that a column ``slide_id`` names, else the file; ``x`` and ``y`` are where they
lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CohortError, SourceError, listed
from croma_sql.importers.features import (
    COORDINATES,
    Features,
    choices,
    find_features,
    matrix_of,
    without_vectors,
)
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.formats.places import PLACED
from croma_sql.importers.listing import Listing, Options, slide_id_of
from croma_sql.importers.sources import Rows, SourceFile
from croma_sql.importers.table_files import DELIMITED, TableFile, open_table, read_all
from croma_sql.importers.tables import ARROW, PARQUET, is_vector
from croma_sql.vectors import Matrix

FORMATS = {"parquet": PARQUET, "arrow": ARROW, "csv": DELIMITED}
SLIDE_ID = "slide_id"

_XY = (("x", "y"), ("coord_x", "coord_y"), ("x_coord", "y_coord"))  # without capitals
_OF_IMPORT = ("tile", "sample_id")  # what an import says of tiles itself


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Vectors of a table, by its columns.

    ids : of sample ids; None: rows are tiles
    corner : of x and y, or one of pairs; empty where there are none
    others : of attributes, with ``coord_unit`` and ``tile_size`` where they are there
    """

    path: Path
    table: TableFile
    features: Features
    ids: str | None
    corner: tuple[str, ...]
    others: tuple[str, ...]

    def read(self, start: int, stop: int) -> Rows:
        """Read some rows."""
        return Rows(self._samples(start, stop), self.matrix(start, stop))

    def matrix(self, start: int, stop: int) -> Matrix:
        """Read some vectors."""
        rows = read_all(self.table, self.features.columns, start, stop)
        return matrix_of(rows, self.features, str(self.path), start)

    def _samples(self, start: int, stop: int) -> pa.Table:
        if self.ids is None:
            tile = pa.array(np.arange(start, stop, dtype=np.int32))
            return pa.table({"tile": tile, **self._places(start, stop)})
        names = [self.ids, *self.others]
        columns = self._columns(names, start, stop)
        columns["sample_id"] = as_text(columns.pop(self.ids), self.ids)
        return pa.table(columns).select(["sample_id", *self.others])

    def _places(self, start: int, stop: int) -> dict[str, pa.Array]:
        """Read where tiles lie, and what else is known of them."""
        known = self._columns([*self.corner, *self.others], start, stop)
        if not self.corner:
            return known
        corner = [known.pop(name) for name in self.corner]
        x, y = corner if len(corner) == 2 else (pc.list_element(corner[0], i) for i in (0, 1))
        n = stop - start
        nobody = {
            "coord_unit": pa.repeat("px", n),
            "tile_size": pa.repeat(pa.scalar(None, pa.float64()), n),
        }
        places = {"x": x, "y": y} | nobody | known
        for name in ("x", "y", "tile_size"):
            places[name] = self._numbers(places[name], name)
        return {name: places[name] for name in (*PLACED, *known)}

    def _columns(self, names: Sequence[str], start: int, stop: int) -> dict[str, pa.Array]:
        if not names:
            return {}
        table = self.table.attributes(names, start, stop, [] if self.ids is None else [self.ids])
        try:
            return {name: as_column(table.column(name), name) for name in names}
        except CohortError as error:
            raise SourceError(f"{self.path}: {error}") from error

    def _numbers(self, column: pa.Array, name: str) -> pa.Array:
        try:
            return column.cast(pa.float64())
        except pa.ArrowException as error:
            raise SourceError(f"{self.path}: {name!r} of tiles is no number ({error})") from error


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | None:
    """Recognise vectors of tiles of a slide, or of samples with ids.

    Returns
    -------
    None for a table without vectors, and for text that cannot be read, as of a cohort

    Raises
    ------
    SourceError
        Cut short; more than one choice of vectors; tiles of several slides; or columns of tiles
        that an import writes itself.
    """
    suffix = path.suffix.lower()
    name = next(name for name, some in FORMATS.items() if suffix in some)
    table = None
    try:
        table = open_table(path)
        features = find_features(table.schema, options.embedding, str(path))
    except SourceError:
        is_cohort = suffix in DELIMITED if table is None else not choices(table.schema)
        if options.as_format is not None or not is_cohort:
            raise
        return None
    if features is None and options.as_format is not None:
        raise SourceError(f"{path} holds no vectors; {without_vectors(table.schema)}")
    return None if features is None else _source(path, name, table, features, listing, options)


def remarks(sources: Sequence[SourceFile], listing: Listing, options: Options) -> list[str]:
    """Refuse text that cannot be read where others of the folder are slides."""
    texts = [source.path for source in sources if source.path.suffix.lower() in DELIMITED]
    folders, known = {path.parent for path in texts}, set(texts)
    for path in listing.paths:
        if path.parent in folders and path not in known and path.suffix.lower() in DELIMITED:
            open_table(path)
    return []


def _source(
    path: Path,
    name: str,
    table: TableFile,
    features: Features,
    listing: Listing,
    options: Options,
) -> SourceFile:
    n, (size, mtime_ns) = table.count(), size_and_time(path)
    ids = options.sample_id if options.sample_id in table.schema.names else None
    slide = None if ids is not None else _slide_id(path, table, n, listing, options)
    vectors = _vectors(path, table, features, ids, n)
    first = vectors.matrix(0, min(n, 1))
    return SourceFile(
        path=path,
        format=name,
        level="sample" if slide is None else "tile",
        slide_id=slide,
        n=n,
        d=len(features.columns) if features.wide else first.shape[1],
        dtype=first.dtype.name,
        size=size,
        mtime_ns=mtime_ns,
        read=vectors.read,
    )


def _vectors(path: Path, table: TableFile, features: Features, ids: str | None, n: int) -> _Vectors:
    others = [field.name for field in table.schema if not is_vector(field.type)]
    others = [name for name in others if name not in (*features.columns, ids)]
    if ids is not None:
        return _Vectors(path, table, features, ids, (), tuple(others))
    corner = _corner(table.schema)
    others = [name for name in others if name not in corner and name.lower() != SLIDE_ID]
    for name in [name for name in others if name.lower() in _OF_IMPORT]:
        if name != "tile" or not _counts_rows(table, name, n):
            raise SourceError(
                f"{path}: column {name!r} of tiles is one that an import writes itself; rename it, "
                "or name the column of ids with --sample-id"
            )
        others.remove(name)
    return _Vectors(path, table, features, None, corner, tuple(others))


def _corner(schema: pa.Schema) -> tuple[str, ...]:
    by_name = {field.name.lower(): field.name for field in schema}
    pairs = [
        name
        for name in COORDINATES
        if name in by_name and is_vector(schema.field(by_name[name]).type)
    ]
    found = next(
        (pair for pair in (*_XY, *((name,) for name in pairs)) if {*pair} <= {*by_name}), ()
    )
    return tuple(by_name[name] for name in found)


def _counts_rows(table: TableFile, name: str, n: int) -> bool:
    column = table.attributes([name], 0, n, []).column(0)
    return bool(column.to_pylist() == list(range(n)))


def _slide_id(path: Path, table: TableFile, n: int, listing: Listing, options: Options) -> str:
    """Name the slide as its column does, or the file."""
    by_name = {name.lower(): name for name in table.schema.names}
    if SLIDE_ID in by_name and n and options.slide_id == "stem":
        column = by_name[SLIDE_ID]
        values = table.attributes([column], 0, n, [column]).column(0)
        slides = pc.unique(as_text(as_column(values, column), column)).to_pylist()
        if len(slides) > 1 or slides == [None]:
            raise SourceError(
                f"{path} holds tiles of {len(slides)} slides: {listed(slides)}, and no ids of its "
                "own. Give each row an id, and name that column with --sample-id"
            )
        return str(slides[0])
    return slide_id_of(path, listing, options, tuple(chain(*FORMATS.values())))
