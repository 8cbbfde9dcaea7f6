"""Open a connection on a warehouse, with its views."""

from importlib.resources import files
from pathlib import Path

import duckdb

from croma_sql.errors import WarehouseError
from croma_sql.udfs.duckdb_functions import register
from croma_sql.warehouse import layout

VIEWS = ("samples", "embeddings", "typed_neighbours", "margins_at", "margins", "encoder_summary")


def connect(warehouse: str | Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB with the functions and the views of a warehouse.

    The views show the files that are there now; connect again after importing or scoring. They read
    the Parquet files where they lie, and nothing is ever written back through them.

    Parameters
    ----------
    warehouse : path

    Returns
    -------
    duckdb.DuckDBPyConnection
        With ``samples``, ``embeddings``, ``typed_neighbours``, ``margins``, ``margins_at(m)``,
        ``encoder_summary``, and what `register` adds.

    Raises
    ------
    WarehouseError
        See `croma_sql.warehouse.layout.open_warehouse`.
    """
    root = layout.open_warehouse(warehouse)
    con = register(duckdb.connect())
    con.execute("SET arrow_large_buffer_size = true")  # scopes of more than 2^31 values
    add_source(con, "sample_files", list(layout.samples_files(root).values()))
    add_source(con, "embedding_files", [file.path for file in layout.embeddings_files(root)])
    add_source(con, "typed_neighbour_files", [f.path for f in layout.typed_neighbours_files(root)])
    for view in VIEWS:
        add_view(con, view)
    return con


def add_source(con: duckdb.DuckDBPyConnection, name: str, paths: list[Path]) -> None:
    """Create the view ``sql/sources/<name>.sql`` over files; empty where there are none."""
    bound = {"files": [str(path) for path in paths]}
    try:
        if paths:
            con.sql(_text("sources", name), params=bound).create_view(name)
        else:
            con.sql(_text("sources", f"no_{name}")).create_view(name)
    except duckdb.Error as error:
        raise WarehouseError(
            f"files of the warehouse cannot be read: {error}. croma-sql check names all that are "
            "damaged"
        ) from error


def add_view(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Create the view or macro ``sql/views/<name>.sql``."""
    con.execute(_text("views", name))


def _text(folder: str, name: str) -> str:
    return (files("croma_sql.sql") / folder / f"{name}.sql").read_text(encoding="utf-8")
