"""Benchmarks of margins: what is biology, what the nuisance, and what counts as one group."""

import json
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import BenchmarkError, listed
from croma_sql.warehouse.benchmarks.designs import filled_cells, incomplete
from croma_sql.warehouse.benchmarks.rows import SHAPE, as_texts, check_known, check_no_nulls

REQUIRED = ("sample_id", "label", "confounder", "group_id")
OPTIONAL = ("subset",)
MATCH = "match_"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Rows of a benchmark.

    rows : columns subset, sample_id, label, confounder, group_id, matched, all text; sorted by
        subset, matched and sample_id. subset is NULL throughout where the benchmark has none;
        matched is a JSON object of its match_... columns, ``{"centre": "A"}``, or NULL likewise
    """

    name: str
    rows: pa.Table

    def counts(self) -> dict[str, int]:
        """Count labels, confounders, groups, subsets and strata (of rows that match)."""
        columns = {
            "labels": "label",
            "confounders": "confounder",
            "groups": "group_id",
            "subsets": "subset",
            "strata": "matched",
        }
        return {
            what: pc.count_distinct(self.rows.column(column)).as_py()
            for what, column in columns.items()
        }


def margin_benchmark(name: str, table: pa.Table, known: pa.ChunkedArray) -> Benchmark:
    """Validate what a SELECT gave.

    Parameters
    ----------
    known : ids of the samples there are
    """
    _check_names(table.column_names, name)
    columns = as_texts(name, table, keep=_is_match)
    for column in columns:
        check_no_nulls(columns[column], columns["sample_id"], column, name)
    columns.setdefault("subset", pa.nulls(len(table), pa.string()))
    columns["matched"] = _matched(columns)
    rows = pa.table({column: columns[column] for column in ("subset", *REQUIRED, "matched")})
    _check_unique(rows, name)
    check_known(columns["sample_id"], known, name)
    _check_complete(rows, name)
    order = [(column, "ascending") for column in ("subset", "matched", "sample_id")]
    return Benchmark(name, rows.sort_by(order).combine_chunks())


def _is_match(column: str) -> bool:
    return column.lower().startswith(MATCH) and len(column) > len(MATCH)


def _check_names(columns: list[str], name: str) -> None:
    found = [column.lower() for column in columns]
    missing = [column for column in REQUIRED if column not in found]
    if missing:
        raise BenchmarkError(f"benchmark {name!r} gives no {listed(missing)}. {SHAPE}")
    extra = [column for column in found if column not in REQUIRED + OPTIONAL]
    extra = [column for column in extra if not _is_match(column)]
    if extra or len(set(found)) != len(found):
        raise BenchmarkError(
            f"benchmark {name!r} gives {listed(extra or sorted(found))} too. {SHAPE}, each once. "
            "Attributes need not be selected: the view margins has them all"
        )


def _matched(columns: dict[str, pa.Array]) -> pa.Array:
    """Write what neighbours must have in common as JSON; NULL where that is nothing."""
    match = {column[len(MATCH) :]: columns[column] for column in columns if _is_match(column)}
    if not match:
        return pa.nulls(len(columns["sample_id"]), pa.string())
    names = sorted(match)

    @cache
    def as_json(*values: str) -> str:
        return json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False)

    return pa.array(list(map(as_json, *(match[name].to_pylist() for name in names))))


def _check_unique(rows: pa.Table, name: str) -> None:
    counts = rows.group_by(["subset", "sample_id"]).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts.column("count_all"), 1))
    if len(twice):
        raise BenchmarkError(
            f"benchmark {name!r} gives {len(twice)} sample(s) more than once in a subset: "
            f"{listed(twice.column('sample_id').to_pylist())}. A join may repeat rows; a sample in "
            "several scopes needs a column subset that tells them apart"
        )


def _check_complete(rows: pa.Table, name: str) -> None:
    filled = filled_cells(rows)
    faults = incomplete(filled)
    if faults:
        more = "; ..." if len(faults) > 3 else ""
        raise BenchmarkError(
            f"benchmark {name!r}: {len(faults)} of {len(filled)} subset(s) are incomplete: "
            f"{'; '.join(faults[:3])}{more}. A subset has all its labels under all its "
            "confounders, and two of each at least. Leave it out in the WHERE, or let "
            "croma_quartets build those that are complete"
        )
