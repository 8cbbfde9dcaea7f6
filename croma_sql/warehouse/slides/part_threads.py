"""Write many parts at once, and tell how many slides have been read."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue

from croma_sql.interrupt import apart
from croma_sql.warehouse.data.imported import Done
from croma_sql.warehouse.data.sources import Record
from croma_sql.warehouse.slides.part_files import Writing, written
from croma_sql.warehouse.slides.parts import Part, Piece

OnProgress = Callable[[Done], None]


def write_all(
    parts: Sequence[Part], how: Writing, threads: int, on_progress: OnProgress | None
) -> list[Record]:
    """Write parts in threads, each part in one.

    Returns
    -------
    list of Record
        Of all parts, in their order. Of several errors, that of the first part is raised.
    """
    read: SimpleQueue[Piece] = SimpleQueue()
    stopped = threading.Event()
    tally = _Tally(parts, on_progress)

    def work() -> list[Record]:
        pool = ThreadPoolExecutor(threads, thread_name_prefix="import")
        try:
            futures = [pool.submit(written, part, how, read.put, stopped.is_set) for part in parts]
            return [record for future in futures for record in future.result()]
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)

    records = apart(work, stopped.set, meanwhile=partial(tally.add, read))
    tally.add(read)
    return records


class _Tally:
    """Counts rows and slides."""

    def __init__(self, parts: Sequence[Part], on_progress: OnProgress | None) -> None:
        pieces = [piece.record for part in parts for piece in part.pieces]
        self._left = Counter(record.key for record in pieces)
        self._slides, self._rows = len(self._left), sum(record.n for record in pieces)
        self._done = 0
        self._on_progress = on_progress

    def add(self, read: "SimpleQueue[Piece]") -> None:
        """Count pieces that have been read meanwhile, and tell."""
        before = self._done
        while not read.empty():
            record = read.get().record
            self._done += record.n
            self._left[record.key] -= 1
            if not self._left[record.key]:
                del self._left[record.key]
        if self._on_progress is not None and self._done > before:
            done = self._slides - len(self._left)
            self._on_progress(Done(self._done / self._rows, done, self._slides, "importing"))
