"""Tiles of slides coloured by margin, as GeoJSON that QuPath reads."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from croma_sql.errors import CromaSqlError, listed
from croma_sql.exports.features import SUFFIX, collection
from croma_sql.exports.scored import Scope, margins
from croma_sql.exports.tables import replacing
from croma_sql.exports.tiles import Tile, by_slide, checked_slides, place_tiles
from croma_sql.interrupt import interruptibly
from croma_sql.places import place
from croma_sql.reports.reading import PUBLISHED_M
from croma_sql.session import connect

ONE_FILE = (SUFFIX, ".json")
LONGEST_FILE_NAME = 255  # bytes

# What no name of a file can have on some system; Windows keeps a few for devices.
_NOWHERE = r"^[. ]|^(?=(?i:con|prn|aux|nul|com\d|lpt\d) *(?:\.|$))."
_NO_FILE_NAME = re.compile(rf'[<>:"/\\|?*%\x00-\x1f\x7f]|{_NOWHERE}')
_NOT_PLAIN = re.compile(rf"[^a-z0-9 ._()-]|{_NOWHERE}")


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was written.

    files : of each slide
    n : tiles; n_undefined : of them without a margin, which are grey
    """

    files: dict[str, Path]
    n: int
    n_undefined: int


def export_geojson(
    warehouse: str | Path,
    output: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    subset: str | None = None,
    m: int = PUBLISHED_M,
    slides: Sequence[str] | None = None,
    mpp: float | str | None = None,
    tile_size: float | None = None,
    offset_from: tuple[str, str] | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Drawn:
    """Draw the tiles of slides, coloured by margin, to be laid over them in QuPath.

    Parameters
    ----------
    warehouse : path
    output : path
        A folder, which gets a file for each slide by the name of the slide; or the file of one
        slide, named .geojson. A file appears whole or not at all; one that is there is replaced.
        Either may be a URL.
    benchmark, encoder, subset : str, optional
        Whose margins; may be left out where there is one.
    m : int, default 5
        Neighbours per type that a margin is a mean over.
    slides : sequence of str, optional
        These only.
    mpp : float or str, optional
        Micrometres per pixel of level 0, where coordinates are in micrometres: a number, or the
        attribute of the samples that holds it.
    tile_size : float, optional
        Edge of tiles of which the samples do not say it, in the unit of their coordinates.
    offset_from : pair of str, optional
        Two attributes of the slides that hold, in pixels of level 0, where the region begins that
        QuPath shows: OpenSlide's ``bounds-x`` and ``bounds-y``, to which QuPath crops MRXS and
        other slides. They are subtracted from x and y.
    on_progress : callable, optional
        Gets the share of tiles written, in [0, 1].

    Returns
    -------
    Drawn
        A tile is a detection: orange where the margin is below 0, blue above, full at 0.5 either
        way, grey where there is none. Its classification is one of four bands or says why there
        is none; margin, d_so and d_os are measurements, of which QuPath makes maps.

    Raises
    ------
    CromaSqlError
        Nothing scored, or nobody knows where the tiles lie; several slides for one file; a length
        that is none; a slide without an offset, or with several; a file that cannot be written.
    """
    output = place(output)
    _check_length("mpp", mpp)
    _check_length("tile_size", tile_size)
    _check_offset(offset_from)
    asked: Scope = {"benchmark": benchmark, "encoder": encoder, "subset": subset}
    with connect(warehouse) as con:
        scope, rows = margins(con, warehouse, asked, m)
        place_tiles(con, rows, mpp, tile_size, offset_from)
        found = checked_slides(con, [slides] if isinstance(slides, str) else slides)
        files = _files(output, list(found))
        done = _Done(sum(found.values()), on_progress)

        def write() -> None:
            for slide, tiles in by_slide(con, list(found)):
                about = {**scope, "m": m, "slide_id": slide}
                with replacing(files[slide]) as file:
                    for text in collection(about, done.counted(tiles)):
                        file.write(text.encode())

        interruptibly(con, write)
    return Drawn(files, done.n, done.n_undefined)


def _check_length(name: str, value: float | str | None) -> None:
    if isinstance(value, int | float) and not 0 < value < math.inf:
        raise CromaSqlError(f"{name} is {value}; it is a number above 0")


def _check_offset(names: tuple[str, str] | None) -> None:
    if names is not None and (isinstance(names, str) or len(names) != 2 or not all(names)):
        raise CromaSqlError(
            f"offset_from is {names!r}; it names two attributes of the slides, of x and of y, as "
            "in --offset-from bounds_x,bounds_y (Python: offset_from=('bounds_x', 'bounds_y'))"
        )


class _Done:
    """Counts what has been written."""

    def __init__(self, total: int, on_progress: Callable[[float], None] | None) -> None:
        self._total = total
        self._on_progress = on_progress
        self.n = 0
        self.n_undefined = 0

    def counted(self, tiles: Iterator[Tile]) -> Iterator[Tile]:
        for tile in tiles:
            self.n += 1
            self.n_undefined += tile["margin"] is None
            yield tile
        if self._on_progress is not None:
            self._on_progress(self.n / self._total)


def _files(output: Path, slides: list[str]) -> dict[str, Path]:
    """Name the file of each slide."""
    if output.suffix.lower() not in ONE_FILE or output.is_dir():
        return {slide: output / name for slide, name in _file_names(slides).items()}
    if len(slides) > 1:
        raise CromaSqlError(
            f"{output} would hold {len(slides)} slides: {listed(slides)}. Name one with --slide "
            "(Python: slides=), or a folder, which gets a file for each"
        )
    return dict.fromkeys(slides, output)


def _file_names(slides: list[str]) -> dict[str, str]:
    """Name the files of slides, apart also where a file system takes 'S1' and 's1' for one.

    Examples
    --------
    >>> _file_names(["S1", "s1", "S2"])
    {'S1': '%531.geojson', 's1': 's1.geojson', 'S2': 'S2.geojson'}
    """
    names = {slide: _file_name(slide) for slide in slides}
    taken = Counter(map(_regardless, names.values()))
    return {
        slide: name if taken[_regardless(name)] == 1 else _file_name(slide, _NOT_PLAIN)
        for slide, name in names.items()
    }


def _regardless(name: str) -> str:
    """Give what macOS and Windows go by: neither case nor how accents are composed."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def _file_name(slide: str, escaped: re.Pattern[str] = _NO_FILE_NAME) -> str:
    """Write a slide as the name of a file that any system can have.

    Examples
    --------
    >>> _file_name("TCGA-02-0001.v1 (left)"), _file_name('A/7 "b"')
    ('TCGA-02-0001.v1 (left).geojson', 'A%2F7 %22b%22.geojson')
    """
    name = escaped.sub(lambda found: _bytes(found[0]), slide) + SUFFIX
    if not slide or len(name.encode()) > LONGEST_FILE_NAME:
        raise CromaSqlError(
            f"slide {slide[:30]!r} has no name that a file can have; export it alone, into a "
            "file that you name (--slide, --output)"
        )
    return name


def _bytes(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())
