"""States of stored tables for SQL."""

from collections.abc import Sequence

import duckdb

from croma_sql.warehouse.states.stored import Stored
from croma_sql.warehouse.views import statement


def add_states(con: duckdb.DuckDBPyConnection, stored: Sequence[Stored]) -> None:
    """Create the table that the view ``stored_tables`` reads."""
    columns = {
        "tables": [one.table for one in stored],
        "benchmarks": [one.benchmark for one in stored],
        "encoders": [one.encoder for one in stored],
        "datasets": [one.dataset for one in stored],
        "states": [one.state for one in stored],
        "reasons": [one.reason for one in stored],
    }
    con.execute(statement("sources", "stored_table_states"), columns)
