"""How the loops of this folder are compiled: serial, without the GIL, kept on disk.

They know nothing of files, frames or connections and validate nothing: `croma_sql.cohort` has
done that. Nothing uses numba's threading layer, which aborts the process when two DuckDB threads
enter it at once; `threads` spreads ranges of rows over a thread pool instead.
"""

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(**flags: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile lazily and release the GIL; cache on disk where there is a place to write."""

    def compile_it(function: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any]
        try:
            compiled = njit(nogil=True, cache=True, **flags)(function)
        except RuntimeError:  # read-only installation and no writable home: nowhere to cache
            compiled = njit(nogil=True, **flags)(function)
        return compiled

    return compile_it
