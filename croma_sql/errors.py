"""Errors a user can act on: each names file, column and first rows, and says how to mend it."""

from collections.abc import Iterable
from itertools import islice


class CromaSqlError(ValueError):
    """Base class, so one ``except`` catches everything this package raises."""


class CohortError(CromaSqlError):
    """Rows that cannot be scored together: empty cells, repeated ids, bad vectors."""


class SourceError(CromaSqlError):
    """A file or frame that cannot be read as samples or embeddings."""


class WarehouseError(CromaSqlError):
    """A warehouse that is missing, unwritable, of a newer format, or not as the contract says."""


class BenchmarkError(CromaSqlError):
    """A benchmark that is not one SELECT of the columns a benchmark has."""


class ScoringError(CromaSqlError):
    """Scoring that could not give every sample a margin."""


class StatisticsError(CromaSqlError):
    """A statistic that is not known, or a frame that lacks what it is made of."""


class HarmonisationError(CromaSqlError):
    """Vectors that cannot be harmonised: nothing to compare, or effects that are not told apart."""


def counted(n: int, noun: str) -> str:
    """Count things for a message: ``1 slide``, ``2 slides``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def listed(values: Iterable[object], *, show: int = 3) -> str:
    """Write the first values for a message: ``'s1', 's2', 's3', ...``."""
    seen = list(islice(values, show + 1))
    return ", ".join(repr(value) for value in seen[:show]) + (", ..." if len(seen) > show else "")
