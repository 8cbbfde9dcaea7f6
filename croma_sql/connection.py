"""Connections to DuckDB, as this package opens them."""

import duckdb


def open_duckdb() -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB that draws no progress bar, which would go into what is printed.

    DuckDB draws one where Python is used interactively. In a notebook it needs ipywidgets for that;
    without them it draws none, and refuses even to be told so.
    """
    con = duckdb.connect()
    if con.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]:
        con.execute("SET enable_progress_bar = false")
    return con
