"""Vectors of many samples pooled into one per group, in one streaming pass."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import WarehouseError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.embedding_files import read_shape
from croma_sql.warehouse.data.samples import check_against_warehouse
from croma_sql.warehouse.derived.groups import NOWHERE, SAMPLE, Groups, read_groups
from croma_sql.warehouse.derived.pooled import (
    KEY,
    How,
    Origin,
    Recipe,
    check_replaceable,
    described,
    origin,
)
from croma_sql.warehouse.derived.pooled_vectors import Pooled, pooled, write
from croma_sql.warehouse.parquet import read_metadata, write_table
from croma_sql.warehouse.publish import locked, publishing
from croma_sql.warehouse.scoring.vectors import Shape, shape_of

Outcome = Literal["pooled", "up to date"]
REPORT = "report"
FIRST = 4  # names told, one more than a message shows


@dataclass(frozen=True, slots=True)
class PooledEncoder:
    """What pooling wrote.

    n : groups that have a vector now; d, dtype : of their vectors
    n_vectors : that these were made from
    n_null : vectors passed over as they are NULL
    n_absent : samples of the groups that the encoder has no vector of
    n_ungrouped, ungrouped : samples left out, as an attribute that groups are told apart by is
        NULL, and the first of them
    n_empty, empty : groups left out, as none of their samples has a vector, and the first of them
    kept, differing : attributes that the new samples have, and those that they lack, as samples of
        one group differ in them; none where the dataset was imported
    """

    encoder: str
    dataset: str
    outcome: Outcome
    n: int
    d: int
    dtype: str
    n_vectors: int
    n_null: int
    n_absent: int
    n_ungrouped: int
    ungrouped: list[str]
    n_empty: int
    empty: list[str]
    kept: list[str]
    differing: list[str]


def pool(
    warehouse: str | Path,
    *,
    encoder: str,
    to: str,
    dataset: str,
    by: Sequence[str] = ("slide_id",),
    how: How = "mean",
    from_datasets: Sequence[str] | None = None,
    prefix: str = "",
    on_progress: Callable[[float], None] | None = None,
) -> PooledEncoder:
    """Pool the vectors of an encoder into one per group of samples, as a new encoder.

    A slide is a mean of its tiles, a slide under a scanner one of its tiles there. Every vector is
    read once; what is held is a sum per group. Sums are carried in twice the precision of float64,
    so that neither the order of the vectors nor how they lie in files shows in the result.

    Parameters
    ----------
    warehouse : path
    encoder : str
        Whose vectors are pooled.
    to : str
        Name of the new encoder.
    dataset : str
        Of the new samples. Several encoders pooled by the same attributes may share one. Where it
        was imported, as one of slides, its samples are taken as they are.
    by : sequence of str
        Attributes that the samples of a group agree in, in either case.
    how : {'mean', 'max', 'mean-normalised'}
        Mean of the vectors as they are stored, maximum of every feature, or mean of the vectors
        scaled to length 1.
    from_datasets : sequence of str, optional
        Pool these datasets of the encoder only.
    prefix : str
        What the new ids begin with.
    on_progress : callable, optional
        Gets the share of vectors read, in [0, 1].

    Returns
    -------
    PooledEncoder
        A new sample_id is the values of its group, such as ``'slide 7:scanner A'``. Samples have
        the attributes that they were pooled by, ``n_pooled`` (the number of samples of the group,
        whatever vectors an encoder has) and every attribute in which the samples of all groups
        agree. Vectors are float32, or float64 where the source is: a mean of float16 has more
        digits than they have. NULL vectors and samples without one are passed over; samples that
        lack an attribute of ``by``, and groups without a vector, are left out. What is up to date
        is left alone.

    Raises
    ------
    WarehouseError
        No such vectors or attributes; names that are taken; ids that other samples have; groups
        whose vectors cancel, so that their mean has no direction.

    Examples
    --------
    >>> import tempfile
    >>> import croma_sql, polars as pl
    >>> warehouse = tempfile.mkdtemp()
    >>> tiles = pl.DataFrame({
    ...     "sample_id": ["a", "b", "c"], "slide_id": ["s1", "s1", "s2"], "x": [0, 256, 0],
    ...     "embedding": [[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]],
    ... })
    >>> done = croma_sql.import_embeddings(
    ...     warehouse, tiles, encoder="e", dataset="tiles", samples=tiles.drop("embedding")
    ... )
    >>> pool(warehouse, encoder="e", to="e mean", dataset="slides").differing
    ['x']
    >>> croma_sql.connect(warehouse).sql('''
    ...     SELECT sample_id, slide_id, n_pooled, embedding
    ...     FROM samples JOIN embeddings USING (sample_id) WHERE encoder = 'e mean' ORDER BY 1
    ... ''').fetchall()
    [('s1', 's1', 2, [0.5, 0.5]), ('s2', 's2', 1, [1.0, 2.0])]
    """
    root = layout.open_warehouse(warehouse)
    datasets = None if from_datasets is None else _names(from_datasets)
    recipe = Recipe(encoder, _names(by), how, datasets, prefix)
    if to == encoder:
        raise WarehouseError(f"{to!r} cannot be pooled into itself; name the new encoder with --to")
    find = partial(origin, root, recipe, dataset)
    source = find()
    check_replaceable(root, to, dataset, source.about)
    target = layout.embeddings_path(root, to, dataset)
    if target.exists() and described(target) == source.about:
        return _told_before(target)
    groups = read_groups(list(source.datasets.values()), source.about["by"], prefix)
    _check_known(groups, source, dataset)
    shape = _shape(root, source, to, dataset)
    vectors = pooled(source.files, groups, shape.d, how, on_progress)
    report = _report(to, dataset, groups, vectors, shape, source)

    @contextmanager
    def committing() -> Iterator[None]:
        with locked(root):
            if find().about != source.about:
                raise WarehouseError(f"encoder {encoder!r} has changed meanwhile; run it again")
            check_replaceable(root, to, dataset, source.about)
            if source.known is None:  # samples first: vectors without them are never to be seen
                _write_samples(root, groups, source, dataset, to)
            yield

    about = {
        "format": layout.FORMAT,
        "dropped": _without_vector(groups, vectors, source),
        KEY: source.about,
        REPORT: asdict(report),
    }
    with publishing(target, committing) as file:
        write(file, groups, vectors, shape, how, about)
    return report


def _names(given: Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _told_before(target: Path) -> PooledEncoder:
    return replace(PooledEncoder(**read_metadata(target)[REPORT]), outcome="up to date")


def _check_known(groups: Groups, source: Origin, dataset: str) -> None:
    """Refuse groups that an imported dataset does not know."""
    if source.known is None:
        return
    ids = groups.table.column(SAMPLE)
    strangers = ids.filter(pc.invert(pc.is_in(ids, source.known)))
    if len(strangers):
        raise WarehouseError(
            f"{len(strangers)} of {len(ids)} groups are no samples of dataset {dataset!r}, which "
            f"was imported: {listed(strangers.to_pylist())}. Pool into another with --dataset, and "
            "a --prefix if their ids are taken (Python: dataset=, prefix=), or add these samples"
        )


def _shape(root: Path, source: Origin, to: str, dataset: str) -> Shape:
    """Give dimension and precision of the new vectors."""
    of_source = shape_of(source.files)
    for file in layout.embeddings_files(root):
        if file.encoder == to and file.dataset != dataset:
            d = read_shape(file.path).d
            if d != of_source.d:
                raise WarehouseError(
                    f"encoder {to!r} has vectors of {d} dimensions in dataset {file.dataset!r}; "
                    f"these would have {of_source.d}. Name another with --to (Python: to=)"
                )
    return Shape(of_source.d, np.promote_types(of_source.dtype, np.float32))


def _write_samples(root: Path, groups: Groups, source: Origin, dataset: str, to: str) -> None:
    how = " with --prefix (Python: prefix=)"
    check_against_warehouse(root, groups.table, dataset, replacing=to, how=how)
    made = {name: source.about[name] for name in ("by", "prefix")}
    about = {"format": layout.FORMAT, KEY: made | {"datasets": list(source.datasets)}}
    write_table(layout.samples_path(root, dataset), groups.table, about)


def _without_vector(groups: Groups, vectors: Pooled, source: Origin) -> list[str]:
    """List samples of the dataset that get none, so that scoring passes over them."""
    ids = groups.table.column(SAMPLE)
    with_vector = ids.filter(pa.array(vectors.count > 0))
    samples = ids if source.known is None else source.known
    found: list[str] = samples.filter(pc.invert(pc.is_in(samples, with_vector))).to_pylist()
    return found


def _report(
    to: str, dataset: str, groups: Groups, vectors: Pooled, shape: Shape, source: Origin
) -> PooledEncoder:
    is_grouped = groups.place != NOWHERE
    n_vectors = int(vectors.count.sum())
    empty = groups.table.column(SAMPLE).filter(pa.array(vectors.count == 0)).to_pylist()
    ungrouped = groups.ids.filter(~is_grouped)
    writes_samples = source.known is None
    return PooledEncoder(
        encoder=to,
        dataset=dataset,
        outcome="pooled",
        n=len(groups.table) - len(empty),
        d=shape.d,
        dtype=str(shape.dtype),
        n_vectors=n_vectors,
        n_null=vectors.n_null,
        n_absent=int(is_grouped.sum()) - n_vectors - vectors.n_null,
        n_ungrouped=len(ungrouped),
        ungrouped=ungrouped.head(FIRST).to_list(),
        n_empty=len(empty),
        empty=empty[:FIRST],
        kept=groups.table.column_names[1:] if writes_samples else [],
        differing=groups.differing if writes_samples else [],
    )
