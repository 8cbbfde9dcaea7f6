"""What goes when the samples of a dataset are replaced."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import CromaSqlError, counted, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.parquet import read_footer, read_table


def gone_columns(root: Path, table: pa.Table, dataset: str) -> list[str]:
    """List columns of a dataset that samples which replace it do not have."""
    path = layout.samples_files(root).get(dataset)
    there = [] if path is None else read_footer(path).schema.to_arrow_schema().names
    return [name for name in there if name not in table.column_names]


def gone_samples(root: Path, table: pa.Table, dataset: str) -> pa.Array:
    """List samples of a dataset that are not among those which replace it."""
    path = layout.samples_files(root).get(dataset)
    if path is None:
        return pa.array([], pa.string())
    known = read_table(path, ["sample_id"]).column(0).cast(pa.string()).combine_chunks()
    return known.filter(pc.invert(pc.is_in(known, table.column("sample_id").combine_chunks())))


def what_goes(columns: list[str], samples: pa.Array, dataset: str) -> list[str]:
    """Say which columns and samples are not there any more.

    Examples
    --------
    >>> what_goes(["age"], pa.array(["s1"]), "d")
    ["samples of dataset 'd' are replaced: 1 column goes: 'age'; 1 sample goes: 's1'"]
    """
    parts = []
    for n, noun, names in (
        (len(columns), "column", columns),
        (len(samples), "sample", samples.slice(0, 4).to_pylist()),
    ):
        if n:
            parts.append(f"{counted(n, noun)} {'goes' if n == 1 else 'go'}: {listed(names)}")
    return [f"samples of dataset {dataset!r} are replaced: {'; '.join(parts)}"] if parts else []


def benchmarks_with(root: Path, samples: pa.Array) -> dict[str, int]:
    """Count samples that each benchmark takes; those that fail are left out."""
    from croma_sql.warehouse.benchmarks.selects import read_benchmark  # which needs samples

    found = {}
    for name in layout.benchmarks_files(root):
        try:
            ids = read_benchmark(root, name).rows.column("sample_id")
        except CromaSqlError:
            continue
        found[name] = pc.sum(pc.is_in(pc.unique(ids), samples), min_count=0).as_py()
    return found


def benchmarks_hurt(root: Path, before: dict[str, int]) -> list[str]:
    """Say which benchmarks have lost samples, and which fail now.

    Parameters
    ----------
    before : benchmarks that could be made, with how many of the samples that are gone they took
    """
    after = benchmarks_with(root, pa.array([], pa.string()))
    notes = [
        f"benchmark {name!r} took {counted(n, 'sample')} of those that go"
        for name, n in before.items()
        if n
    ]
    failing = [name for name in before if name not in after]
    if failing:
        notes.append(
            f"{counted(len(failing), 'benchmark')} cannot be made any more: {listed(failing)}; "
            "croma-sql score says why"
        )
    return notes
