"""One search at a time uses the cores; ranges of rows spread over a pool made for the call.

DuckDB calls a function from several of its threads at once. Each of those calls could fill every
core, and BLAS would fill them again; instead calls queue here, BLAS runs on one thread inside the
pool, and its setting is put back afterwards. A pool per call (a tenth of a millisecond) leaves
nothing behind that a forked child could inherit broken.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
ForEach = Callable[..., Any]
IsStopped = Callable[[], bool]
IN_LINE = 0.1  # seconds between two looks of a search that waits
_cores = threading.RLock()  # whoever is told of a search's progress may search too, in its thread


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


def never() -> bool:
    """Nobody stops this search; Ctrl-C in the thread that called it does."""
    return False


@contextmanager
def cores(threads: int, is_stopped: IsStopped = never) -> Iterator[ForEach]:
    """Hold the cores; yields ``for_each(work, items, on_done=None)``.

    ``for_each`` runs ``work(item)`` for every item on up to ``threads`` threads and calls
    ``on_done(item)`` in the calling thread as items finish. The first exception, or Ctrl-C, stops
    the rest: what has begun ends (an item takes about a tenth of a second), nothing else starts.

    Raises
    ------
    KeyboardInterrupt
        In line and at any item, once ``is_stopped()``.
    """
    with _turn(is_stopped), _blas().limit(limits=1, user_api="blas"):
        if threads == 1:
            yield partial(one_by_one, is_stopped=is_stopped)
        else:
            with ThreadPoolExecutor(threads, thread_name_prefix="croma") as pool:
                yield partial(_spread, pool, is_stopped)


@contextmanager
def _turn(is_stopped: IsStopped) -> Iterator[None]:
    lock = _cores  # in a forked child that name may mean another when this one is released
    while not lock.acquire(timeout=IN_LINE):
        _raise_if(is_stopped)
    try:
        yield
    finally:
        lock.release()


def _raise_if(is_stopped: IsStopped) -> None:
    if is_stopped():
        raise KeyboardInterrupt


def one_by_one(
    work: Callable[[Item], None],
    items: Sequence[Item],
    on_done: Callable[[Item], None] | None = None,
    is_stopped: IsStopped = never,
) -> None:
    """Work in the calling thread."""
    for item in items:
        _raise_if(is_stopped)
        work(item)
        if on_done is not None:
            on_done(item)


def _spread(
    pool: ThreadPoolExecutor,
    is_stopped: IsStopped,
    work: Callable[[Item], None],
    items: Sequence[Item],
    on_done: Callable[[Item], None] | None = None,
) -> None:
    pending: dict[Future[None], Item] = {}
    done: SimpleQueue[Future[None]] = SimpleQueue()
    try:
        for item in items:
            future = pool.submit(work, item)
            pending[future] = item
            future.add_done_callback(done.put)
        for _ in range(len(pending)):
            future = _next(done, is_stopped)
            future.result()
            _raise_if(is_stopped)
            if on_done is not None:
                on_done(pending[future])
    except BaseException:
        for future in pending:
            future.cancel()
        raise


def _next(done: "SimpleQueue[Future[None]]", is_stopped: IsStopped) -> "Future[None]":
    """Wait for work to be done, and wake now and then.

    Once Polars has run a query, its handler of SIGINT stands before Python's and lets the system
    go on with a wait (SA_RESTART), so that Ctrl-C would be heard only when work is done.
    """
    while True:
        try:
            return done.get(timeout=IN_LINE)
        except Empty:
            _raise_if(is_stopped)
