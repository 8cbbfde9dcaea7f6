"""Which queries of the main thread have been ended by Ctrl-C.

Python hears of Ctrl-C in its main thread only. DuckDB ends the query that this thread waits for,
but does not tell the function that another of its threads is in for that query. So SIGINT's handler
is wrapped while a search runs, and whoever works for a query asks here.
"""

import ctypes
import itertools
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_queries = itertools.count(1)
_last_ended = 0


def watched_query() -> int:
    """Return a number for a query that begins in this thread; 0 where that is not the main one."""
    if threading.current_thread() is not threading.main_thread():
        return 0
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler) and not isinstance(handler, _Heard):
        signal.signal(signal.SIGINT, _Heard(handler))
    return next(_queries)


def has_ended(query: int) -> bool:
    """Tell whether Ctrl-C has come since a query began."""
    return 0 < query <= _last_ended


def unwatch() -> None:
    """Put the handler back as soon as the main thread runs Python; no other thread may.

    asyncio and trio, for instance, take Ctrl-C over only where they find Python's own handler.
    """
    ctypes.pythonapi.Py_AddPendingCall(_pending, None)


def _put_back(_: int | None) -> int:
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, _Heard):
        signal.signal(signal.SIGINT, handler.wrapped)
    return 0


_pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_put_back)  # must not be collected


class _Heard:
    """A handler of SIGINT that notes when the one it wraps raises, which is what ends a query."""

    def __init__(self, wrapped: Callable[[int, FrameType | None], Any]) -> None:
        self.wrapped = wrapped

    def __call__(self, signum: int, frame: FrameType | None) -> Any:
        global _last_ended
        try:
            return self.wrapped(signum, frame)
        except BaseException:
            _last_ended = next(_queries)
            raise
