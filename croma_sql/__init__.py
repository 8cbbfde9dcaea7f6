"""Where is an encoder fragile? Per-sample robustness margins of embeddings, in SQL."""

from croma_sql.arrays import margins, typed_neighbours
from croma_sql.errors import CromaSqlError

__version__ = "0.1.0"

__all__ = ["CromaSqlError", "margins", "typed_neighbours"]
