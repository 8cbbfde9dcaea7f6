"""Quartets: two labels under two confounders, all four cells filled."""

from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from croma_sql.centre.rows import Classes
from croma_sql.udfs.doors.duckdb_functions import design_statements
from croma_sql.udfs.scope import Int

_QUARTETS = """
    SELECT subset, list(sample_id) AS cells
    FROM croma_quartets('cells')
    GROUP BY subset
    ORDER BY subset
"""


@dataclass(frozen=True, slots=True)
class Quartet:
    """Rows of a quartet; its name is ``A | B under X | Y``, as `croma_quartets` writes it."""

    name: str
    rows: Int


def quartets(label: Classes, confounder: Classes, rows: Int) -> list[Quartet]:
    """List the complete quartets of some rows, by name.

    Examples
    --------
    >>> from croma_sql.centre.rows import classes_of
    >>> label, confounder = classes_of(pa.array("aabba"), "l"), classes_of(pa.array("xyxyz"), "c")
    >>> quartets(label, confounder, np.arange(5))
    [Quartet(name='a | b under x | y', rows=array([0, 1, 2, 3]))]
    """
    pairs = np.stack([label.code[rows], confounder.code[rows]], axis=1)
    cells, cell = np.unique(pairs, axis=0, return_inverse=True)
    numbers = np.arange(len(cells))
    with duckdb.connect() as con:
        for statement in design_statements():
            con.execute(statement)
        con.register(
            "cells",
            pa.table(
                {
                    "sample_id": numbers,
                    "label": label.values[cells[:, 0]],
                    "confounder": confounder.values[cells[:, 1]],
                    "group_id": numbers,
                }
            ),
        )
        found = con.execute(_QUARTETS).fetchall()
    return [Quartet(name, rows[np.isin(cell.ravel(), corners)]) for name, corners in found]
