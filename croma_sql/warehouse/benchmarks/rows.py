"""What the SELECT of any benchmark gives: text, without NULLs, of samples that there are."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import BenchmarkError, CohortError, listed

SHAPE = (
    "A benchmark is one SELECT over samples. One of margins gives sample_id, label, confounder and "
    "group_id; where scopes overlap or differ, subset; and where neighbours must agree on more, "
    "match_... columns. One of paired acquisitions gives sample_id, unit and acquisition"
)


def as_texts(
    name: str, table: pa.Table, keep: Callable[[str], bool] = lambda _: False
) -> dict[str, pa.Array]:
    """Read columns as text, under their names in small letters but for those to ``keep``."""
    if not len(table):
        raise BenchmarkError(f"benchmark {name!r} gives no rows; check its WHERE")
    try:
        return {
            column if keep(column) else column.lower(): as_text(as_column(values, column), column)
            for column, values in zip(table.column_names, table.columns, strict=True)
        }
    except CohortError as error:
        raise BenchmarkError(f"benchmark {name!r}: {error}") from error


def check_no_nulls(values: pa.Array, ids: pa.Array, column: str, name: str) -> None:
    """Refuse NULLs, naming their samples."""
    if values.null_count:
        shown = ids.filter(pc.is_null(values)).to_pylist()
        raise BenchmarkError(
            f"benchmark {name!r}: {column} is NULL in {len(shown)} of {len(values)} rows, for "
            f"samples {listed(shown)}. Leave them out in its WHERE, or fill the cells in"
        )


def check_known(ids: pa.Array, known: pa.ChunkedArray, name: str) -> None:
    """Refuse ids that no sample has."""
    strangers = ids.filter(pc.invert(pc.is_in(ids, known)))
    if len(strangers):
        raise BenchmarkError(
            f"benchmark {name!r} gives {len(strangers)} sample_id(s) that no sample has: "
            f"{listed(strangers.to_pylist())}"
        )
