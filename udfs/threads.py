"""One search at a time uses the cores; ranges of rows spread over a pool made for the call.

DuckDB calls a function from several of its threads at once. Each of those calls could fill every
core, and BLAS would fill them again; instead calls queue here, BLAS runs on one thread inside the
pool, and its setting is put back afterwards. A pool per call (a tenth of a millisecond) leaves
nothing behind that a forked child could inherit broken.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
ForEach = Callable[..., Any]
_cores = threading.RLock()  # a search may be asked for by whoever is told of another's progress
_interrupted = threading.Event()


@contextmanager
def interrupting() -> Iterator[None]:
    """Stop every search at its next task while the block lasts."""
    _interrupted.set()
    try:
        yield
    finally:
        _interrupted.clear()


def _stop_if_interrupted() -> None:
    if _interrupted.is_set():
        raise KeyboardInterrupt


def _renew_lock() -> None:
    global _cores
    _cores = threading.RLock()  # its holder, if any, does not exist in the child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def available_cores() -> int:
    """Cores this process may run on (its affinity, where the system tells it)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def cores(threads: int) -> Iterator[ForEach]:
    """Hold the cores; yields ``for_each(work, items, on_done=None)``.

    ``for_each`` runs ``work(item)`` for every item on up to ``threads`` threads and calls
    ``on_done(item)`` in the calling thread as items finish. The first exception, or Ctrl-C, stops
    the rest: what has begun ends (an item takes about a tenth of a second), nothing else starts.
    """
    with _cores, _blas().limit(limits=1, user_api="blas"):
        if threads == 1:
            yield one_by_one
        else:
            with ThreadPoolExecutor(threads, thread_name_prefix="croma") as pool:
                yield partial(_spread, pool)


def one_by_one(
    work: Callable[[Item], None],
    items: Sequence[Item],
    on_done: Callable[[Item], None] | None = None,
) -> None:
    """Work in the calling thread."""
    for item in items:
        _stop_if_interrupted()
        work(item)
        if on_done is not None:
            on_done(item)


def _spread(
    pool: ThreadPoolExecutor,
    work: Callable[[Item], None],
    items: Sequence[Item],
    on_done: Callable[[Item], None] | None = None,
) -> None:
    pending: dict[Future[None], Item] = {}
    try:
        for item in items:
            pending[pool.submit(work, item)] = item
        for future in as_completed(pending):
            future.result()
            _stop_if_interrupted()
            if on_done is not None:
                on_done(pending[future])
    except BaseException:
        for future in pending:
            future.cancel()
        raise
