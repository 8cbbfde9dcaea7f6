"""Which margins are exported: those of one benchmark and encoder, one for every sample."""

from pathlib import Path
from typing import Any

import duckdb

from croma_sql.cohort import checked_m
from croma_sql.errors import StatisticsError, listed
from croma_sql.reports.reading import nothing

Scope = dict[str, str | None]
NAMES = ("benchmark", "encoder", "subset")
MARGINS = """
    FROM margins_at($m)
    WHERE benchmark = $benchmark AND encoder = $encoder AND ($subset IS NULL OR subset = $subset)
"""


def margins(
    con: duckdb.DuckDBPyConnection, warehouse: str | Path, asked: Scope, m: int
) -> tuple[Scope, duckdb.DuckDBPyRelation]:
    """Find margins of one benchmark and encoder, in which every sample stands once.

    Parameters
    ----------
    asked : of each name in `NAMES` the one, or None, which will do where there is but one
    m : neighbours per type that a margin is a mean over

    Returns
    -------
    whose they are, and the rows of ``margins_at(m)``

    Raises
    ------
    StatisticsError
        Nothing scored under these names, or more than one.
    """
    scope = _one_scope(con, warehouse, asked)
    return scope, con.sql(MARGINS, params={**scope, "m": checked_m(m)})


def _one_scope(con: duckdb.DuckDBPyConnection, warehouse: str | Path, asked: Scope) -> Scope:
    scored = con.sql("SELECT DISTINCT benchmark, encoder, subset FROM typed_neighbour_files")
    found = [dict(zip(NAMES, row, strict=True)) for row in scored.fetchall()]
    for name in NAMES[:2]:
        found = [one for one in found if asked[name] in (None, one[name])]
    if not found:
        raise StatisticsError(nothing(warehouse, asked["benchmark"], asked["encoder"]))
    for name in NAMES[:2]:
        _check_one(name, {str(one[name]) for one in found})
    scope: Scope = found[0] | {"subset": asked["subset"]}
    subsets = {one["subset"] for one in found if one["subset"] is not None}
    if asked["subset"] is None:
        if len(subsets) > 1 and _in_several(con, scope):
            _check_one("subset", subsets)
    elif asked["subset"] not in subsets:
        there = f"it has {listed(sorted(subsets), show=10)}" if subsets else "it has none at all"
        raise StatisticsError(
            f"benchmark {scope['benchmark']!r} has no subset {asked['subset']!r}; {there}"
        )
    return scope


def _check_one(name: str, found: set[str]) -> None:
    if len(found) > 1:
        raise StatisticsError(
            f"samples have a margin of each {name}: {listed(sorted(found), show=10)}; name one "
            f"with --{name} (Python: {name}=)"
        )


def _in_several(con: duckdb.DuckDBPyConnection, scope: Scope) -> bool:
    """Tell whether a sample is in more than one subset."""
    twice = """
        SELECT 1 FROM typed_neighbour_files
        WHERE benchmark = $benchmark AND encoder = $encoder
        GROUP BY sample_id HAVING count(*) > 1 LIMIT 1
    """
    named: dict[str, Any] = {name: scope[name] for name in NAMES[:2]}
    return bool(con.sql(twice, params=named).fetchall())
