"""Open a connection on a warehouse, with its views."""

from pathlib import Path

import duckdb

from croma_sql.udfs.duckdb_functions import register
from croma_sql.warehouse import layout
from croma_sql.warehouse.views import add_source, add_view

VIEWS = (
    "samples",
    "embeddings",
    "encoders",
    "typed_neighbours",
    "neighbours",
    "first_ranks",
    "attributes_but",
    "margins_at",
    "margins",
    "margin_histogram_at",
    "encoder_summary_at",
    "encoder_summary",
    "dominant_confounders",
    "encoder_ranking",
    "encoder_mean_ranks",
    "neighbourhoods_of",
    "neighbourhoods_at",
    "knn_accuracy_of",
    "knn_accuracy_at",
    "knn_accuracy",
    "operating_points_of",
    "operating_points",
    "fixed_k_summary_of",
    "fixed_k_summary",
    "encoder_panel_at",
    "window_shortfall_of",
    "window_shortfall",
    "suppliers_at",
    "hubs_at",
)
SOURCES = {"typed_neighbours": "typed_neighbour_files", "neighbours": "neighbour_files"}


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
        With ``samples``, ``embeddings``, ``typed_neighbours``, ``neighbours``, ``first_ranks``,
        ``margins``, ``margins_at(m)``, ``encoder_summary``, ``encoders``, ``encoder_ranking``,
        ``encoder_mean_ranks``, ``dominant_confounders(benchmarks)``, and what `register` adds.

    Raises
    ------
    WarehouseError
        See `croma_sql.warehouse.layout.open_warehouse`.
    """
    root = layout.open_warehouse(warehouse)
    con = register(duckdb.connect())
    con.execute("SET enable_progress_bar = false")  # it would go to stdout, into the data
    con.execute("SET arrow_large_buffer_size = true")  # scopes of more than 2^31 values
    add_source(con, "sample_files", list(layout.samples_files(root).values()))
    add_source(con, "embedding_files", [file.path for file in layout.embeddings_files(root)])
    add_source(con, "encoder_files", layout.encoders_files(root))
    scores = layout.scores_files(root)
    for edges, source in SOURCES.items():
        add_source(con, source, [file.path for file in scores if file.edges == edges])
    for view in VIEWS:
        add_view(con, view)
    return con
