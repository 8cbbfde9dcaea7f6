"""Let Ctrl-C reach a query that DuckDB is busy with."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import duckdb

from croma_sql.udfs.threads import interrupting

Result = TypeVar("Result")
WAKE = 0.1  # seconds between looks for Ctrl-C


def interruptibly(con: duckdb.DuckDBPyConnection, query: Callable[[], Result]) -> Result:
    """Run a query in a thread, so that this one sees Ctrl-C, and stop it then.

    Python hears of Ctrl-C in its main thread only, and not while that is inside DuckDB. A search
    that the query is in stops at its next task.

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
            with interrupting():
                while not wait([running], timeout=WAKE).done:
                    con.interrupt()  # again: it is forgotten between two statements
            raise
        return running.result()
