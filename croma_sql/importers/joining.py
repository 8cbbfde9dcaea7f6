"""Join coordinates, which some writers keep in files of their own, to the vectors of a slide."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import SourceError, counted, listed
from croma_sql.importers.sources import Coordinates, Rows, SourceFile
from croma_sql.importers.together import TILE_SIZE

INDEX = "tile_index"
COORDINATES = "coordinates"  # the attribute that says where coordinates are from


def join_coordinates(
    sources: Sequence[SourceFile], given: Sequence[Coordinates], beside: Sequence[Coordinates]
) -> tuple[list[SourceFile], list[str]]:
    """Give coordinates to the tiles that have none, by slide.

    Tiles that writer and coordinates number are found by number; others are as many as the
    coordinates, and in the same order. Tiles that have coordinates but no size get the size that
    stands beside equal coordinates.

    Parameters
    ----------
    sources : any; those of other levels are given back as they are
    given, beside : coordinates the user named, and those found with the vectors: for slides of
        which neither the user nor the writer says where they are

    Returns
    -------
    the sources; sentences about slides with and without coordinates

    Raises
    ------
    SourceError
        Of a slide there are more, or fewer, coordinates than vectors, or several files of them; on
        reading, that a tile's number is not among those of the coordinates.
    """
    own = {source.coordinates.path for source in sources if source.coordinates is not None}
    beside = [file for file in beside if file.path not in own]
    of_slide = _by_slide(beside) | _own(sources) | _by_slide(given)
    joined, placed, lacking = [], 0, []
    for source in sources:
        files = of_slide.get(source.slide_id or "", [])
        if source.level != "tile" or not source.n:
            joined.append(source)
        elif "x" in source.read(0, 0).samples.column_names:
            joined.append(_sized(source, files))
        elif files:
            joined.append(_placed(source, _fitting(source, files)))
            placed += 1
        else:
            joined.append(source)
            lacking.append(source.slide_id)
    unused = of_slide.keys() - {source.slide_id for source in sources}
    notes = [
        (placed, f"coordinates joined to {counted(placed, 'slide')}"),
        (lacking, f"{counted(len(lacking), 'slide')} without coordinates: {listed(lacking)}"),
        (
            unused,
            f"{counted(len(unused), 'slide')} with coordinates but no vectors: "
            f"{listed(sorted(unused))}",
        ),
    ]
    return joined, [note for count, note in notes if count]


def _by_slide(known: Sequence[Coordinates]) -> dict[str, list[Coordinates]]:
    of_slide = defaultdict(list)
    for coordinates in known:
        of_slide[coordinates.slide_id].append(coordinates)
    return dict(of_slide)


def _own(sources: Sequence[SourceFile]) -> dict[str, list[Coordinates]]:
    return {
        source.slide_id: [source.coordinates]
        for source in sources
        if source.slide_id is not None and source.coordinates is not None
    }


def _fitting(source: SourceFile, files: Sequence[Coordinates]) -> Coordinates:
    """Choose the coordinates of a slide: of several, the ones that are as many as its vectors."""
    numbered = INDEX in source.read(0, 0).samples.column_names
    fitting = [file for file in files if file.n == source.n or (numbered and file.n > source.n)]
    if len(fitting) == 1:
        return fitting[0]
    if len(files) == 1:
        raise SourceError(
            f"{source.path} has {source.n} vectors, but {files[0].path} has {files[0].n} "
            "coordinates. They are of different tilings: give the coordinates the vectors were "
            "made at (--coordinates)"
        )
    counts = ", ".join(f"{file.n} in {str(file.path)!r}" for file in files)
    raise SourceError(
        f"{source.path} has {source.n} vectors, and its slide has coordinates in {len(files)} "
        f"files: {counts}. Give the folder of those the vectors were made at (--coordinates)"
    )


def _placed(source: SourceFile, coordinates: Coordinates) -> SourceFile:
    """Give every tile its place."""

    def read(start: int, stop: int) -> Rows:
        rows, table = source.read(start, stop), coordinates.read()
        places = _places(rows.samples, table, start, source, coordinates)
        samples = rows.samples.drop_columns([INDEX] if INDEX in rows.samples.column_names else [])
        for name in places.column_names:
            if name != INDEX:
                samples = samples.append_column(name, places.column(name))
        return Rows(samples, rows.vectors)

    return _with(source, coordinates, read)


def _places(
    samples: pa.Table, table: pa.Table, start: int, source: SourceFile, coordinates: Coordinates
) -> pa.Table:
    if INDEX in samples.column_names and INDEX in table.column_names:
        numbers = samples.column(INDEX).cast(pa.int64())
        rows = pc.index_in(numbers, value_set=table.column(INDEX))
        unknown = numbers.filter(pc.is_null(rows)).to_pylist()
        if unknown:
            raise SourceError(
                f"{coordinates.path} has no tile of number {listed(unknown)}, which "
                f"{source.path} has a vector of ({len(unknown)} such tiles)"
            )
        return table.take(rows)
    if len(table) != source.n:
        raise SourceError(
            f"{source.path} has {source.n} vectors, but {coordinates.path} has {len(table)} "
            "coordinates"
        )
    return table.slice(start, len(samples))


def _sized(source: SourceFile, files: Sequence[Coordinates]) -> SourceFile:
    """Give tiles with coordinates their size, where a file says it of the same coordinates."""
    alike = [file for file in files if file.n == source.n]
    if len(alike) != 1 or TILE_SIZE.keys() & source.attributes.keys():
        return source
    if not source.read(0, 1).samples.column("tile_size").null_count:
        return source

    def read(start: int, stop: int) -> Rows:
        rows, table = source.read(start, stop), alike[0].read().slice(start, stop - start)
        at = rows.samples.schema.get_field_index("tile_size")
        if any(not rows.samples.column(axis).equals(table.column(axis)) for axis in ("x", "y")):
            return rows
        samples = rows.samples.set_column(at, "tile_size", table.column("tile_size"))
        return Rows(samples, rows.vectors)

    return _with(source, alike[0], read)


def _with(
    source: SourceFile, coordinates: Coordinates, read: Callable[[int, int], Rows]
) -> SourceFile:
    attributes = {
        **coordinates.attributes,
        **source.attributes,
        COORDINATES: str(coordinates.path),
    }
    return replace(source, read=read, attributes=attributes)
