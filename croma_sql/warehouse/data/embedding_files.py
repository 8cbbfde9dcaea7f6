"""Read an encoder's vectors back."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from croma_sql.errors import WarehouseError, listed
from croma_sql.vectors import Matrix, as_matrix, in_memory, with_direction
from croma_sql.warehouse.parquet import read_batches, read_footer, read_metadata

ROWS_AT_ONCE = 1024
PRECISIONS = {"halffloat": np.float16, "float": np.float32, "double": np.float64}


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimension and dtype of an embeddings file, and the samples left out of it on import."""

    d: int
    dtype: str
    dropped: list[str]


def read_shape(path: Path) -> Shape:
    """Read dimension, dtype and dropped samples of an embeddings file."""
    schema = read_footer(path).schema.to_arrow_schema()
    if sorted(schema.names) != ["embedding", "sample_id"]:
        raise WarehouseError(f"{path} has columns {schema.names}; expected sample_id and embedding")
    kind = schema.field("embedding").type
    if not pa.types.is_fixed_size_list(kind) or str(kind.value_type) not in PRECISIONS:
        raise WarehouseError(
            f"{path}: column 'embedding' is {kind}; expected a fixed-size list of halffloat, float "
            "or double. Import it: croma-sql import embeddings"
        )
    dropped = read_metadata(path).get("dropped", [])
    if not isinstance(dropped, list) or not all(isinstance(sample, str) for sample in dropped):
        raise WarehouseError(f"{path}: its metadata lists dropped samples as {dropped!r:.60}")
    return Shape(kind.list_size, str(np.dtype(PRECISIONS[str(kind.value_type)])), dropped)


def read_vectors(path: Path) -> Iterator[tuple[pa.Array, Matrix]]:
    """Read ids and vectors, in batches; a NULL vector is a row of NaN.

    Raises
    ------
    WarehouseError
        A vector that is not NULL has no direction.
    """
    for batch in read_batches(path, ROWS_AT_ONCE, ["sample_id", "embedding"]):
        ids, column = batch.column("sample_id"), batch.column("embedding")
        matrix = as_matrix(column)
        unexplained = ~with_direction(in_memory(matrix).square) & np.asarray(pc.is_valid(column))
        if unexplained.any():
            bad = ids.filter(pa.array(unexplained)).to_pylist()
            raise WarehouseError(
                f"{path}: {len(bad)} vectors hold NaN or inf or are all zero: {listed(bad)}. "
                "Import them again with --on-bad-vectors drop or null"
            )
        yield ids, matrix


def checksum(vectors: Matrix, null: NDArray[np.bool_], before: int = 0) -> int:
    """CRC-32 of the vectors that are not NULL, row after row; of further ones after ``before``."""
    rows = vectors[~null] if null.any() else np.ascontiguousarray(vectors)
    return zlib.crc32(rows.data, before)
