"""Distances done and due, as what a user is told."""

import time
from collections.abc import Callable

from croma_sql.udfs.scope import Progress

OnProgress = Callable[[Progress], None]
Task = tuple[Callable[[], None], int]  # something to do, and the distances it makes


class Tracker:
    """Turns distances done and due into what a user is told."""

    def __init__(self, on_progress: OnProgress | None, due: int) -> None:
        self._on_progress = on_progress
        self._done, self._due = 0, due
        self._began = time.monotonic()

    def on_work(self, done: int, due: int) -> None:
        """Count distances that are done, and what has become due besides."""
        self._done += done
        self._due += due
        if self._on_progress is not None and done:
            elapsed = max(time.monotonic() - self._began, 1e-9)
            rate = self._done / elapsed
            share = min(1.0, self._done / max(1, self._due))
            self._on_progress(Progress(share, rate, max(0, self._due - self._done) / rate))
