"""Which datasets a benchmark sees: those it was made of, so that no later one changes its rows."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import BenchmarkError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.texts import BenchmarkText, OnUndefined
from croma_sql.warehouse.data.samples import pooled_datasets, read_ids


@dataclass(frozen=True, slots=True)
class Bound:
    """What a benchmark was bound to when it was made.

    datasets : those whose samples its SELECT sees
    sees_later : whether it also sees datasets that are added later
    on_undefined : whether samples without a margin are an error, or kept as NULL
    """

    datasets: tuple[str, ...]
    sees_later: bool = False
    on_undefined: OnUndefined = "error"


UNBOUND = Bound(())


def bound_to(root: Path, name: str, text: BenchmarkText) -> Bound:
    """Find the datasets that a benchmark sees.

    Raises
    ------
    BenchmarkError
        It is bound to a dataset that is gone.
    """
    known = layout.samples_files(root)
    if isinstance(text.datasets, str):
        return Bound(tuple(known), True, text.on_undefined)
    if text.datasets is None:
        pooled = pooled_datasets(root)
        imported = tuple(dataset for dataset in known if dataset not in pooled)
        return Bound(imported, True, text.on_undefined)
    gone = [dataset for dataset in text.datasets if dataset not in known]
    if gone:
        has = f"it has {listed(known, show=10)}" if known else "it has none"
        raise BenchmarkError(
            f"benchmark {name!r} is bound to {_named(gone)}, which {root} does not have; {has}. "
            "Import it again, or make the benchmark again from others: croma-sql benchmark "
            "--dataset"
        )
    return Bound(text.datasets, False, text.on_undefined)


def drawn_from(root: Path, ids: pa.ChunkedArray) -> tuple[str, ...]:
    """Find the datasets that rows come from; of those, pooled ones only where there are no others.

    Parameters
    ----------
    ids : sample_id of the rows, as text
    """
    files, ids = layout.samples_files(root), ids.unique()
    found = [name for name, path in files.items() if pc.any(pc.is_in(ids, read_ids(path))).as_py()]
    pooled = pooled_datasets(root)
    return tuple(name for name in found if name not in pooled) or tuple(found)


def _named(datasets: list[str]) -> str:
    return f"{'dataset' if len(datasets) == 1 else 'datasets'} {listed(datasets, show=10)}"
