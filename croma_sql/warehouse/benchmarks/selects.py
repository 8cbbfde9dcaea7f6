"""Benchmarks: one SELECT each, saying who takes part and as what.

A warehouse may come from anybody, so its SELECTs run on a connection that holds the samples and can
reach nothing else: no file, no network, no Python variable, no setting.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa

from croma_sql.cells import benchmark_design, words_of_problems
from croma_sql.connection import open_duckdb
from croma_sql.errors import BenchmarkError, listed
from croma_sql.interrupt import interruptibly
from croma_sql.udfs.doors.duckdb_functions import design_statements
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.binding import Bound, bound_to, drawn_from
from croma_sql.warehouse.benchmarks.margin import Benchmark, margin_benchmark
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark, is_paired, paired_benchmark
from croma_sql.warehouse.benchmarks.rows import SHAPE
from croma_sql.warehouse.benchmarks.texts import BenchmarkText, OnUndefined, read_text
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.views import add_source, add_view, damaged

AnyBenchmark = Benchmark | PairedBenchmark


def add_benchmark(
    warehouse: str | Path,
    name: str,
    select: str,
    *,
    datasets: Sequence[str] | Literal["all"] | None = None,
    on_undefined: OnUndefined | None = None,
) -> AnyBenchmark:
    """Keep a SELECT as a benchmark, after having run it.

    Parameters
    ----------
    warehouse : path
    name : str
    select : str
        One SELECT over ``samples``, which may use the designs of ``sql/designs``. Any column may be
        any expression; attributes need not be selected, views have them all. Its columns tell
        which kind it is.

        *Margins* (`score`): sample_id, label, confounder, group_id. Rows with one ``subset`` are a
        scope of their own. Within it, neighbours have the values of their anchor in every column
        whose name begins with ``match_``.

        *Paired acquisitions* (`score_consistency`): sample_id, unit, acquisition. A unit is what
        was acquired several times, as a slide on every scanner; its vector under an acquisition
        is the mean of those of its samples.
    datasets : sequence of str, or 'all', optional
        Datasets whose samples the SELECT sees, now and later. Default: those from which its rows
        come now; a dataset that `pool` made only where no row comes from another. ``'all'`` also
        lets in those that are imported or pooled later. It is kept as the first line of the file,
        ``-- datasets: ["biopsies"]``; a SELECT that begins with such a line needs no argument.
    on_undefined : {'error', 'null'}, optional
        What `score` makes of samples without a margin. With ``'null'`` a design is kept in which no
        sample can have one, as one to measure the centre's encoding on.

    Returns
    -------
    Benchmark or PairedBenchmark
        With its ``rows``, ``counts()`` of what is in them, and the datasets it is ``bound`` to.

    Raises
    ------
    BenchmarkError
        Not one SELECT, other columns, NULLs, or SQL that fails. A sample twice in a subset, a
        subset without all its labels under all its confounders. A sample in two units or
        acquisitions, fewer than two units that are under every acquisition. A design in which no
        sample can have a margin, as where each label is under a confounder of its own.

    Examples
    --------
    >>> import tempfile
    >>> import croma_sql, polars as pl
    >>> warehouse = tempfile.mkdtemp()
    >>> samples = pl.DataFrame(
    ...     {"sample_id": list("abcd"), "class": [0, 0, 1, 1], "slide": [5, 6, 7, 8]}
    ... )
    >>> n = croma_sql.import_samples(warehouse, samples, dataset="d")
    >>> add_benchmark(warehouse, "tumour", '''
    ...     SELECT sample_id, class AS label, slide % 2 AS confounder, slide AS group_id
    ...     FROM samples
    ... ''').rows.column("confounder").to_pylist()
    ['1', '0', '1', '0']
    """
    root = layout.open_warehouse(warehouse)
    path = layout.benchmark_path(root, name)
    text = read_text(name, select)
    if datasets is not None:
        text = replace(text, datasets=_checked(datasets))
    if text.datasets is None:
        table, _ = _selected(root, name, text, Bound(tuple(layout.samples_files(root))))
        text = replace(text, datasets=_origin(root, table))
    if on_undefined is not None:
        text = replace(text, on_undefined=on_undefined)
    benchmark = run_benchmark(root, name, text)
    if isinstance(benchmark, Benchmark) and text.on_undefined == "error":
        _check_can_be_scored(benchmark)
    with publishing(path) as file:
        file.write(text.written().encode())
    return benchmark


def read_benchmark(root: Path, name: str) -> AnyBenchmark:
    """Run a benchmark of a warehouse."""
    path = layout.benchmarks_files(root).get(name)
    if path is None:
        raise BenchmarkError(
            f"{root} has no benchmark {name!r}; it has {_known(root)}. Add it: croma-sql benchmark"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error
    return run_benchmark(root, name, read_text(name, text))


def remember(root: Path, benchmark: AnyBenchmark, on_undefined: OnUndefined) -> None:
    """Keep with a benchmark what becomes of samples without a margin."""
    if benchmark.bound.on_undefined != on_undefined:
        path = layout.benchmark_path(root, benchmark.name)
        text = read_text(benchmark.name, path.read_text(encoding="utf-8"))
        if text.on_undefined != on_undefined:
            with publishing(path) as file:
                file.write(replace(text, on_undefined=on_undefined).written().encode())


def run_benchmark(root: Path, name: str, text: BenchmarkText) -> AnyBenchmark:
    """Run a SELECT over the samples of the datasets it is bound to, and validate what it gives."""
    bound = bound_to(root, name, text)
    table, known = _selected(root, name, text, bound)
    if is_paired(table.column_names):
        return replace(paired_benchmark(name, table, known), bound=bound)
    return replace(margin_benchmark(name, table, known), bound=bound)


def _selected(
    root: Path, name: str, text: BenchmarkText, bound: Bound
) -> tuple[pa.Table, pa.ChunkedArray]:
    """Give the rows of a SELECT as they come, and the ids of all samples it sees."""
    with open_duckdb() as con:
        _check_is_select(con, name, text.select)
        _enclose(con, root, bound)
        try:
            known = con.sql("SELECT sample_id::VARCHAR FROM samples").to_arrow_table().column(0)
            table = interruptibly(con, lambda: con.sql(text.select).to_arrow_table())
        except duckdb.Error as error:
            raise BenchmarkError(
                f"benchmark {name!r} fails: {error}. {_seen(bound)}{SHAPE}"
            ) from error
    return table, known


def _check_can_be_scored(benchmark: Benchmark) -> None:
    """Refuse a design in which no sample has a margin, however few neighbours it is over."""
    cells = benchmark_design(benchmark.rows, m=1)
    if cells["n_undefined"].sum() == len(benchmark.rows):
        raise BenchmarkError(
            f"benchmark {benchmark.name!r}: no sample can have a margin. "
            f"{'. '.join(words_of_problems(benchmark.rows, m=1))}. To keep it all the same, as for "
            "croma-sql centre: --on-undefined null (Python: on_undefined='null')"
        )


def _origin(root: Path, table: pa.Table) -> tuple[str, ...] | None:
    """Datasets from which rows come; None where that cannot be told, and validating says why."""
    for column, values in zip(table.column_names, table.columns, strict=True):
        if column.lower() == "sample_id" and len(values) and pa.types.is_string(values.type):
            return drawn_from(root, values) or None
    return None


def _checked(datasets: Sequence[str] | Literal["all"]) -> tuple[str, ...] | Literal["all"]:
    if datasets == "all":
        return "all"
    names = (datasets,) if isinstance(datasets, str) else tuple(dict.fromkeys(datasets))
    if not names:
        raise BenchmarkError("datasets is empty; name some, or leave it out")
    return names


def _seen(bound: Bound) -> str:
    return f"It sees the datasets {listed(bound.datasets, show=10)}. " if bound.datasets else ""


def _check_is_select(con: duckdb.DuckDBPyConnection, name: str, select: str) -> None:
    """Let DuckDB's own parser say what the text is: it serialises SELECT statements only."""
    answer = con.execute("SELECT json_serialize_sql($sql)", {"sql": select}).fetchall()[0][0]
    parsed = json.loads(answer)
    if parsed["error"]:
        raise BenchmarkError(
            f"benchmark {name!r} is not a SELECT: {parsed['error_message']}. {SHAPE}"
        )
    found = len(parsed["statements"])
    if found != 1:
        raise BenchmarkError(f"benchmark {name!r} has {found} statements; expected one. {SHAPE}")


def _enclose(con: duckdb.DuckDBPyConnection, root: Path, bound: Bound) -> None:
    """Load the samples and the designs, then shut the connection off from everything else."""
    files = layout.samples_files(root)
    add_source(con, "sample_files", [files[name] for name in bound.datasets])
    add_view(con, "data/samples")
    try:
        con.execute("CREATE TABLE enclosed AS FROM samples")
    except duckdb.Error as error:
        raise damaged(error) from error
    con.execute("DROP VIEW samples")
    con.execute("DROP VIEW sample_files")
    con.execute("ALTER TABLE enclosed RENAME TO samples")
    for statement in design_statements():
        con.execute(statement)
    con.execute("SET enable_external_access = false")
    con.execute("SET python_enable_replacements = false")
    con.execute("SET lock_configuration = true")


def _known(root: Path) -> str:
    names = list(layout.benchmarks_files(root))
    return listed(names, show=10) if names else "none"
