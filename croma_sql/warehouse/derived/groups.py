"""Groups that samples fall into: who is in which, and what is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CohortError, WarehouseError, listed
from croma_sql.interrupt import interruptibly
from croma_sql.udfs.scope import Int
from croma_sql.warehouse.data.samples import RESERVED
from croma_sql.warehouse.views import add_source, add_view, damaged, statement

SAMPLE = "sample_id"
COUNT = "n_pooled"
BETWEEN = ":"  # the values that a group's name is made of
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Groups:
    """Samples that agree in some attributes, as the samples of a new dataset.

    table : one row per group: sample_id, the attributes that a group agrees in, n_pooled (samples
        of the group), and all others in which the samples of every group agree
    differing : attributes that the table leaves out, as they do not, or as the values are lists
    ids : of the samples, in the order of text
    place : row of each in the table; `NOWHERE` where it lacks one of the attributes
    """

    table: pa.Table
    differing: list[str]
    ids: pl.Series
    place: Int

    def places(self, ids: pa.Array) -> Int:
        """Find samples in any order; `NOWHERE` also where one is not known."""
        sought = pl.Series(pl.from_arrow(ids))
        at = self.ids.search_sorted(sought).clip(upper_bound=len(self.ids) - 1)
        known = (self.ids.gather(at) == sought).to_numpy()
        place: Int = self.place[at.to_numpy()]
        place[~known] = NOWHERE
        return place


def read_groups(datasets: Sequence[Path], by: Sequence[str], prefix: str) -> Groups:
    """Sort samples into groups.

    Parameters
    ----------
    datasets : files of samples
    by : attributes, as they are spelt
    prefix : what the name of every group begins with

    Raises
    ------
    WarehouseError
        No sample that has all these attributes; two groups of one name.
    """
    names = list(by)
    with duckdb.connect() as con:
        add_source(con, "sample_files", list(datasets))
        add_view(con, "data/samples")
        columns = (name for name in con.table("samples").columns if name not in names)
        others = [name for name in columns if name.lower() not in (*RESERVED, COUNT)]
        try:
            described = _read(con, "groups", names=names, others=others)
            members = _read(con, "members", names=names)
        except duckdb.Error as error:
            raise damaged(error) from error
    whole = _whole(described, len(names))
    if not any(whole):
        raise WarehouseError(f"every sample lacks {' or '.join(map(repr, names))}: nothing to pool")
    table, differing = _table(described.filter(pa.array(whole)), names, prefix)
    row = pa.array([*_numbered(whole)], pa.int64())
    place = pc.fill_null(row.take(members.column("place").combine_chunks()), NOWHERE)
    ids = pl.Series(pl.from_arrow(members.column(SAMPLE))).rechunk()
    return Groups(table, differing, ids, place.to_numpy())


def _read(con: duckdb.DuckDBPyConnection, name: str, **asked: list[str]) -> pa.Table:
    relation = con.sql(statement("pooling", name), params=asked)
    return interruptibly(con, relation.to_arrow_table)


def _whole(described: pa.Table, n_names: int) -> list[bool]:
    """Tell which groups have a value of every attribute."""
    columns = (described.column(i).is_valid().to_pylist() for i in range(n_names))
    return [all(row) for row in zip(*columns, strict=True)]


def _numbered(whole: list[bool]) -> list[int | None]:
    """Give the groups that are whole numbers of their own."""
    numbers = iter(range(len(whole)))
    return [next(numbers) if one else None for one in whole]


def _table(described: pa.Table, names: list[str], prefix: str) -> tuple[pa.Table, list[str]]:
    """Give the new samples, and the attributes that they cannot have; see ``groups.sql``."""
    first, end = len(names) + 1, described.num_columns
    grouped = described.select(range(first))
    least = described.select(range(first, (first + end) // 2))
    greatest = described.select(range((first + end) // 2, end))
    columns = {SAMPLE: _ids(grouped, names, prefix), **_by_name(grouped)}
    differing = []
    for name, value, other in zip(least.column_names, least.columns, greatest.columns, strict=True):
        if pa.types.is_nested(value.type) or pc.any(pc.not_equal(value, other)).as_py():
            differing.append(name)
        else:
            columns.setdefault(name, value)
    return pa.table(columns), [name for name in differing if name != SAMPLE]


def _by_name(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _ids(grouped: pa.Table, names: list[str], prefix: str) -> pa.Array:
    try:
        texts = [as_text(as_column(grouped.column(name), name), name) for name in names]
    except CohortError as error:
        raise WarehouseError(f"samples cannot be pooled: {error}") from error
    ids = pc.binary_join_element_wise(*texts, BETWEEN)
    counts = pc.value_counts(ids)
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist()
    if twice:
        raise WarehouseError(
            f"{len(twice)} groups would have the name of another, as values hold the {BETWEEN!r} "
            f"that stands between them: {listed(twice)}. Write these values in another way"
        )
    return pc.binary_join_element_wise(prefix, ids, "")
