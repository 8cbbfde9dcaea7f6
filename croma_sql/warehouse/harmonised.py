"""Where a harmonised encoder comes from: what is harmonised, and what its files say of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CromaSqlError, HarmonisationError, listed
from croma_sql.harmonisation.design import is_number
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks import AnyBenchmark, read_benchmark
from croma_sql.warehouse.margin_benchmark import Benchmark
from croma_sql.warehouse.parquet import read_metadata
from croma_sql.warehouse.plan import find_vectors, fingerprint
from croma_sql.warehouse.views import add_source, add_view, damaged

KEY = "harmonised"
SAMPLE = "sample_id"


@dataclass(frozen=True, slots=True)
class Origin:
    """What an encoder is harmonised from.

    files : of its vectors
    rows : columns sample_id, confounder, group_id and, named by `kept`, what is kept; sorted by
        sample_id, a sample once; those that the source has a vector of, be it NULL
    about : what the files made from it say
    """

    files: list[Path]
    rows: pa.Table
    about: dict[str, Any]


def origin(
    root: Path, encoder: str, benchmark: str, keep: Sequence[str], parameters: dict[str, Any]
) -> Origin:
    """Find what takes part, and describe it.

    Raises
    ------
    HarmonisationError
        An attribute that no sample has, or an encoder without vectors of the benchmark; samples
        that differ between subsets in what is removed or kept.
    """
    rows = _with_attributes(root, _once(read_benchmark(root, benchmark), "label" in keep), keep)
    holders = find_vectors(root, rows.column(SAMPLE), encoder)
    rows = rows.filter(pc.is_in(rows.column(SAMPLE), holders.ids)).combine_chunks()
    if not len(rows):
        known = sorted({file.encoder for file in layout.embeddings_files(root)})
        raise HarmonisationError(
            f"encoder {encoder!r} has no vectors of the samples of benchmark {benchmark!r}; there "
            f"are vectors of {listed(known, show=10) if known else 'no encoder'}"
        )
    about = {"encoder": encoder, "benchmark": benchmark, "keep": list(keep), **parameters}
    made = {"fingerprint": fingerprint(holders.files, rows, (), about)}
    return Origin(holders.files, rows, about | made)


def kept(name: str) -> str:
    """Name the column of what is kept: an attribute may be called confounder itself."""
    return f"keep {name}"


def described(path: Path) -> dict[str, Any] | None:
    """Read what a file of vectors says of its origin; None where it was imported."""
    about = read_metadata(path).get(KEY)
    return about if isinstance(about, dict) else None


def status_of(root: Path, about: dict[str, Any]) -> str:
    """Tell whether harmonised vectors are those of their source now: 'up to date', or why not."""
    asked = {name: value for name, value in about.items() if name != "fingerprint"}
    try:
        encoder, benchmark, keep = (asked.pop(name) for name in ("encoder", "benchmark", "keep"))
        found = origin(root, encoder, benchmark, keep, asked)
    except (CromaSqlError, KeyError, TypeError) as error:
        return str(error)
    return "up to date" if found.about == about else "stale"


def _once(benchmark: AnyBenchmark, with_label: bool) -> pa.Table:
    """Rows of a benchmark, each sample once however many subsets it is in."""
    if isinstance(benchmark, Benchmark):
        names = [SAMPLE, "confounder", "group_id", *(["label"] if with_label else [])]
        rows = benchmark.rows.select(names)
    elif with_label:
        raise HarmonisationError(
            f"benchmark {benchmark.name!r} is one of paired acquisitions and has no label to keep"
        )
    else:
        names = [SAMPLE, "confounder", "group_id"]
        rows = benchmark.rows.select([SAMPLE, "acquisition", "unit"]).rename_columns(names)
    rows = rows.group_by(names).aggregate([]).sort_by(SAMPLE)
    for name in names[1:]:
        values = rows.group_by(SAMPLE).aggregate([(name, "count_distinct")])
        differ = values.filter(pc.greater(values.column(f"{name}_count_distinct"), 1))
        if len(differ):
            raise HarmonisationError(
                f"benchmark {benchmark.name!r}: {len(differ)} sample(s) have more than one {name}, "
                f"one in each subset: {listed(differ.column(SAMPLE).to_pylist())}. Harmonise on a "
                f"benchmark in which a sample has one {name}"
            )
    return rows.rename_columns([kept(name) if name == "label" else name for name in names])


def _with_attributes(root: Path, rows: pa.Table, keep: Sequence[str]) -> pa.Table:
    """Put attributes of the samples beside them."""
    names = [name for name in keep if name != "label"]
    if not names:
        return rows
    with duckdb.connect() as con:
        add_source(con, "sample_files", list(layout.samples_files(root).values()))
        add_view(con, "data/samples")
        samples = con.table("samples")
        unknown = [name for name in names if name not in samples.columns or name == SAMPLE]
        if unknown:
            known = [name for name in samples.columns if name != SAMPLE]
            raise HarmonisationError(
                f"samples have no attribute {listed(unknown)} to keep; they have "
                f"{listed(known, show=50)}. 'label' is the benchmark's"
            )
        columns = [duckdb.ColumnExpression(name) for name in (SAMPLE, *names)]
        try:
            found = samples.select(*columns).to_arrow_table()
        except duckdb.Error as error:
            raise damaged(error) from error
    place = pc.index_in(rows.column(SAMPLE), found.column(SAMPLE))
    for name in names:
        rows = rows.append_column(kept(name), _simple(found.column(name).take(place), name))
    return rows


def _simple(values: pa.ChunkedArray, name: str) -> pa.Array:
    """Numbers as float64, anything else as text."""
    column = as_column(values, name)
    return column.cast(pa.float64()) if is_number(column.type) else as_text(column, name)
