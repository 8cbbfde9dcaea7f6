"""Whether tables of a comparison of units hold what can come of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.warehouse.benchmarks.paired import PairedBenchmark, lacking
from croma_sql.warehouse.checks.values import ROUNDING
from croma_sql.warehouse.scoring.plan import Work
from croma_sql.warehouse.scoring.schemas import Table


@dataclass(frozen=True, slots=True)
class Shape:
    """What a file says of the comparison that it is of: how many of what, how deep."""

    units: int
    acquisitions: int
    depth: int
    permutations: int

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> "Shape | None":
        """Read it from the metadata of a file; None where that does not tell."""
        parameters = about.get("parameters")
        asked = parameters if isinstance(parameters, dict) else {}
        told = about.get("n_units"), about.get("n_acquisitions"), about.get("depth")
        numbers = [number for number in (*told, asked.get("permutations")) if type(number) is int]
        return cls(*numbers) if len(numbers) == 4 else None


def impossible_row(name: Table, table: pa.Table, shape: Shape) -> str | None:
    """Say what no row can hold in a comparison of this shape; None if none does.

    Parameters
    ----------
    table : without what `impossible_value` finds
    """
    frame = pl.DataFrame(table)
    for fault, holds in _rules(name, shape).items():
        if not frame.select(holds.all()).item():
            return fault
    return None


def has_units_of(
    work: Work, benchmark: PairedBenchmark, name: Table, table: pa.Table, shape: Shape
) -> bool:
    """Tell whether each unit and acquisition that there should be stands there once.

    Which units those are, of the ones that the rows leave complete, shows only when vectors are
    read; how many, the file says.
    """
    n, s = shape.units, shape.acquisitions
    acquisitions = benchmark.rows.column("acquisition").unique()
    units = benchmark.rows.column("unit").unique()
    short = pa.array(lacking(work.rows, benchmark.rows), pa.string())
    units = units.filter(pc.invert(pc.is_in(units, short)))
    expected: dict[Table, int] = {
        "units": n * s,
        "unit_pairs": n * s * (s - 1),
        "unit_neighbourhoods": n,
        "acquisition_pairs": s * (s - 1),
        "acquisitions": s + 1,
    }
    known = dict.fromkeys(("unit", "nearest_unit"), units) | dict.fromkeys(
        ("acquisition", "acquisition_a", "acquisition_b"), acquisitions
    )
    named = [column for column in table.column_names if column in known]
    keys = [column for column in named if column != "nearest_unit"]
    return (
        s == len(acquisitions)
        and len(table) == expected[name]
        and len(table.group_by(keys).aggregate([])) == len(table)
        and all(
            pc.all(pc.is_in(table.column(column).drop_null(), known[column]), min_count=0).as_py()
            for column in named
        )
        and (name != "units" or _are_there(work.rows, table))
    )


def _are_there(rows: pa.Table, units: pa.Table) -> bool:
    """Tell whether no unit has more samples than the rows give it."""
    cell = ["unit", "acquisition"]
    most = pl.DataFrame(rows).group_by(cell).len("most")
    enough = pl.DataFrame(units).join(most, on=cell, how="left").select(
        (pl.col("n_samples") <= pl.col("most")).fill_null(False).all()
    )  # fmt: skip
    return bool(enough.item())


def _rules(name: Table, shape: Shape) -> dict[str, pl.Expr]:
    """Give what holds in every row, by what is wrong where it does not."""
    n, depth, permutations = shape.units, shape.depth, shape.permutations
    between = {"acquisition_a is acquisition_b": pl.col("acquisition_a") != pl.col("acquisition_b")}
    if name == "unit_pairs":
        is_nearest = pl.col("nearest_unit") == pl.col("unit")
        return between | {
            f"rank is beyond the {n} units": pl.col("rank") <= n,
            "rank and nearest_unit contradict each other": (pl.col("rank") == 1) == is_nearest,
        }
    if name == "unit_neighbourhoods":
        at, place = pl.element(), pl.int_range(1, pl.len() + 1)
        fits = at.is_between(place, depth) & (at.diff().fill_null(0) >= 0)
        shared, length = pl.col("shared_at"), pl.col("shared_at").list.len()
        return {
            f"n_units is not {n} throughout": pl.col("n_units") == n,
            f"depth is not {depth} throughout": pl.col("depth") == depth,
            f"depth is beyond the other {n - 1} units": pl.col("depth") < n,
            f"shared_at does not ascend, its j-th number from j to {depth}": (
                (length == 0) | shared.list.eval(fits).list.all()
            ),
            "shared_at lacks units, though every unit is among so many": (
                (pl.col("depth") < n - 1) | (length == n - 1)
            ),
        }
    if name == "acquisition_pairs":
        p = pl.col("mantel_p")
        is_asked = pl.col("mantel_r").is_not_null() & (pl.col("permutations") > 0)
        return between | {
            f"permutations is not {permutations} throughout": (
                pl.col("permutations") == permutations
            ),
            "mantel_p is NULL where it is defined, or is not where it is undefined": (
                p.is_not_null() == is_asked
            ),
            f"mantel_p is less than {permutations} permutations give": (
                p.fill_null(1.0) >= 1 / (1 + permutations) - ROUNDING
            ),
        }
    if name == "acquisitions":
        each, all_together = n, n * shape.acquisitions
        return {
            f"n_vectors is not {each}, and {all_together} of all together": (
                pl.col("n_vectors")
                == pl.when(pl.col("acquisition").is_null()).then(all_together).otherwise(each)
            ),
            "effective_rank is NULL though vectors differ, or is not though they coincide": (
                pl.col("effective_rank").is_not_null() == (pl.col("mean_distance") > 0)
            ),
        }
    return {}
