"""What the importers agree on: a file of vectors, recognised and measured but not yet read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa

from croma_sql.vectors import Matrix

Level = Literal["tile", "slide", "sample"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a source, in its order.

    samples : what is known of each row, the same columns for every row of a source. Of tiles:
        ``tile`` (int32, the row in the source) and, where the writer kept coordinates, ``x`` and
        ``y`` (float64, the upper left corner), ``coord_unit`` ('px' of level 0, or 'um') and
        ``tile_size`` (float64, the edge in that unit; NULL where the writer does not say). Of
        level 'sample': ``sample_id`` (text), and whatever the source says of its samples.
    vectors : (n, d) float16, float32 or float64, as in the source
    """

    samples: pa.Table
    vectors: Matrix


@dataclass(frozen=True, slots=True)
class Coordinates:
    """A file that says where the tiles of a slide lie, and holds no vectors.

    read : the whole table, columns ``x``, ``y``, ``coord_unit``, ``tile_size`` as in `Rows`, and
        ``tile_index`` (int64) where the writer numbers its tiles: row i is the tile of that number;
        and what else the writer says of its tiles
    """

    path: Path
    format: str
    slide_id: str
    n: int
    read: Callable[[], pa.Table] = field(compare=False)
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of vectors.

    path : where it lies
    format : its writer, one of `croma_sql.importers.recognise.FORMATS`
    level : what a row is: a tile of a slide; the one vector of a slide; or a sample that brings
        its own id, in the column ``sample_id`` of its rows
    slide_id : of level 'tile' and 'slide' as the writer names it; of level 'sample' None
    n, d : vectors and features; n = 0 is a slide without tiles, and d is 0 where nobody knows it
    dtype : 'float16', 'float32' or 'float64', what `read` gives
    size, mtime_ns : bytes and time of the file, which tell whether it has changed
    read : rows start to stop, as often as it is called, from any thread
    attributes : what the writer says of the file, under the writer's own names
    coordinates : where the writer says that the coordinates of the tiles are, if they are there
    """

    path: Path
    format: str
    level: Level
    slide_id: str | None
    n: int
    d: int
    dtype: str
    size: int
    mtime_ns: int
    read: Callable[[int, int], Rows] = field(compare=False)
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    coordinates: Coordinates | None = field(default=None, compare=False)
