"""Let Ctrl-C reach a query that DuckDB is busy with."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import duckdb

Result = TypeVar("Result")
WAKE = 0.1  # seconds between looks for Ctrl-C


def interruptibly(con: duckdb.DuckDBPyConnection, query: Callable[[], Result]) -> Result:
    """Run a query in a thread, so that this one sees Ctrl-C, and stop it then.

    Where the main thread is inside DuckDB, Ctrl-C ends a query only if no other thread of DuckDB is
    busy with it; ``con.interrupt()`` ends any, a search too.

    Raises
    ------
    KeyboardInterrupt
        After the query has ended.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="query") as worker:
        running = worker.submit(query)
        try:
            while not wait([running], timeout=WAKE).done:
                pass
        except KeyboardInterrupt:
            _stop(con, running)
            raise
        return running.result()


def _stop(con: duckdb.DuckDBPyConnection, running: Future[Any]) -> None:
    while not running.done():
        try:
            con.interrupt()  # again and again: it is forgotten between two statements
            wait([running], timeout=WAKE)
        except KeyboardInterrupt:
            continue  # we are stopping
