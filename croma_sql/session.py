"""Open a connection on a warehouse, with its views."""

from pathlib import Path

import duckdb

from croma_sql.places import frozen
from croma_sql.udfs.doors.duckdb_functions import register
from croma_sql.warehouse import layout
from croma_sql.warehouse.scoring.schemas import Table
from croma_sql.warehouse.views import add_source, add_view

VIEWS = (  # each reads only what stands before it
    "data/samples",
    "data/embeddings",
    "data/encoders",
    "data/sources",
    "data/harmonised_encoders",
    "data/attributes_but",
    "edges/typed_neighbours",
    "edges/neighbours",
    "edges/first_ranks",
    "margins/margins_at",
    "margins/margins",
    "margins/margin_histogram_at",
    "margins/encoder_summary_at",
    "margins/encoder_summary",
    "margins/dominant_confounders",
    "fixed_k/neighbourhoods_of",
    "fixed_k/neighbourhoods_at",
    "fixed_k/knn_accuracy_of",
    "fixed_k/knn_accuracy_at",
    "fixed_k/knn_accuracy",
    "fixed_k/operating_points_of",
    "fixed_k/operating_points",
    "fixed_k/fixed_k_summary_of",
    "fixed_k/fixed_k_summary",
    "fixed_k/window_shortfall_of",
    "fixed_k/window_shortfall",
    "blame/suppliers_at",
    "blame/hubs_at",
    "encoders/encoder_ranking",
    "encoders/encoder_mean_ranks",
    "encoders/encoder_panel_at",
    "centre/silhouettes",
    "centre/cluster_counts",
    "centre/clusterings",
    "centre/clustering_scores",
    "centre/probe_predictions",
    "centre/probe_accuracy",
    "centre/centre_encoding",
    "centre/harmonisation",
    "consistency/unit_attributes",
    "consistency/unit_attributes_but",
    "consistency/units",
    "consistency/unit_pairs",
    "consistency/unit_neighbourhoods_at",
    "consistency/unit_consistency",
    "consistency/iok",
    "consistency/acquisitions",
    "consistency/acquisition_pairs",
    "consistency/consistency_summary",
    "consistency/collapse_check_at",
    "consistency/collapse_check",
    "consistency/consistency_agreement",
)
SOURCES: dict[Table, str] = {
    "typed_neighbours": "typed_neighbour_files",
    "neighbours": "neighbour_files",
    "units": "unit_files",
    "unit_pairs": "unit_pair_files",
    "unit_neighbourhoods": "unit_neighbourhood_files",
    "acquisition_pairs": "acquisition_pair_files",
    "acquisitions": "acquisition_files",
    "silhouettes": "silhouette_files",
    "cluster_counts": "cluster_count_files",
    "clusterings": "clustering_files",
    "probe_predictions": "probe_prediction_files",
}


def connect(warehouse: str | Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB with the functions and the views of a warehouse.

    The views show the files that are there now; connect again after importing or scoring. They read
    the Parquet files where they lie, and nothing is ever written back through them.

    Parameters
    ----------
    warehouse : path or URL
        On object storage every byte is fetched once at most, when a query first needs it. A file
        that has been replaced since cannot be read any more, which a query says.

    Returns
    -------
    duckdb.DuckDBPyConnection
        With the views and table macros of ``sql/views``, such as ``samples``, ``margins``,
        ``margins_at(m)``, ``encoder_summary`` and ``fixed_k_summary`` (``sql/README.md`` lists them
        with their columns), and what `register` adds.

    Raises
    ------
    WarehouseError
        See `croma_sql.warehouse.layout.open_warehouse`.
    """
    root = frozen(layout.open_warehouse(warehouse))
    con = register(duckdb.connect())
    con.execute("SET enable_progress_bar = false")  # it would go to stdout, into the data
    con.execute("SET arrow_large_buffer_size = true")  # scopes of more than 2^31 values
    add_source(con, "sample_files", list(layout.samples_files(root).values()))
    vectors = layout.embeddings_files(root)
    add_source(con, "embedding_files", [file.path for file in vectors])
    add_source(con, "harmonised_files", [file.path for file in vectors if file.part is None])
    add_source(con, "source_files", [file.path for file in layout.sources_files(root)])
    add_source(con, "encoder_files", layout.encoders_files(root))
    scores = layout.scores_files(root)
    for table, source in SOURCES.items():
        add_source(con, source, [file.path for file in scores if file.table == table])
    add_source(con, "member_files", list(layout.members_files(root).values()))
    for view in VIEWS:
        add_view(con, view)
    return con
