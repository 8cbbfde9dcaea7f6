"""Mean vectors of the units that are under every acquisition, and a count of the others."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import ScoringError
from croma_sql.vectors import in_memory, with_direction
from croma_sql.warehouse.benchmarks.paired import LEAST, PairedBenchmark, lacking, told
from croma_sql.warehouse.scoring.plan import Work
from croma_sql.warehouse.scoring.pooled import Pooled, pooled

Incomplete = Literal["error", "drop"]
COUNTS = ("n_units", "n_acquisitions", "n_incomplete", "left_out")


def complete_units(
    work: Work, benchmark: PairedBenchmark, incomplete: Incomplete, report: Callable[[float], None]
) -> tuple[Pooled, dict[str, int]]:
    """Pool the complete units, and count them, their acquisitions, and who is left out.

    Raises
    ------
    ScoringError
        Units that lack an acquisition, unless they are to be dropped; fewer than two that do not;
        means that are not finite or zero.
    """
    without = lacking(work.rows, benchmark.rows)
    n = pc.count_distinct(benchmark.rows.column("unit")).as_py()
    _check_complete(without, n, incomplete)
    is_short = pc.is_in(work.rows.column("unit"), pa.array(without, pa.string()))
    rows = work.rows.filter(pc.invert(is_short)).combine_chunks()
    everyone = pooled(replace(work, rows=rows), report)
    without |= lacking(everyone.cells(), rows)
    _check_complete(without, n, incomplete)
    found = everyone.without(set(without))
    _check_direction(found)
    n_null = len(rows) - int(everyone.n_samples.sum())
    sizes = len(found.units), len(found.acquisitions), len(without), work.left_out + n_null
    return found, dict(zip(COUNTS, sizes, strict=True))


def _check_complete(without: dict[str, list[str]], n: int, incomplete: Incomplete) -> None:
    if without and incomplete == "error":
        raise ScoringError(
            f"{len(without)} of {n} units have no vector under every acquisition: {told(without)}. "
            "Add their samples or vectors, leave them out in the benchmark's WHERE, or compare "
            "complete cases only: --complete-cases, incomplete='drop'"
        )
    if n - len(without) < LEAST:
        raise ScoringError(
            f"{n - len(without)} of {n} units have a vector under every acquisition, and it takes "
            f"{LEAST}: {told(without)}"
        )


def _check_direction(found: Pooled) -> None:
    square = in_memory(found.means.reshape(-1, found.means.shape[-1])).square
    bad = np.argwhere(~with_direction(square).reshape(found.n_samples.shape))
    if len(bad):
        named = [f"{found.units[unit]!r} under {found.acquisitions[a]!r}" for a, unit in bad[:3]]
        raise ScoringError(
            f"the mean vector of {len(bad)} unit(s) is not finite or zero: {', '.join(named)}"
            f"{', ...' if len(bad) > 3 else ''}. Leave these units out in the benchmark's WHERE"
        )
