"""Samples that arrive with vectors, put among those of the dataset that are there."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb import CaseExpression, CoalesceOperator, ColumnExpression, Expression, StarExpression

from croma_sql.errors import SourceError, WarehouseError, listed
from croma_sql.interrupt import interruptibly
from croma_sql.warehouse.data.pieces import PLACES
from croma_sql.warehouse.data.schemas import BATCH_ROWS, common_schema, rows_of, schema_of
from croma_sql.warehouse.data.sources import Record
from croma_sql.warehouse.parquet import read_rows
from croma_sql.warehouse.views import damaged

_SETTINGS = (
    "SET enable_progress_bar = false",
    "SET memory_limit = '512MB'",  # beyond which what is sorted and joined is set aside
)
IDS = pa.schema({"sample_id": pa.string()})


@dataclass(frozen=True, slots=True)
class Arrival:
    """Samples that arrive, and what they come among.

    dataset, level : of these samples
    arriving : files of samples, those of one part each
    stored : file of the samples that are there; None: none yet
    replaced, kept : what of the same encoder and dataset is replaced, and what stays: records,
        and the parts in which they are
    held : files of vectors of other encoders of the dataset
    others : files of samples of other datasets, by name
    """

    dataset: str
    level: str
    arriving: Sequence[Path]
    stored: Path | None
    replaced: Sequence[tuple[Path, Record]]
    kept: Sequence[tuple[Path, Record]]
    held: Sequence[Path]
    others: dict[str, Path]


@contextmanager
def merged(arrival: Arrival) -> Iterator[pa.RecordBatchReader]:
    """Put samples among those of their dataset, in bounded memory.

    Tiles are sorted by slide; other samples stand in the order in which they came. What a sample
    is said to be by those who know nothing of its source, such as its label, stays with it.

    Yields
    ------
    pyarrow.RecordBatchReader
        All samples of the dataset.

    Raises
    ------
    SourceError
        Ids that are not unique, tiles that lie elsewhere than those of the same name, or columns
        whose types differ.
    """
    arriving = common_schema(map(schema_of, arrival.arriving))
    if arrival.stored is None and not arrival.others and arrival.level != "sample":
        yield rows_of(arrival.arriving, arriving)  # in order already, and each id once
        return
    with tempfile.TemporaryDirectory(prefix="croma_sql_") as aside, duckdb.connect() as con:
        for setting in _SETTINGS:
            con.execute(setting)
        con.execute("SET temp_directory = $aside", {"aside": aside})
        try:
            schema = interruptibly(con, lambda: _load(con, arrival, arriving))
            interruptibly(con, lambda: _check(con, arrival))
            relation = _put_together(con, arrival.level, schema, arriving)
            reader = interruptibly(con, lambda: relation.to_arrow_reader(BATCH_ROWS))
            yield pa.RecordBatchReader.from_batches(schema, _fetched(con, reader, schema))
        except duckdb.Error as error:
            raise damaged(error) from error


def _load(con: duckdb.DuckDBPyConnection, arrival: Arrival, arriving: pa.Schema) -> pa.Schema:
    """Load what is put together; give the columns that it will have."""
    stored = [] if arrival.stored is None else [arrival.stored]
    places = [PLACES] if arrival.level == "tile" else []
    schema = common_schema([*places, *map(schema_of, stored), arriving])
    _table(con, "here", rows_of(arrival.arriving, schema))
    _table(con, "stored", rows_of(stored, schema))
    _table(con, "replaced", _ids(arrival.replaced))
    _table(con, "held", rows_of(arrival.held, IDS))
    con.sql(_text("gone")).create("gone")
    con.sql(_text("there")).create_view("there")
    return schema


def _check(con: duckdb.DuckDBPyConnection, arrival: Arrival) -> None:
    if arrival.level == "sample":
        n, some = _found(con, "twice")
        if n:
            raise SourceError(
                f"{n} sample_id(s) are in more than one row of the sources: {listed(some)}. Give "
                "every sample its own id"
            )
        n, some = _taken(con, _ids(arrival.kept))
        if n:
            raise SourceError(
                f"{n} sample_id(s) have vectors of this encoder from other files, which are kept: "
                f"{listed(some)}. Import these files as another dataset, with --prefix, or give "
                "every sample its own id"
            )
    for other, path in arrival.others.items():
        n, some = _taken(con, rows_of([path], IDS))
        if n:
            raise WarehouseError(
                f"{n} sample_id(s) are already in dataset {other!r}: {listed(some)}. Ids are "
                "unique in a warehouse: prefix them with --prefix, or import into dataset "
                f"{other!r}"
            )
    n, some = _found(con, "displaced") if arrival.level == "tile" else (0, [])
    if n:
        raise SourceError(
            f"tiles of {n} slide(s) lie elsewhere, or are of another size, than those of other "
            f"encoders in dataset {arrival.dataset!r}: {listed(some)}. Import them as another "
            "dataset, with --prefix"
        )


def _put_together(
    con: duckdb.DuckDBPyConnection, level: str, schema: pa.Schema, arriving: pa.Schema
) -> duckdb.DuckDBPyRelation:
    there = con.view("there").set_alias("there")
    arrived = ColumnExpression("rowid").alias("croma_sql_arrived")
    here = con.table("here").select(StarExpression(), arrived).set_alias("here")
    joined = there.join(here, "here.sample_id = there.sample_id", how="outer")
    order = "croma_sql_position", "croma_sql_arrived"
    columns = [_of_both(name, name in arriving.names).alias(name) for name in schema.names]
    found = joined.select(*columns, *map(ColumnExpression, order))
    if level == "tile":
        order = "slide_id", "tile"
    return found.sort(*(ColumnExpression(name).nulls_last() for name in order)).select(
        *map(ColumnExpression, schema.names)
    )


def _of_both(name: str, arrives: bool) -> Expression:
    """Take what arrives; where that is nothing, what is there, unless its source is replaced."""
    here, there = ColumnExpression("here", name), ColumnExpression("there", name)
    either = CoalesceOperator(here, there)
    if not arrives or name == "sample_id":
        return either
    return CaseExpression(ColumnExpression("croma_sql_replaced"), here).otherwise(either)


def _fetched(
    con: duckdb.DuckDBPyConnection, reader: pa.RecordBatchReader, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    def fetch() -> pa.RecordBatch | None:
        return next(reader, None)

    while (batch := interruptibly(con, fetch)) is not None:
        yield from pa.table(batch).cast(schema).to_batches()


def _ids(records: Iterable[tuple[Path, Record]]) -> pa.RecordBatchReader:
    some = (
        read_rows(part, record.part_row, record.stored, IDS.names).cast(IDS)
        for part, record in records
    )
    return pa.RecordBatchReader.from_batches(IDS, (b for table in some for b in table.to_batches()))


def _table(con: duckdb.DuckDBPyConnection, name: str, rows: pa.RecordBatchReader) -> None:
    con.from_arrow(rows).create(name)


def _taken(
    con: duckdb.DuckDBPyConnection, elsewhere: pa.RecordBatchReader
) -> tuple[int, list[str]]:
    _table(con, "elsewhere", elsewhere)
    found = _found(con, "taken")
    con.execute("DROP TABLE elsewhere")
    return found


def _found(con: duckdb.DuckDBPyConnection, name: str) -> tuple[int, list[str]]:
    n, some = con.sql(_text(name)).fetchall()[0]
    return n, some or []


def _text(name: str) -> str:
    return (files("croma_sql.sql") / "merging" / f"{name}.sql").read_text(encoding="utf-8")
