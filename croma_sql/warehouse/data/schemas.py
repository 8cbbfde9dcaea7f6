"""Samples of several files as those of one: columns by name, types that hold both."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from croma_sql.errors import SourceError
from croma_sql.warehouse.parquet import read_batches, read_footer

BATCH_ROWS = 1 << 17
IDS = pa.schema({"sample_id": pa.string()})


def common_schema(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Find the columns of all files, by name, each of a type that holds what is in any of them.

    Raises
    ------
    SourceError
        A column that is text in one and a number in another, or the like.
    """
    try:
        found = pa.unify_schemas(list(schemas), promote_options="permissive")
    except pa.ArrowException as error:
        raise SourceError(
            f"a column of the samples is of another type in another file: {error}. Give it one "
            "type in all files, and in the samples that are there"
        ) from error
    return pa.schema(
        field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in found
    )


def put_together(tables: Sequence[pa.Table]) -> pa.Table:
    """Put tables one below the other; errors as `common_schema`."""
    if not tables:
        return pa.table({"sample_id": pa.array([], pa.string())})
    schema = common_schema(table.schema for table in tables)
    return pa.concat_tables([_aligned(table, schema) for table in tables])


def schema_of(path: Path) -> pa.Schema:
    """Read the schema of a file."""
    return read_footer(path).schema.to_arrow_schema()


def rows_of(paths: Iterable[Path], schema: pa.Schema) -> pa.RecordBatchReader:
    """Read files one after the other, with the columns of a schema, NULL where a file has none."""

    def batches() -> Iterator[pa.RecordBatch]:
        for path in paths:
            names = [name for name in schema_of(path).names if name in schema.names]
            for batch in read_batches(path, BATCH_ROWS, names):
                yield from _aligned(pa.table(batch), schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
