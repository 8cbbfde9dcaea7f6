"""Attributes of a cohort, matched with samples by sample, slide, patient or whatever tells them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CohortError, SourceError, listed
from croma_sql.importers.excel import ChooseText
from croma_sql.importers.spellings import lost_zeros, rank_of_key, respelled
from croma_sql.importers.tables import name_of, read_table
from croma_sql.importers.vectors import check_column

_NOUNS = {
    "sample_id": ("sample", "samples"),
    "slide_id": ("slide", "slides"),
    "patient": ("patient", "patients"),
    "patient_id": ("patient", "patients"),
    "case": ("case", "cases"),
    "case_id": ("case", "cases"),
}
_WITH_FOLDERS = ("sample_id", "slide_id")  # what --slide-id path makes


@dataclass(frozen=True, slots=True)
class Matched:
    """Attributes of a cohort, and what they belong to.

    key : the column of the samples by which they are joined
    table : that column first, text without NULL or repetition, all of it known; then the attributes
    report : what was matched and what was not, in numbers
    """

    key: str
    table: pa.Table
    report: str


class _Match(NamedTuple):
    """A column of a table, matched with one of the samples.

    column, key : their names
    written : (rows,) text, without blanks around it; NULL where it is empty
    to : (rows,) the known value that it is; NULL where it is none
    respelled : known values, by what is written in another way
    """

    column: str
    key: str
    written: pa.Array
    to: pa.Array
    respelled: Mapping[str, str]


def match_attributes(
    source: Any,
    known: Mapping[str, pa.Array],
    on: str | None = None,
    taken: Collection[str] = (),
    text: Collection[str] = (),
) -> Matched:
    """Read attributes of a cohort, and match them with samples.

    Parameters
    ----------
    source : path or frame, as `croma_sql.importers.tables.read_table` takes it
        A row per sample, slide, patient or whatever else samples have in common.
    known : what samples may be matched by: names of columns, and their distinct values as text
    on : column of ``source`` to match, optional
        Without it, the first that matches anything of those named as ids are (sample_id, slide_id,
        slide, wsi, filename, image, patient_id, case_id, ...), or where there is none, of those
        named as a column of ``known``. It is matched with the column of ``known`` of the same name,
        else with the one that has most of its values. Blanks around a value do not count, and it
        may be a file: ``scans/001.svs`` is slide 001.
    taken : names that attributes may not have, those of other columns of the samples
    text : names of attributes that are text whatever they hold

    Returns
    -------
    Matched
        Rows that match nothing are left out; rows that are the same count once.

    Raises
    ------
    SourceError
        Not readable; no such column; nothing matches; ids that have lost their leading zeros; a
        file that may be two slides; rows of one id that differ; attributes whose names are taken.
    """
    name = name_of(source)

    def of_text(columns: Sequence[str]) -> list[str]:
        return [*_columns_of_ids(columns, known, on), *(c for c in columns if c in text)]

    table = _read(source, of_text, name)
    match = _match(table, known, on, name)
    names = [column for column in table.column_names if column != match.column]
    _check_taken(names, match.key, taken, name)
    columns = [pa.chunked_array([match.to]), *(table.column(column) for column in names)]
    rows = pa.table(columns, names=[match.key, *names]).filter(pc.is_valid(match.to))
    kept = _one_of_each(rows, match.key, name)
    return Matched(match.key, kept, _report(match, known[match.key], len(rows) - len(kept), name))


def joined(samples: pa.Table, matched: Matched) -> pa.Table:
    """Join attributes to samples, NULL where they have none; the samples stay in their order."""
    rows = rows_of(samples, matched)
    for name in matched.table.column_names[1:]:
        samples = samples.append_column(name, matched.table.column(name).take(rows))
    return samples


def rows_of(samples: pa.Table, matched: Matched) -> pa.Array:
    """Tell which row of the attributes each sample has; NULL: none."""
    key = as_text(as_column(samples.column(matched.key), matched.key), matched.key)
    return pc.index_in(key, matched.table.column(matched.key).combine_chunks())


def _read(source: Any, choose_text: ChooseText, name: str) -> pa.Table:
    table = read_table(source, choose_text)
    try:
        columns = [as_column(table.column(column), column) for column in table.column_names]
    except CohortError as error:
        raise SourceError(f"{name}: {error}") from error
    return pa.table(columns, names=table.column_names)


def _match(table: pa.Table, known: Mapping[str, pa.Array], on: str | None, name: str) -> _Match:
    columns = _checked_columns(table.column_names, known, on, name)
    written = {column: _written(table.column(column), column, name) for column in columns}
    for column in columns:
        values = pc.unique(written[column].drop_null())
        key = _key(column, values, known)
        if key is not None:
            spelled = _respelled(values, known[key], key, f"{name}: column {column!r}")
            to = _to(written[column], known[key], spelled)
            return _Match(column, key, written[column], to, spelled)
    for column, values in written.items():
        for key, theirs in known.items():
            _refuse_lost_zeros(values, theirs, column, key, name)
    ours = "; ".join(f"{column!r} has {_listed(written[column])}" for column in columns)
    theirs = "; ".join(f"{key!r} {_listed(values)}" for key, values in known.items())
    raise SourceError(
        f"{name} matches none of the samples: {ours}, but the samples have {theirs}. Name the "
        "column to match with --on, or write its ids as the samples have them"
    )


def _columns_of_ids(
    columns: Sequence[str], known: Mapping[str, pa.Array], on: str | None
) -> list[str]:
    if on is not None:
        return [column for column in columns if column == on]
    ranks = {column: rank_of_key(column) for column in columns}
    ranked = sorted((rank, column) for column, rank in ranks.items() if rank is not None)
    return [column for _, column in ranked] or [column for column in columns if column in known]


def _checked_columns(
    columns: list[str], known: Mapping[str, pa.Array], on: str | None, name: str
) -> list[str]:
    if on is not None:
        check_column(columns, on, name, "--on")
    found = _columns_of_ids(columns, known, on)
    if not found:
        raise SourceError(
            f"{name} has no column that is named as ids of samples, slides or patients are, only "
            f"{listed(columns, show=20)}. Name the one to match with --on"
        )
    return found


def _written(column: pa.ChunkedArray, column_name: str, name: str) -> pa.Array:
    try:
        text = pc.utf8_trim_whitespace(as_text(column.combine_chunks(), column_name))
    except CohortError as error:
        raise SourceError(f"{name}: {error}") from error
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _key(column: str, values: pa.Array, known: Mapping[str, pa.Array]) -> str | None:
    """Choose what to match with: that of the same name, or the one that has most of the values."""
    counts = {key: pc.sum(pc.is_in(values, theirs)).as_py() or 0 for key, theirs in known.items()}
    if not any(counts.values()):
        counts = {
            key: len(respelled(values, theirs, paths=key in _WITH_FOLDERS))
            for key, theirs in known.items()
        }
    if counts.get(column):
        return column
    best = max(counts, key=lambda key: counts[key])  # of equals the first
    return best if counts[best] else None


def _respelled(values: pa.Array, known: pa.Array, key: str, where: str) -> dict[str, str]:
    others = values.filter(pc.invert(pc.is_in(values, known)))
    may_be = respelled(others, known, paths=key in _WITH_FOLDERS)
    unclear = next(((value, ones) for value, ones in may_be.items() if len(ones) > 1), None)
    if unclear is not None:
        raise SourceError(
            f"{where}: {unclear[0]!r} may be {' or '.join(map(repr, unclear[1][:3]))}; write ids "
            "as the samples have them"
        )
    return {value: ones[0] for value, ones in may_be.items()}


def _to(written: pa.Array, known: pa.Array, spelled: Mapping[str, str]) -> pa.Array:
    nothing = pa.scalar(None, pa.string())
    exact = pc.if_else(pc.is_in(written, known), written, nothing)
    if not spelled:
        return exact
    at = pc.index_in(written, pa.array(spelled, pa.string()))
    return pc.coalesce(exact, pa.array(spelled.values(), pa.string()).take(at))


def _refuse_lost_zeros(
    written: pa.Array, known: pa.Array, column: str, key: str, name: str
) -> None:
    lost = lost_zeros(pc.unique(written.drop_null()), known)
    if lost:
        raise SourceError(f"{name}: column {column!r} against {key!r} of the samples: {lost}")


def _check_taken(names: Sequence[str], key: str, taken: Collection[str], name: str) -> None:
    lower = {other.lower() for other in (*taken, key)}
    found = [column for column in names if column.lower() in lower]
    if found:
        raise SourceError(
            f"{name}: the samples have {listed(found)} already, from elsewhere; rename or remove "
            "the column here"
        )


def _one_of_each(rows: pa.Table, key: str, name: str) -> pa.Table:
    """Keep one of rows that are the same; refuse those of one id that differ."""
    first = pl.DataFrame(rows).select(pl.struct(pl.all()).is_first_distinct()).to_series()
    kept = rows.filter(first.to_arrow())
    counts = pc.value_counts(kept.column(key))
    repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if len(repeated):
        some = kept.filter(pc.equal(kept.column(key), repeated[0]))
        differ = [c for c in kept.column_names if len(pc.unique(some.column(c))) > 1]
        shown = listed(some.column(differ[0]).to_pylist())
        raise SourceError(
            f"{name}: {len(repeated)} {_NOUNS.get(key, ('', key))[1]} have rows that "
            f"differ: {_listed(repeated)}; {repeated[0].as_py()!r} has {shown} in column "
            f"{differ[0]!r}. Leave one row for each, or match rows by another column with --on"
        )
    return kept


def _report(match: _Match, known: pa.Array, repeats: int, name: str) -> str:
    """Say in numbers what was matched; refuse what would have been, had it kept its zeros."""
    one, many = _NOUNS.get(match.key, (f"value of {match.key}", f"values of {match.key}"))
    missing = known.filter(pc.invert(pc.is_in(known, match.to)))
    strange = match.written.filter(pc.and_(pc.is_valid(match.written), pc.is_null(match.to)))
    _refuse_lost_zeros(strange, missing, match.column, match.key, name)
    by = match.key if match.column == match.key else f"{match.column} with {match.key}"
    report = f"{name}, matched on {by}: {len(known) - len(missing)} of {len(known)} {many}"
    if len(missing):
        have = f"{one} has" if len(missing) == 1 else f"{many} have"
        report += f"; {len(missing)} {have} no row: {_listed(missing)}"
    if len(strange):
        report += f"; {_rows_have(len(strange))} no {one}: {_listed(strange)}"
    if match.written.null_count:
        empty = pc.indices_nonzero(pc.is_null(match.written)).to_pylist()
        report += (
            f"; column {match.column!r} is empty in {len(empty)} (first: row "
            f"{listed(row + 1 for row in empty)})"
        )
    if match.respelled:
        value, is_known = next(iter(match.respelled.items()))
        are = "1 is" if len(match.respelled) == 1 else f"{len(match.respelled)} are"
        report += f"; {are} written otherwise: {value!r} is {is_known!r}"
    if repeats:
        report += f"; {repeats} {'row repeats another' if repeats == 1 else 'rows repeat others'}"
    return report


def _rows_have(rows: int) -> str:
    return "1 row has" if rows == 1 else f"{rows} rows have"


def _listed(values: pa.Array) -> str:
    return listed(values.slice(0, 4).to_pylist())
