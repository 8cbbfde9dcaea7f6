"""Whether tables that are made and published together are all there, and of one making."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from croma_sql.errors import SourceError
from croma_sql.warehouse import layout
from croma_sql.warehouse.parquet import read_metadata
from croma_sql.warehouse.scoring.schemas import CENTRE, CONSISTENCY, EDGES, Table, family_of

COMMANDS = {
    EDGES: "croma-sql score",
    CONSISTENCY: "croma-sql consistency",
    CENTRE: "croma-sql centre",
}
OPTIONAL: tuple[Table, ...] = ("neighbours",)


@dataclass(frozen=True, slots=True)
class Family:
    """Tables of a benchmark under an encoder, some of which are there."""

    tables: tuple[Table, ...]
    benchmark: str
    encoder: str

    def path(self, root: Path, table: Table) -> Path:
        """File of one of them."""
        return layout.scores_path(root, table, self.benchmark, self.encoder)


def families(root: Path) -> list[Family]:
    """Families of which there is any table."""
    return list(
        dict.fromkeys(
            Family(family_of(file.table), file.benchmark, file.encoder)
            for file in layout.scores_files(root)
        )
    )


def check_family(root: Path, family: Family) -> list[str]:
    """Say which tables are missing, or were not made together."""
    there = [table for table in family.tables if family.path(root, table).exists()]
    first, again = family.path(root, there[0]), f"run {COMMANDS[family.tables]} again"
    gone = [
        f"{family.path(root, table)} is missing, without which {first} is not whole; {again}"
        for table in family.tables
        if table not in (*there, *OPTIONAL)
    ]
    if family.tables == EDGES:  # either may be out of date
        return gone
    apart = [path for path in _of_other_making(root, family, there) if path != first]
    return gone + [f"{path} and {first} were not made together; {again}" for path in apart[:1]]


def lost_members(root: Path) -> list[Path]:
    """Files of who is in which unit that are missing, though units have been compared."""
    compared = {file.benchmark for file in layout.scores_files(root) if file.table in CONSISTENCY}
    return [
        layout.members_path(root, name)
        for name in sorted(compared - set(layout.members_files(root)))
    ]


def name_lost_members(path: Path) -> list[str]:
    """Say that a file of who is in which unit is missing."""
    return [
        f"{path} is missing, without which nothing is known of units; "
        f"run {COMMANDS[CONSISTENCY]} again"
    ]


def _of_other_making(root: Path, family: Family, there: list[Table]) -> Iterator[Path]:
    """Give files that say other things of themselves than the first that can be read."""
    first = None
    for table in there:
        path = family.path(root, table)
        try:
            about = read_metadata(path)
        except SourceError:  # which the check of that file says
            continue
        first = about if first is None else first
        if about != first:
            yield path
