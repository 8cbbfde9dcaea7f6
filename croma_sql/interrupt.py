"""Let Ctrl-C reach work that is busy elsewhere: queries of DuckDB, and pools of threads.

Python raises KeyboardInterrupt between any two steps of the main thread, also when it has just
taken a lock of `threading`, which then is never released: a pool whose ``submit`` was interrupted
so would wait for ever. So work goes to a thread of its own, and this one takes no lock of its.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import duckdb

Result = TypeVar("Result")
WAKE = 0.1  # seconds between looks for Ctrl-C


def apart(
    work: Callable[[], Result],
    stop: Callable[[], Any],
    meanwhile: Callable[[], Any] = lambda: None,
) -> Result:
    """Run work in a thread of its own, so that this one sees Ctrl-C.

    Parameters
    ----------
    work : raises here what it raises there
    stop : called again and again after Ctrl-C, or an exception of ``meanwhile``, until work ends
    meanwhile : called here, ten times a second

    Raises
    ------
    KeyboardInterrupt
        After the work has ended.

    Examples
    --------
    >>> stopped = threading.Event()
    >>> apart(lambda: 6 * 7, stop=stopped.set)
    42
    """
    found: list[Result] = []
    failed: list[BaseException] = []
    running = threading.Lock()
    running.acquire()

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            running.release()

    threading.Thread(target=run, name="apart", daemon=True).start()
    try:
        while not running.acquire(timeout=WAKE):
            meanwhile()
    except BaseException:
        while not (found or failed):
            _once_more(stop)
        raise
    if failed:
        raise failed[0]
    return found[0]


def _once_more(stop: Callable[[], Any]) -> None:
    try:
        stop()
        time.sleep(WAKE)
    except KeyboardInterrupt:
        return  # we are stopping


def interruptibly(con: duckdb.DuckDBPyConnection, query: Callable[[], Result]) -> Result:
    """Run a query so that Ctrl-C stops it.

    Where the main thread is inside DuckDB, Ctrl-C ends a query only if no other thread of DuckDB is
    busy with it; ``con.interrupt()`` ends any, a search too. It is forgotten between statements.

    Raises
    ------
    KeyboardInterrupt
        After the query has ended.
    """
    return apart(query, con.interrupt)
