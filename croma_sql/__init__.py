"""Where is an encoder fragile? Per-sample robustness margins of embeddings, in SQL."""

from croma_sql.arrays import margins, typed_neighbours
from croma_sql.errors import CromaSqlError
from croma_sql.udfs.duckdb_functions import register
from croma_sql.udfs.polars_expressions import CromaExpressions

__version__ = "0.1.0"

__all__ = ["CromaExpressions", "CromaSqlError", "margins", "register", "typed_neighbours"]
