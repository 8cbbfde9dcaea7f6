"""What an import tells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Slides:
    """Sources of an import by slide, each once, by what has become of them since the last import.

    new, changed : read now
    unchanged : not read, as they are what was imported before
    gone : not among the sources any more, but kept
    empty : slides without tiles, of all that are there now
    """

    new: int
    changed: int
    unchanged: int
    gone: int
    empty: int

    @property
    def total(self) -> int:
        """All sources of which there are vectors now, or that are empty."""
        return self.new + self.changed + self.unchanged + self.gone


@dataclass(frozen=True, slots=True)
class Imported:
    """What is there after an import.

    n, d, dtype : vectors of the encoder in the dataset
    bad : vectors without direction among those imported, left out or written as NULL
    slides : of an import by slide
    notes : what was recognised, left alone, not matched; a sentence each
    """

    n: int
    d: int
    dtype: str
    bad: int
    slides: Slides | None = None
    notes: Sequence[str] = ()


class Done(float):
    """A share of what an import by slide does, in [0, 1], which also counts.

    n, total : slides that have been read, or before that files that have been looked at, and all
    stage : 'importing' slides or 'recognising' files
    """

    n: int
    total: int
    stage: Literal["recognising", "importing"]

    def __new__(  # noqa: D102
        cls, share: float, n: int, total: int, stage: Literal["recognising", "importing"]
    ) -> "Done":
        done = super().__new__(cls, share)
        done.n, done.total, done.stage = n, total, stage
        return done
