"""Which statistic of a distribution of margins a name stands for."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from croma_sql.errors import StatisticsError, listed

KNOWN = (
    "'croma', 'pooled_median', 'mean', 'f0', 'ltm10' and 'q25' (any percentage from 0 to 100, "
    "as 'ltm05' or 'q97.5')"
)
_WITH_PERCENTAGE = re.compile(r"(?P<kind>ltm|q)(?P<percentage>\d+(?:\.\d+)?)", re.ASCII)


class Kind(IntEnum):
    """How a statistic is computed; the compiled code knows these numbers."""

    F0 = 0
    MEAN = 1
    QUANTILE = 2
    LOWER_TAIL_MEAN = 3


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic of a distribution.

    fraction : of a quantile or a lower tail
    of_subsets : the median over subsets of the statistic in each
    """

    name: str
    kind: Kind
    fraction: float = math.nan
    of_subsets: bool = False

    @property
    def lower_is_better(self) -> bool:
        """Of F(0) only: the fraction that the confounder wins."""
        return self.kind == Kind.F0


def parse(names: str | Sequence[str], *, subsets: bool) -> list[Statistic]:
    """Find the statistics of these names; with subsets, 'croma' is the median of their medians.

    Raises
    ------
    StatisticsError
        A name that is not known, or none.

    Examples
    --------
    >>> parse("ltm2.5", subsets=False)[0].fraction
    0.025
    """
    several = isinstance(names, Iterable) and not isinstance(names, str)
    statistics = [_parse(name, subsets) for name in (names if several else [names])]
    if not statistics:
        raise StatisticsError(f"no statistic is asked for; there are {KNOWN}")
    return list({statistic.name: statistic for statistic in statistics}.values())


def _parse(name: Any, subsets: bool) -> Statistic:
    if name == "croma":
        return Statistic(name, Kind.QUANTILE, 0.5, of_subsets=subsets)
    if name == "pooled_median":
        return Statistic(name, Kind.QUANTILE, 0.5)
    if name == "f0":
        return Statistic(name, Kind.F0)
    if name == "mean":
        return Statistic(name, Kind.MEAN)
    found = _WITH_PERCENTAGE.fullmatch(name) if isinstance(name, str) else None
    fraction = float(f"{found['percentage']}e-2") if found else math.nan
    if found is None or fraction > 1:
        raise StatisticsError(f"there is no statistic {listed([name])}; there are {KNOWN}")
    kind = Kind.QUANTILE if found["kind"] == "q" else Kind.LOWER_TAIL_MEAN
    return Statistic(name, kind, fraction)
