"""Benchmarks of paired acquisitions: which samples are which physical unit under which scanner."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import BenchmarkError, listed
from croma_sql.warehouse.benchmarks.rows import SHAPE, as_texts, check_known, check_no_nulls

COLUMNS = ("sample_id", "unit", "acquisition")
LEAST = 2  # units, and acquisitions, that can be compared


@dataclass(frozen=True, slots=True)
class PairedBenchmark:
    """Rows of a benchmark of paired acquisitions.

    rows : columns sample_id, unit, acquisition, all text; sorted by unit, acquisition and sample_id
    """

    name: str
    rows: pa.Table

    def counts(self) -> dict[str, int]:
        """Count units, acquisitions, and units that lack an acquisition."""
        return {
            "units": pc.count_distinct(self.rows.column("unit")).as_py(),
            "acquisitions": pc.count_distinct(self.rows.column("acquisition")).as_py(),
            "incomplete": len(lacking(self.rows)),
        }


def is_paired(columns: list[str]) -> bool:
    """Tell from its columns whether a benchmark is meant to be one of paired acquisitions."""
    found = {column.lower() for column in columns}
    return bool(found & {"unit", "acquisition"}) and not found & {"label", "confounder", "group_id"}


def paired_benchmark(name: str, table: pa.Table, known: pa.ChunkedArray) -> PairedBenchmark:
    """Validate what a SELECT gave.

    Units that lack an acquisition are let pass as long as two are complete: whether they are an
    error is for whoever compares to say.

    Parameters
    ----------
    known : ids of the samples there are
    """
    _check_names(table.column_names, name)
    columns = as_texts(name, table)
    for column in COLUMNS:
        check_no_nulls(columns[column], columns["sample_id"], column, name)
    _check_unique(columns["sample_id"], name)
    check_known(columns["sample_id"], known, name)
    rows = pa.table({column: columns[column] for column in COLUMNS})
    _check_enough(rows, name)
    order = [(column, "ascending") for column in ("unit", "acquisition", "sample_id")]
    return PairedBenchmark(name, rows.sort_by(order).combine_chunks())


def lacking(rows: pa.Table, among: pa.Table | None = None) -> dict[str, list[str]]:
    """Tell of every incomplete unit which acquisitions it lacks.

    Parameters
    ----------
    rows : columns unit, acquisition
    among : rows with the units and acquisitions that there should be; default those of ``rows``

    Examples
    --------
    >>> lacking(pa.table({"unit": ["p", "p", "q"], "acquisition": ["x", "y", "x"]}))
    {'q': ['y']}
    """
    among = rows if among is None else among
    units, acquisitions = (pc.unique(among.column(column)) for column in ("unit", "acquisition"))
    cells = rows.group_by(["unit", "acquisition"]).aggregate([])
    counts = cells.group_by("unit").aggregate([([], "count_all")])
    whole = counts.filter(pc.equal(counts.column("count_all"), len(acquisitions))).column("unit")
    short = units.filter(pc.invert(pc.is_in(units, whole)))
    there: dict[str, set[str]] = {unit: set() for unit in sorted(short.to_pylist())}
    some = cells.filter(pc.is_in(cells.column("unit"), short))
    for cell in some.to_pylist():
        there[cell["unit"]].add(cell["acquisition"])
    asked = set(acquisitions.to_pylist())
    return {unit: sorted(asked - found) for unit, found in there.items()}


def told(lacks: dict[str, list[str]], show: int = 3) -> str:
    """Write what units lack for a message.

    Examples
    --------
    >>> told({"q": ["y"], "r": ["x", "y"]})
    "'q' has no 'y'; 'r' has no 'x', 'y'"
    """
    some = [f"{unit!r} has no {listed(gone)}" for unit, gone in list(lacks.items())[:show]]
    return "; ".join(some) + ("; ..." if len(lacks) > show else "")


def _check_names(columns: list[str], name: str) -> None:
    found = [column.lower() for column in columns]
    missing = [column for column in COLUMNS if column not in found]
    if missing:
        raise BenchmarkError(f"benchmark {name!r} gives no {listed(missing)}. {SHAPE}")
    extra = [column for column in found if column not in COLUMNS]
    if extra or len(set(found)) != len(found):
        raise BenchmarkError(
            f"benchmark {name!r} gives {listed(extra or sorted(found))} too. {SHAPE}, each once. "
            "Attributes need not be selected: the views units and unit_pairs have those that all "
            "samples of a unit share"
        )


def _check_unique(ids: pa.Array, name: str) -> None:
    counts = pc.value_counts(ids)
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if len(twice):
        raise BenchmarkError(
            f"benchmark {name!r} gives {len(twice)} sample(s) more than once: "
            f"{listed(twice.to_pylist())}. A join may repeat rows; a sample is of one unit, under "
            "one acquisition"
        )


def _check_enough(rows: pa.Table, name: str) -> None:
    for column in COLUMNS[1:]:
        values = pc.unique(rows.column(column)).to_pylist()
        if len(values) < LEAST:
            raise BenchmarkError(
                f"benchmark {name!r} has one {column}, {values[0]!r}; units are compared with each "
                "other and across acquisitions, so there are two of each at least. Check the "
                "columns it takes them from, and its WHERE"
            )
    lacks = lacking(rows)
    complete = pc.count_distinct(rows.column("unit")).as_py() - len(lacks)
    if complete < LEAST:
        raise BenchmarkError(
            f"benchmark {name!r}: {len(lacks)} of {complete + len(lacks)} units are not under "
            f"every acquisition, which leaves {complete} to compare: {told(lacks)}. One unit has "
            "one name under all its acquisitions; or leave acquisitions out in its WHERE"
        )
