"""What a stored table was made of, part by part, so that it shows which of them has changed.

Every file that scoring, harmonising or pooling writes has this in its metadata, under `MADE_OF`. A
file is up to date when the same is true now: see `croma_sql.warehouse.states`.
"""

import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from croma_sql.version import __version__
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import AnyBenchmark
from croma_sql.warehouse.identities import identity
from croma_sql.warehouse.scoring.schemas import SCHEMAS, Table

MADE_OF = "made_of"
MadeOf = dict[str, Any]


def made_of(
    vectors: Iterable[Path],
    rows: str,
    tables: tuple[Table, ...] = (),
    parameters: Mapping[str, Any] | None = None,
) -> MadeOf:
    """Describe what tables are made of, as JSON has it.

    Parameters
    ----------
    vectors : files
    rows : digest of the rows that say which samples take part, and as what (`rows_of`, `digest_of`)
    tables : what is made, whose columns count
    parameters : on which the result depends
    """
    return {
        **maker(tables),
        "vectors": sorted(map(identity, vectors)),
        "rows": rows,
        "parameters": dict(parameters or {}),
    }


def maker(tables: tuple[Table, ...] = ()) -> MadeOf:
    """Give the part that says what made tables: version of this package, format and columns."""
    columns = [SCHEMAS[table].names for table in tables]
    told = hashlib.sha256(f"{layout.FORMAT} {columns}".encode()).hexdigest()
    return {"version": __version__, "columns": told}


def rows_of(benchmark: AnyBenchmark) -> str:
    """Digest the rows of a benchmark, with the kind that it is of."""
    kind = "units" if isinstance(benchmark, PairedBenchmark) else "margins"
    return f"{kind} {digest_of(benchmark.rows)}"


def digest_of(rows: pa.Table) -> str:
    """Digest rows: names of columns, values and their order."""
    written = io.BytesIO()
    pa.csv.write_csv(rows, written)
    return hashlib.sha256(written.getbuffer()).hexdigest()
