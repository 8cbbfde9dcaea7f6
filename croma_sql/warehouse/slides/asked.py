"""What is asked of an import by slide."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from croma_sql.vectors import OnBadVectors
from croma_sql.warehouse import layout


@dataclass(frozen=True, slots=True)
class Asked:
    """What is imported, and how.

    root : a warehouse
    prefix : what every sample_id begins with
    embedding : dataset, column or key of the vectors; None: the writer's own
    cohort : tables of attributes; on : the column that says what their rows are of
    threads : how many parts are written at once
    """

    root: Path
    encoder: str
    dataset: str
    prefix: str
    embedding: str | None
    on_bad_vectors: OnBadVectors
    cohort: Sequence[Any]
    on: str | None
    threads: int

    def part(self, name: str) -> Path:
        """File of a part."""
        return layout.part_path(self.root, self.encoder, self.dataset, name)
