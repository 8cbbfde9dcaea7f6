"""Benchmarks: one SELECT each, saying who takes part and as what.

A warehouse may come from anybody, so its SELECTs run on a connection that holds the samples and can
reach nothing else: no file, no network, no Python variable, no setting.
"""

import json
from pathlib import Path

import duckdb

from croma_sql.errors import BenchmarkError, listed
from croma_sql.interrupt import interruptibly
from croma_sql.udfs.doors.duckdb_functions import design_statements
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.margin import Benchmark, margin_benchmark
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark, is_paired, paired_benchmark
from croma_sql.warehouse.benchmarks.rows import SHAPE
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.views import add_source, add_view, damaged

AnyBenchmark = Benchmark | PairedBenchmark


def add_benchmark(warehouse: str | Path, name: str, select: str) -> AnyBenchmark:
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

    Returns
    -------
    Benchmark or PairedBenchmark
        With its ``rows``, and ``counts()`` of what is in them.

    Raises
    ------
    BenchmarkError
        Not one SELECT, other columns, NULLs, or SQL that fails. A sample twice in a subset, a
        subset without all its labels under all its confounders. A sample in two units or
        acquisitions, fewer than two units that are under every acquisition.

    Examples
    --------
    >>> import tempfile
    >>> import croma_sql, polars as pl
    >>> warehouse = tempfile.mkdtemp()
    >>> samples = pl.DataFrame({"sample_id": ["a", "b"], "class": [0, 1], "slide": [7, 8]})
    >>> n = croma_sql.import_samples(warehouse, samples, dataset="d")
    >>> add_benchmark(warehouse, "tumour", '''
    ...     SELECT sample_id, class AS label, slide % 2 AS confounder, slide AS group_id
    ...     FROM samples
    ... ''').rows.column("confounder").to_pylist()
    ['1', '0']
    """
    root = layout.open_warehouse(warehouse)
    path = layout.benchmark_path(root, name)
    benchmark = run_benchmark(root, name, select)
    with publishing(path) as file:
        file.write(f"{select.strip()}\n".encode())
    return benchmark


def read_benchmark(root: Path, name: str) -> AnyBenchmark:
    """Run a benchmark of a warehouse."""
    path = layout.benchmarks_files(root).get(name)
    if path is None:
        raise BenchmarkError(
            f"{root} has no benchmark {name!r}; it has {_known(root)}. Add it: croma-sql benchmark"
        )
    try:
        select = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error
    return run_benchmark(root, name, select)


def run_benchmark(root: Path, name: str, select: str) -> AnyBenchmark:
    """Run a SELECT over the samples of a warehouse and validate what it gives."""
    with duckdb.connect() as con:
        _check_is_select(con, name, select)
        _enclose(con, root)
        try:
            known = con.sql("SELECT sample_id::VARCHAR FROM samples").to_arrow_table().column(0)
            table = interruptibly(con, lambda: con.sql(select).to_arrow_table())
        except duckdb.Error as error:
            raise BenchmarkError(f"benchmark {name!r} fails: {error}. {SHAPE}") from error
    if is_paired(table.column_names):
        return paired_benchmark(name, table, known)
    return margin_benchmark(name, table, known)


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


def _enclose(con: duckdb.DuckDBPyConnection, root: Path) -> None:
    """Load the samples and the designs, then shut the connection off from everything else."""
    add_source(con, "sample_files", list(layout.samples_files(root).values()))
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
