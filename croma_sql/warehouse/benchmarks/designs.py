"""Which cells of label and confounder the subsets of a benchmark fill, and which they lack."""

from collections.abc import Mapping, Set
from itertools import product

import pyarrow as pa

Cell = tuple[str, str]
Cells = Mapping[str, Set[Cell]]


def filled_cells(rows: pa.Table) -> dict[str, set[Cell]]:
    """Cells (label, confounder) that hold a row, by subset; empty where there are no subsets.

    Parameters
    ----------
    rows : table
        Columns subset, label, confounder; see `croma_sql.warehouse.benchmarks.margin.Benchmark`.
    """
    filled: dict[str, set[Cell]] = {}
    if rows.column("subset").null_count < len(rows):
        columns = ("subset", "label", "confounder")
        cells = rows.group_by(list(columns)).aggregate([])
        for subset, *cell in zip(*(cells.column(c).to_pylist() for c in columns), strict=True):
            filled.setdefault(subset, set()).add((cell[0], cell[1]))
    return filled


def incomplete(filled: Cells) -> list[str]:
    """Say of every subset without all its labels under all its confounders what it lacks.

    Examples
    --------
    >>> incomplete({"A | B": {("A", "x"), ("A", "y"), ("B", "x")}, "C": {("C", "x"), ("C", "y")}})
    ["'A | B' has no 'B' under 'y'", "'C' has one label, 'C'"]
    """
    return [
        f"{subset!r} has {what}" for subset in sorted(filled) if (what := _lacking(filled[subset]))
    ]


def lost(before: Cells, after: Cells) -> list[str]:
    """Say of every subset which cells it had before and has no longer.

    Examples
    --------
    >>> lost({"A | B": {("A", "x"), ("B", "x")}}, {"A | B": {("B", "x")}})
    ["'A | B' has no 'A' under 'x'"]
    """
    gone = {subset: before[subset] - after.get(subset, set()) for subset in sorted(before)}
    return [f"{subset!r} has {_named(cells)}" for subset, cells in gone.items() if cells]


def _lacking(cells: Set[Cell]) -> str:
    labels, confounders = ({cell[i] for cell in cells} for i in (0, 1))
    for values, what in ((labels, "label"), (confounders, "confounder")):
        if len(values) == 1:
            return f"one {what}, {next(iter(values))!r}"
    return _named(set(product(labels, confounders)) - cells)


def _named(cells: Set[Cell], show: int = 2) -> str:
    named = [f"no {label!r} under {confounder!r}" for label, confounder in sorted(cells)]
    return ", ".join(named[:show]) + (", ..." if len(named) > show else "")
