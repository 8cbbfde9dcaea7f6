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
from croma_sql.harmonisation.design import as_numbers, is_number
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.margin import Benchmark
from croma_sql.warehouse.benchmarks.selects import AnyBenchmark, read_benchmark
from croma_sql.warehouse.parquet import read_metadata
from croma_sql.warehouse.scoring.plan import find_vectors, fingerprint
from croma_sql.warehouse.views import add_source, add_view, damaged

KEY = "harmonised"
SAMPLE = "sample_id"
LABEL = "label"


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
    keep, attributes = _attributes(root, keep)
    rows = _once(read_benchmark(root, benchmark), LABEL in keep)
    place = pc.index_in(rows.column(SAMPLE), attributes.column(SAMPLE))
    for name in attributes.column_names[1:]:
        column = _simple(attributes.column(name).take(place), name)
        rows = rows.append_column(kept(name), column)
    holders = find_vectors(root, rows.column(SAMPLE), encoder)
    rows = rows.filter(pc.is_in(rows.column(SAMPLE), holders.ids)).combine_chunks()
    if not len(rows):
        known = sorted({file.encoder for file in layout.embeddings_files(root)})
        raise HarmonisationError(
            f"encoder {encoder!r} has no vectors of the samples of benchmark {benchmark!r}; there "
            f"are vectors of {listed(known, show=10) if known else 'no encoder'}"
        )
    about = {"encoder": encoder, "benchmark": benchmark, "keep": keep, **parameters}
    made = {"fingerprint": fingerprint(holders.files, rows, (), about)}
    return Origin(holders.files, rows, about | made)


def kept(name: str) -> str:
    """Name the column of what is kept: an attribute may be called confounder itself."""
    return f"keep {name}"


def replaceable(path: Path) -> dict[str, Any]:
    """Read what a file of vectors that is to be replaced says of its origin.

    Raises
    ------
    HarmonisationError
        It was imported, or is damaged: then nobody but the user knows whether to replace it.
    """
    try:
        about = read_metadata(path)
    except CromaSqlError as error:
        raise HarmonisationError(f"{error}. {_cure(path)}") from error
    found = about.get(KEY)
    if isinstance(found, dict) and {"encoder", "benchmark"} <= found.keys():
        return found
    if "format" in about and KEY not in about:
        encoder = layout.encoder_of(path)
        raise HarmonisationError(
            f"encoder {encoder!r} is there already, and was not made by harmonising; name another "
            "with --to (Python: to=)"
        )
    raise HarmonisationError(
        f"{path} does not say any more where it comes from: it is damaged, or another tool has "
        f"written it. {_cure(path)}"
    )


def _cure(path: Path) -> str:
    return (
        f"If harmonising made it, delete {path.name} and harmonise again; if not, name another "
        "encoder with --to (Python: to=)"
    )


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


def _attributes(root: Path, keep: Sequence[str]) -> tuple[list[str], pa.Table]:
    """Find what is to be kept, by the names it has, and those columns of the samples."""
    if all(name == LABEL for name in keep):
        return _each_once(keep), pa.table({SAMPLE: pa.array([], pa.string())})
    with duckdb.connect() as con:
        add_source(con, "sample_files", list(layout.samples_files(root).values()))
        add_view(con, "data/samples")
        samples = con.table("samples")
        names = _each_once([_named(name, samples.columns) for name in keep])
        columns = [SAMPLE, *(name for name in names if name != LABEL)]
        try:
            found = samples.select(*map(duckdb.ColumnExpression, columns)).to_arrow_table()
        except duckdb.Error as error:
            raise damaged(error) from error
    return names, found


def _named(name: str, columns: Sequence[str]) -> str:
    """Take a name in either case, as SQL does; 'label' is the benchmark's."""
    if name.lower() == SAMPLE:
        raise HarmonisationError(
            f"{name!r} cannot be kept: every sample has its own, so nothing would be left to remove"
        )
    if name == LABEL or name in columns:
        return name
    for known in (LABEL, *columns):
        if known.lower() == name.lower():
            return known
    others = [column for column in columns if column != SAMPLE]
    raise HarmonisationError(
        f"samples have no attribute {name!r} to keep; they have {listed(others, show=50)}. 'label' "
        "is the benchmark's"
    )


def _each_once(names: Sequence[str]) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise HarmonisationError(f"{name!r} is to be kept twice; once will do")
    return list(names)


def _simple(values: pa.ChunkedArray, name: str) -> pa.Array:
    """Numbers as float64, anything else as text."""
    column = as_column(values, name)
    return as_numbers(column, name) if is_number(column.type) else as_text(column, name)
