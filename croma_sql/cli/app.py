"""The verbs together, and how errors leave: one sentence on stderr, exit 1."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from croma_sql.cli import (
    benchmark,
    centre,
    check,
    compare,
    consistency,
    demo,
    export,
    harmonise,
    importing,
    info,
    pool,
    scoring,
    sql,
    strata,
    summary,
)
from croma_sql.errors import CromaSqlError
from croma_sql.version import __version__

INTERRUPTED = 130
_TYPERS_OWN = (typer.Abort, BrokenPipeError)  # and whatever has an exit code


class _Verbs(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        with _heeding_ctrl_c() as came:
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:
                came.set()
            except Exception as error:
                if not came.is_set():
                    self._leave(ctx, error)
        typer.echo("croma-sql: stopped; the warehouse is whole", err=True)
        raise typer.Exit(INTERRUPTED)

    def _leave(self, ctx: Any, error: Exception) -> NoReturn:
        if ctx.params["debug"] or isinstance(error, _TYPERS_OWN) or hasattr(error, "exit_code"):
            raise error
        typer.echo(f"croma-sql: {_sentence(error)}", err=True)
        raise typer.Exit(1) from error


@contextmanager
def _heeding_ctrl_c() -> Iterator[threading.Event]:
    """Note Ctrl-C: DuckDB makes errors of its own of it, as of a file that cannot be read."""
    came = threading.Event()

    def note(signum: int, frame: FrameType | None) -> None:
        came.set()
        signal.default_int_handler(signum, frame)

    before = signal.getsignal(signal.SIGINT)
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or before is not signal.default_int_handler:
        yield came
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


def _sentence(error: Exception) -> str:
    if isinstance(error, CromaSqlError):
        return str(error)
    return (
        f"unexpected {type(error).__name__}: {error}. This is a fault of croma_sql; "
        "croma-sql --debug … shows where"
    )


app = typer.Typer(
    cls=_Verbs,
    help="Where is an encoder fragile? Robustness margins of embeddings, in SQL.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"croma-sql {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command("demo")(demo.demo)
app.add_typer(importing.app, name="import")
app.command("benchmark")(benchmark.benchmark)
app.command("score")(scoring.score)
app.command("centre")(centre.centre)
app.command("summary")(summary.summary)
app.command("compare")(compare.compare)
app.command("strata")(strata.strata)
app.command("consistency")(consistency.consistency)
app.command("harmonise")(harmonise.harmonise)
app.command("pool")(pool.pool)
app.command("sql")(sql.sql)
app.add_typer(export.app, name="export")
app.command("info")(info.info)
app.command("check")(check.check)


def main() -> None:
    """Run the command line."""
    app(prog_name="croma-sql")
