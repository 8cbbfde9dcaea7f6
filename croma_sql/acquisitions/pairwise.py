"""Compare units that lack acquisitions: each pair of acquisitions on the units that both have."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations as ordered_pairs
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from croma_sql.acquisitions.compared import Consistency, tables
from croma_sql.acquisitions.units import Units
from croma_sql.udfs.acquisitions.compare import Compared
from croma_sql.udfs.scope import Float

CompareSome = Callable[[Float, int, int], Compared]  # vectors, depth, permutations


def compare_pairwise(
    pooled: Units,
    units: Any,
    acquisitions: Any,
    depth: int,
    permutations: int,
    compare_some: CompareSome,
) -> Consistency:
    """Compare each pair of acquisitions on the units that both have, and make the tables.

    Rows of `units` and `acquisitions` are of all units that have the acquisition, those of
    `unit_pairs` and `acquisition_pairs` of the units that have both. `unit_neighbourhoods`, and the
    row of all acquisitions together, are of the units that have every acquisition. What takes two
    units is NULL, or without rows per unit, where there are fewer.

    Parameters
    ----------
    pooled : Units
        Of 'pairwise'.
    units, acquisitions : (N,) and (S,) columns
        What the tables call them.
    depth, permutations : as `compare` takes them; the other complete units limit the depth
    compare_some : as `compare`, but for what is the same in each call
    """
    some = _Some(
        pooled,
        pl.Series("unit", units),
        pl.Series("acquisition", acquisitions),
        compare_some,
    )
    everyone = list(range(len(some.acquisition)))
    alone = [some.compared([s], 0, 0) for s in everyone]
    together = some.compared(everyone, depth, 0)
    pairs = {
        (a, b): some.compared([a, b], 0, permutations) for a in everyone for b in everyone[a + 1 :]
    }
    each_way = [(pairs[min(a, b), max(a, b)], a < b) for a, b in ordered_pairs(everyone, 2)]
    return Consistency(
        units=pl.concat([one.units for one in alone]),
        unit_pairs=_from_each(each_way, "unit_pairs"),
        unit_neighbourhoods=together.unit_neighbourhoods,
        acquisition_pairs=_from_each(each_way, "acquisition_pairs"),
        acquisitions=pl.concat(
            [*(one.acquisitions.head(1) for one in alone), together.acquisitions.tail(1)]
        ),
        n_incomplete=pooled.n_incomplete,
    )


def _from_each(each_way: list[tuple[Consistency, bool]], table: str) -> pl.DataFrame:
    """Put together one direction of each pair; the first half of its rows is the first."""
    halves = []
    for one, is_first in each_way:
        rows: pl.DataFrame = getattr(one, table)
        half = len(rows) // 2
        halves.append(rows.head(half) if is_first else rows.tail(half))
    return pl.concat(halves)


@dataclass(frozen=True, slots=True)
class _Some:
    """Units that can be compared under some of their acquisitions."""

    pooled: Units
    unit: pl.Series
    acquisition: pl.Series
    compare_some: CompareSome

    def compared(self, acquisitions: list[int], depth: int, permutations: int) -> Consistency:
        """Compare the units that have all of these acquisitions."""
        has_all: NDArray[np.bool_] = (self.pooled.n_samples[acquisitions] > 0).all(axis=0)
        which = np.flatnonzero(has_all)
        n, cells = len(which), np.ix_(acquisitions, which)
        depth = max(0, min(depth, n - 1))
        found = (
            self.compare_some(self.pooled.means[cells], depth, permutations)
            if n > 1
            else _undefined(len(acquisitions), n)
        )
        made = tables(
            found,
            self.unit.gather(which),
            self.acquisition.gather(acquisitions),
            self.pooled.n_samples[cells],
            depth=depth,
            permutations=permutations,
        )
        return made if n > 1 else _without_units(made)


def _undefined(count: int, n: int) -> Compared:
    """Give what is found of one unit, or of none: nothing."""
    of_pairs, of_units = np.full((count, count, n), np.nan), np.full((count, n), np.nan)
    nothing = np.full(count + 1, np.nan)
    places = np.zeros((count, count, n), np.int64)
    between = np.full((count, count), np.nan)
    none_shared = np.zeros(n + 1, np.int64), np.empty(0, np.int32)
    return Compared(
        of_pairs, places, places, of_pairs, between, between, of_units, of_units, none_shared,
        nothing, nothing,
    )  # fmt: skip


def _without_units(made: Consistency) -> Consistency:
    """Leave out rows that compare a unit with none; NULL is what is unknown of it elsewhere."""
    return Consistency(
        units=made.units.with_columns(pl.col("intra_distance", "median_distance").fill_nan(None)),
        unit_pairs=made.unit_pairs.clear(),
        unit_neighbourhoods=made.unit_neighbourhoods.clear(),
        acquisition_pairs=made.acquisition_pairs,
        acquisitions=made.acquisitions.with_columns(pl.col("mean_distance").fill_nan(None)),
    )
