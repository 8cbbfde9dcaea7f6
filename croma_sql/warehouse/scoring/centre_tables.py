"""Tables of centre encoding from the rows and vectors of a benchmark."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa

from croma_sql.centre.clustering import Clustering, Trials, cluster
from croma_sql.centre.probes import TARGETS, Folds, divide, predict
from croma_sql.centre.quartets import Quartet, quartets
from croma_sql.centre.rows import ANYTHING, Rows, classes_of, in_order
from croma_sql.centre.silhouettes import measure as silhouettes
from croma_sql.cohort import Columns, Names, build_scopes
from croma_sql.udfs.scope import Int, Vectors
from croma_sql.warehouse.scoring.plan import Work
from croma_sql.warehouse.scoring.schemas import SCHEMAS, Centre
from croma_sql.warehouse.scoring.vectors import loaded, shape_of

OnShare = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class How:
    """What to do, on how many threads."""

    trials: Trials
    folds: Folds
    threads: int


@dataclass(frozen=True, slots=True)
class Measured:
    """Tables, how many quartets are in them, and why targets were not probed."""

    tables: dict[Centre, pa.Table]
    n_quartets: int
    not_probed: list[str]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Rows that are measured together, of one subset, and what the benchmark says of them."""

    subset: str | None
    rows: Rows
    text: pa.Table


def measure(work: Work, how: How, report: OnShare) -> Measured:
    """Measure the rows of ``work``; ``report`` gets the share done."""
    with loaded(work, shape_of(work.files), None) as (vectors, row):
        subsets = list(_scopes(work.rows, vectors, row, "subset"))
        found = _silhouettes(work.rows, vectors, row, how)
        of_subsets = [(one, _quartets(one)) for one in subsets]
        clusterings = _clusterings(of_subsets, how, lambda done: report(done / 2))
        predictions, not_probed = _predictions(subsets, how, lambda done: report((1 + done) / 2))
    return Measured(
        {
            "silhouettes": found,
            "cluster_counts": clusterings.cluster_counts.to_arrow(),
            "clusterings": clusterings.clusterings.to_arrow(),
            "probe_predictions": predictions,
        },
        clusterings.clusterings["quartet"].n_unique(),
        not_probed,
    )


def _scopes(table: pa.Table, vectors: Vectors, row: Int, *by: str) -> Iterator[_Scope]:
    """Cut rows, which are sorted, where a column changes."""
    keys = pl.DataFrame(table.select(by))
    runs = keys.select(pl.struct(pl.all()).rle_id()).to_series().to_numpy()
    ends = np.searchsorted(runs, np.arange(runs[-1] + 2))
    for start, stop in pairwise(ends.tolist()):
        yield _scope(table.slice(start, stop - start), vectors, row[start:stop])


def _scope(text: pa.Table, vectors: Vectors, row: Int) -> _Scope:
    subset = text.column("subset")[0].as_py()
    names = (*TARGETS, "group_id", "sample_id")
    columns = {name: text.column(name).combine_chunks() for name in names}
    scope = build_scopes(
        vectors,
        row,
        Columns(*columns.values()),
        [0, len(text)],
        [Names(where="" if subset is None else f"subset {subset!r}")],
        on_bad_vectors="null",
        wholes=ANYTHING,
    )[0]
    return _Scope(subset, Rows(scope, columns), text)


def _silhouettes(table: pa.Table, vectors: Vectors, row: Int, how: How) -> pa.Table:
    found: dict[str, list[pa.Array]] = {target: [] for target in TARGETS}
    for scope in _scopes(table, vectors, row, "subset", "matched"):
        for target in TARGETS:
            values = silhouettes(scope.rows, target, how.threads)
            found[target].append(pa.array(values, mask=np.isnan(values)))
    for target in TARGETS:
        table = table.append_column(f"{target}_silhouette", pa.chunked_array(found[target]))
    return table


def _quartets(one: _Scope) -> list[Quartet]:
    """Take a subset of two by two as one quartet, of its name; of any other, all within it."""
    label, confounder = (one.rows.classes(target) for target in TARGETS)
    if one.subset is None:
        return quartets(label, confounder, in_order(one.rows.scope))
    if len(label.values) == len(confounder.values) == 2:
        return [Quartet(one.subset, np.arange(len(one.text)))]
    found = quartets(label, confounder, in_order(one.rows.scope))
    return [replace(quartet, name=f"{one.subset}: {quartet.name}") for quartet in found]


def _clusterings(
    of_scopes: list[tuple[_Scope, list[Quartet]]], how: How, report: OnShare
) -> Clustering:
    n, done = sum(len(found) for _, found in of_scopes), 0
    parts = []
    for scope, found in of_scopes:

        def on_share(share: float, done: int = done, part: int = len(found)) -> None:
            report((done + share * part) / n)

        label, confounder = (scope.rows.classes(target) for target in TARGETS)
        parts.append(
            cluster(scope.rows.scope, label, confounder, found, how.trials, how.threads, on_share)
        )
        done += len(found)
    return Clustering(
        pl.concat(part.cluster_counts for part in parts),
        pl.concat(part.clusterings for part in parts),
    )


def _predictions(subsets: list[_Scope], how: How, report: OnShare) -> tuple[pa.Table, list[str]]:
    parts, problems = [SCHEMAS["probe_predictions"].empty_table()], []
    for number, one in enumerate(subsets):

        def on_share(share: float, number: int = number) -> None:
            report((number + share) / len(subsets))

        order = in_order(one.rows.scope)
        text = one.text.take(order)
        targets = {target: classes_of(text.column(target), target) for target in TARGETS}
        groups = classes_of(text.column("group_id"), "group_id").code
        where = "" if one.subset is None else f"subset {one.subset!r}: "
        divided = {name: divide(name, of, groups, how.folds) for name, of in targets.items()}
        problems += [f"{where}{some.problem}" for some in divided.values() if some.problem]
        found = predict(one.rows.scope, order, targets, divided, how.folds, how.threads, on_share)
        for (target, probe), told in found.items():
            frame = pl.DataFrame(text.select(["subset", "sample_id", "group_id"])).with_columns(
                pl.lit(target).alias("target"),
                pl.lit(probe).alias("probe"),
                told.fold.alias("fold"),
                told.truth.alias("truth"),
                told.predicted.alias("predicted"),
            )
            parts.append(frame.to_arrow().cast(SCHEMAS["probe_predictions"]))
    return pa.concat_tables(parts), problems
