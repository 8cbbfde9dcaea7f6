"""Threads for work of scikit-learn: the same bits for any number of them, and Ctrl-C ends it.

Each piece of work runs on one thread of OpenMP and BLAS, whose sums otherwise depend on how many
there are, and pieces run side by side. A fit takes seconds to minutes in a loop of Python that
knows no cancelling; on Ctrl-C, KeyboardInterrupt is raised within it.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from croma_sql.udfs.threads import ForEach, IsStopped, cores, never

Item = TypeVar("Item")


@contextmanager
def workers(threads: int, is_stopped: IsStopped = never) -> Iterator[ForEach]:
    """Yield ``for_each`` of `croma_sql.udfs.threads.cores`, for work of scikit-learn."""
    import sklearn.cluster
    import sklearn.linear_model
    import sklearn.neighbors  # noqa: F401  # what they load must be there to be limited

    running = _Running(ThreadpoolController())
    with cores(threads, is_stopped) as for_each, running.limited():
        try:
            yield lambda work, items, on_done=None: for_each(running.one(work), items, on_done)
        except BaseException:
            running.stop()
            raise


class _Running:
    """Threads that are at work now."""

    def __init__(self, libraries: ThreadpoolController) -> None:
        self._libraries = libraries
        self._lock = threading.Lock()
        self._threads: set[int] = set()

    def limited(self) -> Any:
        return self._libraries.limit(limits=1)

    def one(self, work: Callable[[Item], Any]) -> Callable[[Item], None]:
        def run(item: Item) -> None:
            here = threading.get_ident()
            with self._lock:
                self._threads.add(here)
            try:
                with self._libraries.limit(limits=1, user_api="openmp"):  # of this thread
                    work(item)
            finally:
                with self._lock:
                    self._threads.discard(here)

        return run

    def stop(self) -> None:
        with self._lock:
            for thread in self._threads - {threading.get_ident()}:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)
                )
