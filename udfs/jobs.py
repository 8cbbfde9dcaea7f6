"""A search in a thread of its own, so that whoever waits for it can turn away and end it.

DuckDB looks for an interruption between two calls of a function, never during one. So it begins a
search, gets tickets for it, and waits for it in many short calls (``croma_search.sql``).

Nobody tells a function that its query has ended early, in whatever way. But DuckDB holds the array
of tickets, uncopied, for as long as it evaluates the call they were made for; when it lets go of
them, the search is stopped.
"""

import itertools
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from croma_sql.udfs import ctrl_c
from croma_sql.udfs.threads import IsStopped

WAIT = 0.1  # seconds between two looks for an interruption

Search = Callable[[IsStopped], Any]


@dataclass(frozen=True, slots=True)
class _Job:
    query: int
    dropped: threading.Event = field(default_factory=threading.Event)
    found: Future[Any] = field(default_factory=Future)

    def is_stopped(self) -> bool:
        return self.dropped.is_set() or ctrl_c.has_ended(self.query)

    def run(self, search: Search) -> None:
        try:
            self.found.set_result(search(self.is_stopped))
        except BaseException as error:  # whoever waits raises it, KeyboardInterrupt too
            self.found.set_exception(error)


_jobs: dict[int, _Job] = {}
_numbers = itertools.count(1)


def begin(search: Search, rows: int, query: int) -> NDArray[np.int64]:
    """Begin a search of a query (`ctrl_c`), which lasts as long as the array that this returns.

    Returns
    -------
    (rows,) array
        The same ticket, a number above 0, in each.
    """
    ticket, job = next(_numbers), _Job(query)
    tickets = np.full(rows, ticket, np.int64)
    _jobs[ticket] = job
    weakref.finalize(tickets, _drop, ticket).atexit = False
    threading.Thread(target=job.run, args=(search,), name="croma search", daemon=True).start()
    return tickets


def _drop(ticket: int) -> None:
    _jobs.pop(ticket).dropped.set()
    if not _jobs:
        ctrl_c.unwatch()


def is_over(ticket: int) -> bool:
    """Wait `WAIT` seconds at most for a search to be over."""
    return bool(wait([_jobs[ticket].found], timeout=WAIT).done)


def result(ticket: int) -> Any:
    """Return what a search has found, or raise its exception."""
    return _jobs[ticket].found.result()
