"""Threads for work of scikit-learn: the same bits for any number of them, and Ctrl-C ends it.

Each piece of work runs on one thread of OpenMP and BLAS, whose sums otherwise depend on how many
there are, and pieces run side by side.

A fit takes seconds to minutes in a loop of Python that knows no cancelling: k-means and logistic
regression call nothing of ours in between, and a thread cannot be ended from outside. Neither can
the fit be left behind, for it would go on using cores and memory that nobody holds. So on Ctrl-C
KeyboardInterrupt is raised within it, which only the C API of CPython can do from another thread
(PyThreadState_SetAsyncExc; a step of the loop later it is there). It is raised in a thread at most
once and only while our work runs in it: a worker that has ended, or is about to, gets none, and a
worker that is to get one waits for it.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from croma_sql.udfs.threads import ForEach, IsStopped, cores, never

Item = TypeVar("Item")
LATEST = 1.0  # seconds within which an exception that has been sent is there


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
    """Threads that are at work now.

    Each has a lock that is taken once and never given back: by the thread, when its work has
    ended, or by `stop`, which then interrupts it. Nobody ever waits for it, so an exception that
    comes at any moment leaves no one waiting.
    """

    def __init__(self, libraries: ThreadpoolController) -> None:
        self._libraries = libraries
        self._ends: dict[int, threading.Lock] = {}
        self._stopped = False

    def limited(self) -> Any:
        return self._libraries.limit(limits=1)

    def one(self, work: Callable[[Item], Any]) -> Callable[[Item], None]:
        def run(item: Item) -> None:
            end = self._ends[threading.get_ident()] = threading.Lock()
            try:
                if self._stopped:
                    raise KeyboardInterrupt
                with self._libraries.limit(limits=1, user_api="openmp"):  # of this thread
                    work(item)
            except KeyboardInterrupt:
                end.acquire(blocking=False)
                raise
            except BaseException:
                _end(end)
                raise
            _end(end)

        return run

    def stop(self) -> None:
        self._stopped = True
        for thread, end in list(self._ends.items()):
            if thread != threading.get_ident() and end.acquire(blocking=False):
                _interrupt(thread)


def _end(end: threading.Lock) -> None:
    """End work; if it is being interrupted, not before the exception is there."""
    if not end.acquire(blocking=False):
        deadline = time.monotonic() + LATEST
        while time.monotonic() < deadline:
            time.sleep(0.001)


def _interrupt(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)
    )
