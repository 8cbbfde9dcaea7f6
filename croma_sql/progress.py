"""Progress bars, on terminals and in notebooks."""

import html
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn
from rich.progress import Progress as Bars

from croma_sql.udfs.scope import Progress
from croma_sql.warehouse.data.imported import Done

PATIENCE = 1.0  # seconds before a bar appears
NOTEBOOK_WAIT = 0.5  # seconds between two updates of a notebook

Show = Callable[[str, float, str], None]  # what is done, which share of it, and a remark


@contextmanager
def progress_bar(what: str = "searching") -> Iterator[Callable[[Progress], None]]:
    """Show how far a search is: the share of its multiply work, its rate, the time left.

    Once a second has passed: on stderr, where that is a terminal, or below the cell of a notebook.

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
    first: dict[str, float] = {}  # when each was first reported
    with _bars(Console(stderr=True)) as show:

        def report(what: str, progress: Progress | float) -> None:
            now = time.monotonic()
            elapsed = now - first.setdefault(what, now)
            if now - began >= PATIENCE:
                share = progress.share if isinstance(progress, Progress) else float(progress)
                show(what, share, _remark(progress, elapsed))

        yield report


def _bars(console: Console) -> AbstractContextManager[Show]:
    if console.is_jupyter:
        return _in_notebook()
    return _on_terminal(console) if console.is_terminal else _nowhere()


@contextmanager
def _nowhere() -> Iterator[Show]:
    yield lambda what, share, remark: None


@contextmanager
def _on_terminal(console: Console) -> Iterator[Show]:
    """Draw bars that disappear when they are done."""
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[remark]}"),
        console=console,
        transient=True,
    )
    tasks: dict[str, TaskID] = {}

    def show(what: str, share: float, remark: str) -> None:
        if what not in tasks:
            bars.start()
            for task in tasks.values():
                bars.update(task, visible=False)
            tasks[what] = bars.add_task(what, total=1.0, remark="")
        bars.update(tasks[what], completed=share, remark=remark)

    try:
        yield show
    finally:
        if tasks:  # stopping a bar that never showed would print an empty line
            bars.stop()


@contextmanager
def _in_notebook() -> Iterator[Show]:
    """Show one line below the cell that is written anew; it needs no widgets, unlike rich's."""
    from IPython.display import DisplayHandle

    line = DisplayHandle()
    shown: list[tuple[str, float]] = []  # the last, if any
    due = 0.0

    def show(what: str, share: float, remark: str) -> None:
        nonlocal due
        if time.monotonic() < due:
            return
        due = time.monotonic() + NOTEBOOK_WAIT
        write = line.update if shown else line.display
        write(_line(what, share, remark), raw=True)
        shown[:] = [(what, share)]

    def end(how: str) -> None:
        for what, share in shown:
            line.update({"text/plain": f"{what}: {how.format(share=share)}"}, raw=True)

    try:
        yield show
    except BaseException:
        end("stopped at {share:.0%}")
        raise
    end("done")


def _line(what: str, share: float, remark: str) -> dict[str, str]:
    text = f"{what}: {share:.0%} {remark}".rstrip()
    bar = f'<progress value="{share:.3f}" max="1"></progress>'
    return {"text/plain": text, "text/html": f"{bar} {html.escape(text)}"}


def _remark(progress: Progress | float, elapsed: float) -> str:
    if isinstance(progress, Progress):
        return f"{progress.rate / 1e6:.0f} M distances/s, {_left(progress.seconds_left)}"
    left = _left(elapsed * (1 - progress) / progress) if progress else ""
    if isinstance(progress, Done):
        what = "slides" if progress.stage == "importing" else "files"
        return f"{progress.n} of {progress.total} {what}, {left}"
    return left


def _left(seconds: float) -> str:
    return f"{timedelta(seconds=round(seconds))} left"
