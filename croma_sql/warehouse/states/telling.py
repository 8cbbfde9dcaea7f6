"""Say in one sentence what is out of date, or refuse it."""

import re
import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from croma_sql.errors import StaleError, StaleWarning
from croma_sql.warehouse.scoring.schemas import CENTRE, CONSISTENCY, EDGES
from croma_sql.warehouse.states.stored import Stored

DERIVED = ("harmonised", "pooled")
SHOWN = 3
CURES = (  # in the order in which they are to be run
    (("harmonised",), "croma-sql harmonise"),
    (("pooled",), "croma-sql pool"),
    (EDGES, "croma-sql score"),
    (CONSISTENCY, "croma-sql consistency"),
    (CENTRE, "croma-sql centre"),
)
GONE = ("was removed", "were removed")
NO_NUMBERS = ("encoders", "samples", "stored_tables")  # views whose rows are not computed


def tell(stale: Sequence[Stored], warehouse: object, strict: bool) -> None:
    """Warn of what is out of date, or with ``strict`` refuse it; nothing where all is up to date.

    Raises
    ------
    StaleError
        With ``strict``.
    """
    if not stale:
        return
    told = sentence(stale, warehouse)
    if strict:
        raise StaleError(told)
    warnings.warn(told, StaleWarning, stacklevel=_outside())


def sentence(stale: Sequence[Stored], warehouse: object) -> str:
    """Name what is out of date, why, and what makes it again."""
    by_reason: dict[str, dict[str, None]] = {}
    for one in stale:
        name = one.encoder if one.benchmark is None else f"{one.benchmark} / {one.encoder}"
        by_reason.setdefault(str(one.reason), {})[name] = None
    told = [f"{_named(list(names))} ({reason})" for reason, names in by_reason.items()]
    more = f"; and for {len(told) - SHOWN} other reasons" if len(told) > SHOWN else ""
    return f"out of date: {'; '.join(told[:SHOWN])}{more}. {_cure(stale, warehouse)}"


def of_tables(
    stored: Collection[Stored],
    tables: Collection[str],
    benchmark: str | None = None,
    encoder: str | None = None,
) -> list[Stored]:
    """Choose what is out of date of some tables, of one benchmark and encoder or of all."""
    return [
        one
        for one in stored
        if one.is_stale
        and one.table in tables
        and benchmark in (None, one.benchmark)
        and encoder in (None, one.encoder)
    ]


def tables_read(query: str) -> set[str]:
    """Find the stored tables that a query may read, by the names of views in it.

    A column of the name of a view counts as well: too many tables rather than too few.
    """
    reads, known = _reads()
    found: set[str] = set()
    waiting = _names(query) & reads.keys()
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        found |= known.get(name, set())
        waiting |= (reads[name] & reads.keys()) - seen
    return found


def _named(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def _cure(stale: Sequence[Stored], warehouse: object) -> str:
    """Say what makes it again, in the order in which that is to be done."""
    kinds = {"gone": False, "of a stale encoder": False, "unknown": False}
    tables = set()
    for one in stale:
        reasons = str(one.reason).split("; ")
        if one.state == "unknown":
            kinds["unknown"] = True
        elif any(reason.endswith(GONE) for reason in reasons):
            kinds["gone"] = True
        else:
            tables.add(one.table)
            is_of_stale = f"encoder {one.encoder!r} is stale"
            kinds["of a stale encoder"] |= any(one.startswith(is_of_stale) for one in reasons)
    commands = [f"{command} {warehouse}" for made, command in CURES if tables & set(made)]
    if kinds["of a stale encoder"] and not tables & set(DERIVED):
        commands = ["croma-sql harmonise or pool", *commands]
    told = [f"Run {', then '.join(commands)}"] if commands else []
    if kinds["gone"]:
        told.append("Add again what was removed, or delete what was computed from it")
    if kinds["unknown"]:
        told.append(f"croma-sql check {warehouse} names damaged files")
    return ". ".join(told)


def _outside() -> int:
    """Count frames up to the caller of this package, whom a warning concerns."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    return level


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "croma_sql"


@cache
def _reads() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Give the names that each view or source mentions, and the tables that sources are of."""
    from croma_sql.session import SOURCES

    reads = {name: _names(text) - {name} for name, text in _views()}
    tables: dict[str, set[str]] = {source: {table} for table, source in SOURCES.items()}
    tables |= {"embedding_files": set(DERIVED), "harmonised_files": set(DERIVED)}
    tables["member_files"] = set(CONSISTENCY)
    for name in NO_NUMBERS:
        reads[name] = set()
    return reads | {name: set() for name in tables}, tables


def _views() -> Iterator[tuple[str, str]]:
    for folder in (files("croma_sql.sql") / "views").iterdir():
        for file in folder.iterdir():
            lines = file.read_text(encoding="utf-8").splitlines()
            code = "\n".join(line for line in lines if not line.startswith("--"))
            yield Path(file.name).stem, code


def _names(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
