"""Progress bars, on terminals and in notebooks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bars

from croma_sql.udfs.scope import Progress
from croma_sql.warehouse.data.imported import Done

PATIENCE = 1.0  # seconds before a bar appears


@contextmanager
def progress_bar(what: str = "searching") -> Iterator[Callable[[Progress], None]]:
    """Show how far a search is: the share of its multiply work, its rate, the time left.

    On a terminal or in a notebook, on stderr, once a second has passed.

    Parameters
    ----------
    what : str
        What the bar is called.

    Yields
    ------
    callable, for ``on_progress=``

    Examples
    --------
    >>> import croma_sql
    >>> embeddings = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]
    >>> with progress_bar() as bar:
    ...     frame = croma_sql.margins(
    ...         embeddings, ["a", "a", "b", "b"], ["x", "y", "x", "y"], [1, 2, 3, 4], m=1,
    ...         on_progress=bar,
    ...     )
    """
    with progress_bars() as report:
        yield lambda progress: report(what, progress)


@contextmanager
def progress_bars() -> Iterator[Callable[[str, Progress | float], None]]:
    """Yield ``report(what, progress)`` for one thing after another, each with a bar of its own.

    ``progress`` may be a bare share, in [0, 1], or that of an import by slide.
    """
    began = time.monotonic()
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[detail]}"),
        console=Console(stderr=True),
        transient=True,
    )
    shown = bars.console.is_terminal or bars.console.is_jupyter
    tasks: dict[str, TaskID] = {}

    def report(what: str, progress: Progress | float) -> None:
        if not shown or time.monotonic() - began < PATIENCE:
            return
        if what not in tasks:
            bars.start()
            for task in tasks.values():
                bars.update(task, visible=False)
            tasks[what] = bars.add_task(what, total=1.0, detail="")
        task = tasks[what]
        if isinstance(progress, Progress):
            detail = f"{progress.rate / 1e6:.0f} M distances/s, {_left(progress.seconds_left)}"
            bars.update(task, completed=progress.share, detail=detail)
        else:
            elapsed = bars.tasks[bars.task_ids.index(task)].elapsed or 0.0
            detail = _left(elapsed * (1 - progress) / progress) if progress else ""
            if isinstance(progress, Done):
                what = "slides" if progress.stage == "importing" else "files"
                detail = f"{progress.n} of {progress.total} {what}, {detail}"
            bars.update(task, completed=progress, detail=detail)

    try:
        yield report
    finally:
        if tasks:  # stopping a bar that never showed would print an empty line
            bars.stop()


def _left(seconds: float) -> str:
    return f"{timedelta(seconds=round(seconds))} left"
