"""Benchmarks: one SELECT each, saying what is biology, what the nuisance, and who takes part.

A warehouse may come from anybody, so its SELECTs run on a connection that holds the samples and can
reach nothing else: no file, no network, no Python variable, no setting.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import BenchmarkError, CohortError, listed
from croma_sql.interrupt import interruptibly
from croma_sql.udfs.duckdb_functions import design_statements
from croma_sql.warehouse import layout
from croma_sql.warehouse.designs import filled_cells, incomplete
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.views import add_source, add_view, damaged

REQUIRED = ("sample_id", "label", "confounder", "group_id")
OPTIONAL = ("subset",)
MATCH = "match_"
SHAPE = (
    "A benchmark is one SELECT over samples that gives sample_id, label, confounder and group_id; "
    "where scopes overlap or differ, subset; and where neighbours must agree on more, match_... "
    "columns"
)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Rows of a benchmark.

    rows : columns subset, sample_id, label, confounder, group_id, matched, all text; sorted by
        subset, matched and sample_id. subset is NULL throughout where the benchmark has none;
        matched is a JSON object of its match_... columns, ``{"centre": "A"}``, or NULL likewise
    """

    name: str
    rows: pa.Table

    def counts(self) -> dict[str, int]:
        """Count labels, confounders, groups, subsets and strata (of rows that match)."""
        columns = {
            "labels": "label",
            "confounders": "confounder",
            "groups": "group_id",
            "subsets": "subset",
            "strata": "matched",
        }
        return {
            what: pc.count_distinct(self.rows.column(column)).as_py()
            for what, column in columns.items()
        }


def add_benchmark(warehouse: str | Path, name: str, select: str) -> Benchmark:
    """Keep a SELECT as a benchmark, after having run it.

    Parameters
    ----------
    warehouse : path
    name : str
    select : str
        One SELECT over ``samples``, which may use the designs of ``sql/designs``. ``confounder``
        may be any expression; attributes need not be selected, the view ``margins`` has them all.
        Rows with one ``subset`` are a scope of their own. Within it, neighbours have the values of
        their anchor in every column whose name begins with ``match_``.

    Returns
    -------
    Benchmark

    Raises
    ------
    BenchmarkError
        Not one SELECT, other columns, NULLs, a sample twice in a subset, a subset without all its
        labels under all its confounders, or SQL that fails.

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


def read_benchmark(root: Path, name: str) -> Benchmark:
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


def run_benchmark(root: Path, name: str, select: str) -> Benchmark:
    """Run a SELECT over the samples of a warehouse and validate what it gives."""
    with duckdb.connect() as con:
        _check_is_select(con, name, select)
        _enclose(con, root)
        try:
            known = con.sql("SELECT sample_id::VARCHAR FROM samples").to_arrow_table().column(0)
            table = interruptibly(con, lambda: con.sql(select).to_arrow_table())
        except duckdb.Error as error:
            raise BenchmarkError(f"benchmark {name!r} fails: {error}. {SHAPE}") from error
    return Benchmark(name, _validated(table, known, name))


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


def _validated(table: pa.Table, known: pa.ChunkedArray, name: str) -> pa.Table:
    _check_names(table.column_names, name)
    if not len(table):
        raise BenchmarkError(f"benchmark {name!r} gives no rows; check its WHERE")
    try:
        columns = {
            column if _is_match(column) else column.lower(): as_text(
                as_column(values, column), column
            )
            for column, values in zip(table.column_names, table.columns, strict=True)
        }
    except CohortError as error:
        raise BenchmarkError(f"benchmark {name!r}: {error}") from error
    for column in columns:
        _check_no_nulls(columns[column], columns["sample_id"], column, name)
    columns.setdefault("subset", pa.nulls(len(table), pa.string()))
    columns["matched"] = _matched(columns)
    rows = pa.table({column: columns[column] for column in ("subset", *REQUIRED, "matched")})
    _check_unique(rows, name)
    strangers = columns["sample_id"].filter(pc.invert(pc.is_in(columns["sample_id"], known)))
    if len(strangers):
        raise BenchmarkError(
            f"benchmark {name!r} gives {len(strangers)} sample_id(s) that no sample has: "
            f"{listed(strangers.to_pylist())}"
        )
    _check_complete(rows, name)
    order = [(column, "ascending") for column in ("subset", "matched", "sample_id")]
    return rows.sort_by(order).combine_chunks()


def _is_match(column: str) -> bool:
    return column.lower().startswith(MATCH) and len(column) > len(MATCH)


def _check_names(columns: list[str], name: str) -> None:
    found = [column.lower() for column in columns]
    missing = [column for column in REQUIRED if column not in found]
    if missing:
        raise BenchmarkError(f"benchmark {name!r} gives no {listed(missing)}. {SHAPE}")
    extra = [column for column in found if column not in REQUIRED + OPTIONAL]
    extra = [column for column in extra if not _is_match(column)]
    if extra or len(set(found)) != len(found):
        raise BenchmarkError(
            f"benchmark {name!r} gives {listed(extra or sorted(found))} too. {SHAPE}, each once. "
            "Attributes need not be selected: the view margins has them all"
        )


def _matched(columns: dict[str, pa.Array]) -> pa.Array:
    """Write what neighbours must have in common as JSON; NULL where that is nothing."""
    match = {column[len(MATCH) :]: columns[column] for column in columns if _is_match(column)}
    if not match:
        return pa.nulls(len(columns["sample_id"]), pa.string())
    names = sorted(match)

    @cache
    def as_json(*values: str) -> str:
        return json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False)

    return pa.array(list(map(as_json, *(match[name].to_pylist() for name in names))))


def _check_no_nulls(values: pa.Array, ids: pa.Array, column: str, name: str) -> None:
    if values.null_count:
        shown = ids.filter(pc.is_null(values)).to_pylist()
        raise BenchmarkError(
            f"benchmark {name!r}: {column} is NULL in {len(shown)} of {len(values)} rows, for "
            f"samples {listed(shown)}. Leave them out in its WHERE, or fill the cells in"
        )


def _check_unique(rows: pa.Table, name: str) -> None:
    counts = rows.group_by(["subset", "sample_id"]).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts.column("count_all"), 1))
    if len(twice):
        raise BenchmarkError(
            f"benchmark {name!r} gives {len(twice)} sample(s) more than once in a subset: "
            f"{listed(twice.column('sample_id').to_pylist())}. A join may repeat rows; a sample in "
            "several scopes needs a column subset that tells them apart"
        )


def _check_complete(rows: pa.Table, name: str) -> None:
    filled = filled_cells(rows)
    faults = incomplete(filled)
    if faults:
        more = "; ..." if len(faults) > 3 else ""
        raise BenchmarkError(
            f"benchmark {name!r}: {len(faults)} of {len(filled)} subset(s) are incomplete: "
            f"{'; '.join(faults[:3])}{more}. A subset has all its labels under all its "
            "confounders, and two of each at least. Leave it out in the WHERE, or let "
            "croma_quartets build those that are complete"
        )


def _known(root: Path) -> str:
    names = list(layout.benchmarks_files(root))
    return listed(names, show=10) if names else "none"
