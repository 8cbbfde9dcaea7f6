"""What a comparison of acquisitions gives, as tables; and what may be asked of it."""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from croma_sql.errors import CohortError
from croma_sql.udfs.acquisitions.compare import Compared
from croma_sql.udfs.scope import Int

DEPTH = 1000  # neighbours up to which neighbourhoods are compared, unless told otherwise
MOST_PERMUTED = 5_000  # units; beyond, the matrices of all their pairs fill the memory
MOST = 2**31 - 2


@dataclass(frozen=True, slots=True)
class Consistency:
    """Tables of a comparison of units across acquisitions.

    Attributes
    ----------
    units : polars.DataFrame
        Per unit and acquisition: ``unit``, ``acquisition``, ``n_samples``, ``intra_distance``, the
        mean cosine distance to all other units under the same acquisition, and
        ``median_distance``, the median of these, which a few units far from all else hardly move.
    unit_pairs : polars.DataFrame
        Per unit and ordered pair of acquisitions: ``unit``, ``acquisition_a``, ``acquisition_b``,
        ``distance`` between the two vectors of the unit, ``rank`` of the unit itself (1-based)
        among all units under b by distance from its vector under a, ``nearest_unit``, the first of
        them, and ``profile_r``, Pearson's r of its distances to all other units under a and b.
    unit_neighbourhoods : polars.DataFrame
        Per unit: ``unit``, ``n_units``, ``depth``, and ``shared_at``, an ascending list: its j-th
        number is the smallest K at which j neighbours are among the K nearest under every
        acquisition, up to ``depth``. So IoK is the share of them up to K.
    acquisition_pairs : polars.DataFrame
        Per ordered pair of acquisitions: ``acquisition_a``, ``acquisition_b``, ``n_units`` that
        were compared, ``mantel_r``, ``mantel_p``, ``permutations``.
    acquisitions : polars.DataFrame
        Per acquisition, and for all of them together (``acquisition`` NULL): ``acquisition``,
        ``n_vectors``, ``mean_distance`` of all pairs of vectors, ``effective_rank``.
    n_incomplete : int
        Units that lack an acquisition. They were left out; with ``incomplete='pairwise'`` only of
        ``unit_neighbourhoods``, of the row of all acquisitions together, and of the pairs of
        acquisitions of which they lack one.
    """

    units: pl.DataFrame
    unit_pairs: pl.DataFrame
    unit_neighbourhoods: pl.DataFrame
    acquisition_pairs: pl.DataFrame
    acquisitions: pl.DataFrame
    n_incomplete: int = 0


def tables(
    compared: Compared,
    units: Any,
    acquisitions: Any,
    n_samples: Int,
    *,
    depth: int,
    permutations: int,
    n_incomplete: int = 0,
) -> Consistency:
    """Make the tables of what `compare` found.

    Parameters
    ----------
    compared : Compared
    units, acquisitions : (N,) and (S,), anything that polars makes a column of
        Names, in the order that they were compared in.
    n_samples : (S, N), samples of each unit under each acquisition
    depth, permutations : as `compare` was given
    n_incomplete : units left out before
    """
    unit, acquisition = pl.Series("unit", units), pl.Series("acquisition", acquisitions)
    count, n = len(acquisition), len(unit)
    a, b = np.nonzero(~np.eye(count, dtype=np.bool_))
    offsets, values = compared.shared_at
    return Consistency(
        units=pl.DataFrame(
            {
                "unit": unit.gather(np.tile(np.arange(n), count)),
                "acquisition": acquisition.gather(np.repeat(np.arange(count), n)),
                "n_samples": _int32(n_samples),
                "intra_distance": compared.intra_distance.ravel(),
                "median_distance": compared.median_distance.ravel(),
            }
        ),
        unit_pairs=pl.DataFrame(
            {
                "unit": unit.gather(np.tile(np.arange(n), len(a))),
                "acquisition_a": acquisition.gather(np.repeat(a, n)),
                "acquisition_b": acquisition.gather(np.repeat(b, n)),
                "distance": compared.distance[a, b].ravel(),
                "rank": _int32(compared.rank[a, b]),
                "nearest_unit": unit.gather(compared.nearest[a, b].ravel()),
                "profile_r": _defined(compared.profile_r[a, b]),
            }
        ),
        unit_neighbourhoods=pl.DataFrame(
            {
                "unit": unit,
                "n_units": pl.repeat(n, n, dtype=pl.Int32, eager=True),
                "depth": pl.repeat(depth, n, dtype=pl.Int32, eager=True),
                "shared_at": _lists(values, offsets),
            }
        ),
        acquisition_pairs=pl.DataFrame(
            {
                "acquisition_a": acquisition.gather(a),
                "acquisition_b": acquisition.gather(b),
                "n_units": pl.repeat(n, len(a), dtype=pl.Int32, eager=True),
                "mantel_r": _defined(compared.mantel_r[a, b]),
                "mantel_p": _defined(compared.mantel_p[a, b]),
                "permutations": pl.repeat(permutations, len(a), dtype=pl.Int32, eager=True),
            }
        ),
        acquisitions=pl.DataFrame(
            {
                "acquisition": acquisition.extend(pl.Series([None], dtype=acquisition.dtype)),
                "n_vectors": np.array([n] * count + [n * count], np.int32),
                "mean_distance": compared.mean_distance,
                "effective_rank": _defined(compared.effective_rank),
            }
        ),
        n_incomplete=n_incomplete,
    )


