"""Errors a user can act on: each names file, column and first rows, and says how to mend it."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any


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
    """Scoring that could not be done for every benchmark and encoder.

    done : what became of each benchmark under each encoder, those that failed among them
    """

    def __init__(self, message: str, done: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.done = done


class StatisticsError(CromaSqlError):
    """A statistic that is not known, or a frame that lacks what it is made of."""


class HarmonisationError(CromaSqlError):
    """Vectors that cannot be harmonised: nothing to compare, or effects that are not told apart."""


class StaleError(CromaSqlError):
    """Numbers that are out of date, which ``strict`` refuses."""


class StaleWarning(UserWarning):
    """Numbers that are out of date: vectors, samples or benchmark have changed since."""


def counted(n: int, noun: str) -> str:
    """Count things for a message: ``1 slide``, ``2 slides``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def listed(values: Iterable[object], *, show: int = 3) -> str:
    """Write the first values for a message: ``'s1', 's2', 's3', ...``."""
    seen = list(islice(values, show + 1))
    return ", ".join(repr(value) for value in seen[:show]) + (", ..." if len(seen) > show else "")
