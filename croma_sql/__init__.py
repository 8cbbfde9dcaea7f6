"""Where is an encoder fragile? Per-sample robustness margins of embeddings, in SQL."""

from croma_sql.acquisitions.compared import Consistency
from croma_sql.acquisitions.paired import consistency
from croma_sql.arrays import margins, neighbours, typed_neighbours
from croma_sql.centre.clustering import clustering
from croma_sql.centre.probes import probes
from croma_sql.centre.silhouettes import silhouettes
from croma_sql.errors import (
    BenchmarkError,
    CohortError,
    CromaSqlError,
    HarmonisationError,
    ScoringError,
    SourceError,
    StatisticsError,
    WarehouseError,
)
from croma_sql.exports.anndata import export_anndata, to_anndata
from croma_sql.exports.geojson import export_geojson
from croma_sql.exports.tables import export_table
from croma_sql.harmonisation.arrays import combat, mean_centred, without_directions
from croma_sql.progress import progress_bar
from croma_sql.reports import (
    compare,
    compare_consistency,
    compare_consistency_pairs,
    compare_overall,
    compare_pairs,
    consistency_agreement,
    consistency_strata,
    consistency_summary,
    read_margins,
    strata,
    summary,
)
from croma_sql.session import connect
from croma_sql.statistics import bootstrap, differences, rank_stability, spearman
from croma_sql.statistics.enrichment import enrichment
from croma_sql.statistics.subgroups import subgroups
from croma_sql.udfs.doors.duckdb_functions import register
from croma_sql.udfs.doors.polars_expressions import CromaExpressions
from croma_sql.udfs.scope import Progress
from croma_sql.version import __version__
from croma_sql.warehouse.benchmarks.selects import add_benchmark
from croma_sql.warehouse.checks.check import check
from croma_sql.warehouse.data.attributes import join_attributes
from croma_sql.warehouse.data.embeddings import import_embeddings
from croma_sql.warehouse.data.encoders import import_encoders
from croma_sql.warehouse.data.samples import import_samples
from croma_sql.warehouse.derived.harmonise import harmonise
from croma_sql.warehouse.derived.pool import pool
from croma_sql.warehouse.info import info
from croma_sql.warehouse.layout import create_warehouse
from croma_sql.warehouse.scoring.centre import score_centre
from croma_sql.warehouse.scoring.consistency import score_consistency
from croma_sql.warehouse.scoring.scores import score

__all__ = [
    "BenchmarkError",
    "CohortError",
    "Consistency",
    "CromaExpressions",
    "CromaSqlError",
    "HarmonisationError",
    "Progress",
    "ScoringError",
    "SourceError",
    "StatisticsError",
    "WarehouseError",
    "__version__",
    "add_benchmark",
    "bootstrap",
    "check",
    "clustering",
    "combat",
    "compare",
    "compare_consistency",
    "compare_consistency_pairs",
    "compare_overall",
    "compare_pairs",
    "connect",
    "consistency",
    "consistency_agreement",
    "consistency_strata",
    "consistency_summary",
    "create_warehouse",
    "differences",
    "enrichment",
    "export_anndata",
    "export_geojson",
    "export_table",
    "harmonise",
    "import_embeddings",
    "import_encoders",
    "import_samples",
    "info",
    "join_attributes",
    "margins",
    "mean_centred",
    "neighbours",
    "pool",
    "probes",
    "progress_bar",
    "rank_stability",
    "read_margins",
    "register",
    "score",
    "score_centre",
    "score_consistency",
    "silhouettes",
    "spearman",
    "strata",
    "subgroups",
    "summary",
    "to_anndata",
    "typed_neighbours",
    "without_directions",
]