def checked_options(permutations: Any, seed: Any, depth: Any) -> tuple[int, int, int]:
    """Refuse permutations, a seed or a depth that are no whole numbers, or too small.

    Returns
    -------
    permutations, seed, depth; `DEPTH` where none was given
    """
    return (
        _whole(permutations, "permutations", 0, "of units, for Mantel's p; 0: no p"),
        _whole(seed, "seed", 0, "of the permutations"),
        DEPTH if depth is None else _whole(depth, "depth", 1, "of neighbours of a unit"),
    )


def check_size(n_units: int, permutations: int, where: str = "") -> None:
    """Refuse permutations of more units than memory is good for."""
    if permutations and n_units > MOST_PERMUTED:
        raise CohortError(
            f"{where}{n_units} units are too many to permute: with more than {MOST_PERMUTED}, the "
            "matrices of all pairs would fill the memory. Ask for permutations = 0, which gives "
            "Mantel's r without its p, or compare fewer units"
        )


def check_complete(n_complete: int, where: str = "") -> None:
    """Refuse to look for shared neighbours of fewer than two units under every acquisition."""
    if n_complete < 2:
        raise CohortError(
            f"{where}{n_complete} unit{'s are' if n_complete != 1 else ' is'} under every "
            "acquisition, and it takes two to compare neighbourhoods; leave acquisitions out that "
            "few units have"
        )


def check_depth(depth: int, n_units: int, name: str = "depth", where: str = "") -> None:
    """Refuse a depth beyond the other units."""
    if depth >= n_units:
        raise CohortError(
            f"{where}{name} is {depth}, but of {n_units} units each has {n_units - 1} "
            f"other{'s' * (n_units > 2)}; leave {name} out to take all of these, or {DEPTH} where "
            "there are more"
        )


def _whole(value: Any, name: str, least: int, what: str) -> int:
    shown = str(value) if isinstance(value, Decimal) else repr(value)  # as SQL writes numbers
    number = isinstance(value, int | float | np.integer | Decimal) and math.isfinite(value)
    if not number or isinstance(value, bool) or value != int(value) or value < least:
        raise CohortError(f"{name} is {shown}; it is a whole number, {least} or more, {what}")
    if value > MOST:
        raise CohortError(f"{name} is {shown}; it is a whole number up to {MOST}, {what}")
    return int(value)


def _int32(values: Int) -> pl.Series:
    return pl.Series(values.ravel().astype(np.int32))


def _defined(values: np.ndarray[Any, Any]) -> pl.Series:
    return pl.Series(values.ravel(), nan_to_null=True)


def _lists(values: np.ndarray[Any, Any], offsets: Int) -> pl.Series:
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values))
    return pl.Series(lists)
