"""Silhouettes as a DuckDB function over lists, which ``croma_silhouettes.sql`` gathers."""

import duckdb
import numpy as np
import pyarrow as pa

from croma_sql.centre.rows import read_rows
from croma_sql.centre.silhouettes import measure
from croma_sql.cohort import Names
from croma_sql.errors import CohortError

# What DuckDB prints as the missing function where a stored view is opened without `register`.
FUNCTION = (
    "the croma_sql silhouettes "
    "(to add them, run in python: import croma_sql; croma_sql.register(con))"
)
MEASURED = "STRUCT(silhouette DOUBLE, usable BOOLEAN)[]"


def create_function(con: duckdb.DuckDBPyConnection) -> None:
    """Create the function of ``croma_silhouettes.sql``, which gets one row of lists per scope."""
    con.create_function(  # type: ignore[call-overload] # its types forget Arrow functions
        FUNCTION, _measured, None, MEASURED, type="arrow", null_handling="special"
    )


def _measured(*arguments: pa.ChunkedArray) -> pa.LargeListArray:
    """Measure each scope (one row of lists); returns one list of `MEASURED` per scope."""
    found = [_of_scope(*scope) for scope in zip(*arguments, strict=True)]
    bounds = np.concatenate([[0], np.cumsum([len(one) for one in found])]).astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(bounds), pa.concat_arrays(found))


def _of_scope(
    sample_names: pa.Scalar,
    vectors: pa.Scalar,
    clusters: pa.Scalar,
    on_bad_vectors: pa.Scalar,
    threads: pa.Scalar,
    scope: pa.Scalar,
    columns: pa.Scalar,
) -> pa.StructArray:
    for name, value in [*columns.items(), ("on_bad_vectors", on_bad_vectors)]:
        if value.as_py() is None:
            raise CohortError(f"{name} is NULL; leave it out to take its default")
    called = {name: value.as_py() for name, value in columns.items()}
    where = "" if scope.as_py() is None else f"scope {scope.as_py()!r}"
    rows = read_rows(
        vectors.values,
        {called["cluster"]: clusters.values},
        sample_names.values,
        on_bad_vectors.as_py(),
        Names(called["sample_id"], called["embedding"], where=where, result="silhouette"),
    )
    silhouette = measure(rows, called["cluster"], threads.as_py())
    return pa.StructArray.from_arrays(
        [pa.array(silhouette, mask=np.isnan(silhouette)), pa.array(rows.scope.usable)],
        names=["silhouette", "usable"],
    )
