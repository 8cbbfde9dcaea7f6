"""Samples that arrive with vectors, put among those of the dataset that are there.

Tiles are as many as there may be, so they are read in the order of their slides from both sides,
some slides at a time. Other samples are few enough to be put together at once.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import SourceError
from croma_sql.warehouse.data.schemas import BATCH_ROWS, common_schema, rows_of, schema_of
from croma_sql.warehouse.parquet import read_batches
from croma_sql.warehouse.slides.pieces import PLACES

LAST = "\U0010ffff"  # stands for no slide: such samples come last
ORDER = [("slide_id", "ascending"), ("tile", "ascending")]
_MEASURED = ("x", "y", "coord_unit", "tile_size")


@dataclass(frozen=True, slots=True)
class Arrival:
    """Samples that arrive, and what they come among.

    dataset, level : of these samples
    arriving : files of samples, those of one part each
    stored : file of the samples that are there; None: none yet
    replaced : slides whose sources are replaced, or of level 'sample' the ids of such samples; but
        not those that other encoders have from sources of their own
    held : gives the ids of all vectors that other encoders have of the dataset
    """

    dataset: str
    level: str
    arriving: Sequence[Path]
    stored: Path | None
    replaced: pa.Array
    held: Callable[[], pa.Array]


def merged(arrival: Arrival) -> pa.RecordBatchReader:
    """Put samples among those of their dataset.

    Tiles are sorted by slide; other samples stand in the order in which they came. What is said of
    a sample by those who know nothing of its source, such as its label, stays with it.

    Returns
    -------
    pyarrow.RecordBatchReader
        All samples of the dataset.

    Raises
    ------
    SourceError
        Columns whose types differ; while reading, tiles that lie elsewhere than those of the same
        name.
    """
    stored = [] if arrival.stored is None else [arrival.stored]
    places = [PLACES] if arrival.level == "tile" else []
    arriving = common_schema(map(schema_of, arrival.arriving))
    schema = common_schema([*places, *map(schema_of, stored), arriving])
    here = rows_of(arrival.arriving, schema)
    if not stored:
        return here
    if arrival.level == "tile":
        pairs = _by_slides(_whole_slides(_in_order(stored[0], schema)), _whole_slides(here))
    else:
        pairs = iter([(rows_of(stored, schema).read_all(), here.read_all())])
    tables = (_put_together(arrival, frozenset(arriving.names), *pair) for pair in pairs)
    return pa.RecordBatchReader.from_batches(schema, (b for t in tables for b in t.to_batches()))


def _put_together(
    arrival: Arrival, arriving: Collection[str], there: pa.Table, here: pa.Table
) -> pa.Table:
    """Put samples of two sides together, those that are on both once."""
    there, here = there.combine_chunks(), here.combine_chunks()
    known, came = (side.column("sample_id").combine_chunks() for side in (there, here))
    told_by = there.column("sample_id" if arrival.level == "sample" else "slide_id")
    replaced = pc.is_in(told_by.combine_chunks(), arrival.replaced)
    gone = pc.and_(replaced, pc.invert(pc.is_in(known, came)))
    if pc.any(gone).as_py():
        kept = pc.invert(pc.and_(gone, pc.invert(pc.is_in(known, arrival.held()))))
        there, known, replaced = there.filter(kept), known.filter(kept), replaced.filter(kept)
    if not len(there) or not len(here):
        return here if len(here) else there
    ids = pa.concat_arrays([known, came.filter(pc.invert(pc.is_in(came, known)))])
    at, came_at = pc.index_in(ids, known), pc.index_in(ids, came)
    theirs, ours = there.take(at), here.take(came_at)
    replaced = pc.and_(pc.fill_null(replaced.take(at), False), pc.is_valid(came_at))
    if arrival.level == "tile":
        _check_places(arrival.dataset, theirs, ours, replaced)
    table = pa.table(
        [
            _of_both(theirs.column(name), ours.column(name), replaced, name in arriving)
            for name in there.column_names
        ],
        schema=there.schema,
    )
    return table.sort_by(ORDER) if arrival.level == "tile" else table


def _of_both(
    theirs: pa.ChunkedArray, ours: pa.ChunkedArray, replaced: pa.Array, arrives: bool
) -> pa.ChunkedArray:
    """Take what arrives; where that is nothing, what is there, unless its source is replaced."""
    either = pc.coalesce(ours, theirs)
    return pc.if_else(replaced, ours, either) if arrives and pc.any(replaced).as_py() else either


def _check_places(dataset: str, theirs: pa.Table, ours: pa.Table, replaced: pa.Array) -> None:
    """Refuse tiles that lie elsewhere, or are of another size, where both sides say."""
    differ = [pc.not_equal(theirs.column(name), ours.column(name)) for name in _MEASURED]
    moved = pc.and_(reduce(pc.or_kleene, differ), pc.invert(replaced))
    slides = ours.column("slide_id").filter(pc.fill_null(moved, False)).unique().to_pylist()
    if slides:
        raise SourceError(
            f"tiles of slide {slides[0]!r} lie elsewhere, or are of another size, than those of "
            f"other encoders in dataset {dataset!r}. Import them as another dataset, with a "
            "--prefix"
        )


def _in_order(path: Path, schema: pa.Schema) -> pa.RecordBatchReader:
    """Read tiles slide by slide: sorted at once, if somebody has stored them in another order."""
    if _is_in_order(path):
        return rows_of([path], schema)
    return rows_of([path], schema).read_all().sort_by(ORDER).to_reader()


def _is_in_order(path: Path) -> bool:
    last: list[pa.Table] = []
    for batch in read_batches(path, BATCH_ROWS, [name for name, _ in ORDER]):
        rows = pa.concat_tables([*last, pa.table(batch)])
        slide, tile = _slides(rows), rows.column("tile")
        before, after = slide.slice(0, len(rows) - 1), slide.slice(1)
        follows = pc.and_(
            pc.equal(before, after), pc.less(tile.slice(0, len(rows) - 1), tile.slice(1))
        )
        if not pc.all(pc.or_kleene(pc.less(before, after), follows)).as_py():
            return False
        last = [rows.slice(len(rows) - 1)]
    return True


def _by_slides(
    there: Iterator[pa.Table], here: Iterator[pa.Table]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Pair what is said of the same slides on two sides, some slides at a time."""
    a, b = next(there, None), next(here, None)
    while a is not None and b is not None:
        end = min(_slides(a)[-1].as_py(), _slides(b)[-1].as_py())
        (some_a, a), (some_b, b) = _cut(a, end), _cut(b, end)
        yield some_a, some_b
        a, b = (a if len(a) else next(there, None)), (b if len(b) else next(here, None))
    for rest, others, is_there in ((a, there, True), (b, here, False)):
        for table in chain([] if rest is None else [rest], others):
            yield (table, table.slice(0, 0)) if is_there else (table.slice(0, 0), table)


def _cut(table: pa.Table, end: str) -> tuple[pa.Table, pa.Table]:
    n = pc.sum(pc.less_equal(_slides(table), end)).as_py()
    return table.slice(0, n), table.slice(n)


def _whole_slides(rows: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Cut rows that come in the order of slides between slides only."""
    table = rows.schema.empty_table()
    for batch in rows:
        table = pa.concat_tables([table, pa.table(batch)])
        slides = _slides(table)
        n = pc.sum(pc.not_equal(slides, slides[-1])).as_py()
        if n:
            yield table.slice(0, n)
            table = table.slice(n)
    if len(table):
        yield table


def _slides(table: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(table.column("slide_id"), LAST)
