"""Every stored table, and whether it is up to date."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from croma_sql.errors import CromaSqlError
from croma_sql.warehouse import layout
from croma_sql.warehouse.parquet import read_metadata
from croma_sql.warehouse.scoring.made_of import MADE_OF, maker
from croma_sql.warehouse.scoring.schemas import family_of
from croma_sql.warehouse.states.derived import (
    ANOTHER,
    derived_reasons,
    kind_of,
    rows_reasons,
    vectors_reasons,
    version_reasons,
)
from croma_sql.warehouse.states.present import Present

State = Literal["up to date", "stale", "unknown"]


@dataclass(frozen=True, slots=True)
class Stored:
    """One table of scores, or the vectors of an encoder that was made from another.

    table : as under ``scores/``, such as 'typed_neighbours'; 'harmonised' or 'pooled' of vectors
    benchmark : None of vectors
    dataset : of vectors; None of scores
    state : 'unknown' where a file cannot be read
    reason : why it is not up to date; None where it is
    """

    table: str
    benchmark: str | None
    encoder: str
    dataset: str | None
    state: State
    reason: str | None

    @property
    def is_stale(self) -> bool:
        """Tell what is not known to be up to date."""
        return self.state != "up to date"


def stored_tables(root: Path, files: layout.Listing | None = None) -> list[Stored]:
    """Compare what stored tables were made of with what there is now.

    No vector is read of files that say what they hold, see `croma_sql.warehouse.identities`, and
    nothing is written.

    Parameters
    ----------
    root : a warehouse, opened
    files : of the warehouse, where they have been listed already
    """
    present = Present(layout.listing(root) if files is None else files)
    return [*_scores(present), *_derived(present)]


def _scores(present: Present) -> Iterator[Stored]:
    of_encoder: dict[str, list[str]] = {}
    for file in present.files.scores:
        try:
            if file.encoder not in of_encoder:
                told = derived_reasons(present, file.encoder).values()
                of_encoder[file.encoder] = [
                    f"encoder {file.encoder!r} is stale: {reason}"
                    for reasons in told
                    for reason in reasons
                ]
            reasons = [*_reasons(present, file), *of_encoder[file.encoder]]
        except CromaSqlError as error:
            yield Stored(file.table, file.benchmark, file.encoder, None, "unknown", _line(error))
        else:
            yield Stored(file.table, file.benchmark, file.encoder, None, *_state(reasons))


def _derived(present: Present) -> Iterator[Stored]:
    for encoder, files in present.encoders.items():
        kinds = {}
        for file in files:
            try:
                kind = None if file.part is not None else kind_of(present, file.path)
            except CromaSqlError:  # of nobody knows what; `check` names the file
                continue
            if kind is not None:
                kinds[file.dataset] = kind
        if not kinds:
            continue
        try:
            reasons = derived_reasons(present, encoder)
        except CromaSqlError as error:
            for dataset, kind in kinds.items():
                yield Stored(kind, None, encoder, dataset, "unknown", _line(error))
        else:
            for dataset, kind in kinds.items():
                yield Stored(kind, None, encoder, dataset, *_state(reasons[dataset]))


def _reasons(present: Present, file: layout.ScoresFile) -> Iterator[str]:
    made = read_metadata(file.path).get(MADE_OF)
    if not isinstance(made, dict):
        yield ANOTHER
        return
    yield from version_reasons(made, maker(family_of(file.table)))
    yield from vectors_reasons(present, file.encoder, made)
    yield from rows_reasons(present, file.benchmark, made)


def _state(reasons: list[str]) -> tuple[State, str | None]:
    told = "; ".join(dict.fromkeys(reasons))
    return ("stale", told) if told else ("up to date", None)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
