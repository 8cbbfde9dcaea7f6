"""An encoder harmonised into a new one, in streaming passes over its vectors."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_column
from croma_sql.errors import HarmonisationError
from croma_sql.harmonisation.design import Design, Levels, design, is_number, levels
from croma_sql.harmonisation.fitting import FitOn, How, Method, checked, fit
from croma_sql.udfs.threads import cores
from croma_sql.warehouse import layout
from croma_sql.warehouse.derived.harmonised import (
    SAMPLE,
    Origin,
    described,
    kept,
    origin,
    replaceable,
)
from croma_sql.warehouse.derived.harmonised_vectors import Stream, n_null
from croma_sql.warehouse.parquet import read_footer
from croma_sql.warehouse.publish import locked, publishing

Outcome = Literal["harmonised", "up to date"]
KeptAs = Literal["number", "categories"]


@dataclass(frozen=True, slots=True)
class Harmonised:
    """What harmonising wrote.

    n : vectors; n_null : of them NULL, as in the source; left_out : vectors of the source whose
        samples are not in the benchmark
    confounders, groups : of the n samples
    kept : what was kept, and as what: 'number' or 'categories'
    replaced : what the files that were there say of how they were made, where it was differently:
        method, fit_on, keep, and of directions n_directions, folds, seed
    """

    encoder: str
    outcome: Outcome
    n: int
    n_null: int
    left_out: int
    confounders: int
    groups: int
    kept: dict[str, KeptAs]
    replaced: dict[str, Any] | None = None


def harmonise(
    warehouse: str | Path,
    *,
    encoder: str,
    benchmark: str,
    to: str | None = None,
    method: Method = "combat",
    keep: Sequence[str] = (),
    fit_on: FitOn = "samples",
    n_directions: int | None = None,
    folds: int | None = None,
    seed: int | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Harmonised:
    """Remove the confounder of a benchmark from an encoder, into vectors of a new encoder.

    Samples outside the benchmark have none, and are passed over when the new encoder is scored.

    Parameters
    ----------
    warehouse : path
    encoder, benchmark : str
        Its confounder is removed and its groups are those of ``fit_on`` and ``folds``. Of paired
        acquisitions, the acquisition is the confounder and the unit the group.
    to : str, optional
        Name of the new encoder; default ``encoder`` and the method, such as ``'UNI2-h combat'``.
    method : {'combat', 'mean', 'directions'}
        See `croma_sql.combat`, `croma_sql.mean_centred`, `croma_sql.without_directions`.
    keep : sequence of str
        ``'label'``, which is the benchmark's, or attributes of the samples, in either case: what
        may differ between confounders and is not to be removed with them. An attribute of numbers
        is a number, its effect a straight line, also where they are codes of categories; all else
        are categories.
    fit_on
        As in `croma_sql.combat`.
    n_directions, folds, seed
        As in `croma_sql.without_directions`; for ``method='directions'`` only.
    on_progress : callable, optional
        Gets the share done, in [0, 1].

    Returns
    -------
    Harmonised
        Vectors are float32 whatever the source has: float16 would round by as much as small
        differences between confounders are, and float64 would keep digits that the estimates lack.
        All datasets appear together, in the order of the source. What is up to date is left alone;
        what was made from the same encoder and benchmark is replaced. Where that was by another
        method, or keeping something else, its scores go too: they are of vectors that are gone.

    Raises
    ------
    HarmonisationError
        See `croma_sql.combat`; samples with several confounders; a name that vectors have which
        were not made from the same encoder and benchmark.

    Examples
    --------
    >>> import tempfile
    >>> import croma_sql, polars as pl
    >>> warehouse = tempfile.mkdtemp()
    >>> tiles = pl.DataFrame({
    ...     "sample_id": ["a", "b", "c", "d"],
    ...     "class": ["tumour", "normal", "tumour", "normal"],
    ...     "centre": ["Oslo", "Oslo", "Łódź", "Łódź"],
    ...     "embedding": [[1.0, 0.0], [0.0, 1.0], [1.0, 2.0], [0.0, 3.0]],
    ... })
    >>> done = croma_sql.import_embeddings(
    ...     warehouse, tiles, encoder="e", dataset="d", samples=tiles.drop("embedding")
    ... )
    >>> added = croma_sql.add_benchmark(warehouse, "by centre", '''
    ...     SELECT sample_id, class AS label, centre AS confounder, sample_id AS group_id
    ...     FROM samples
    ... ''')
    >>> harmonise(warehouse, encoder="e", benchmark="by centre", method="mean").encoder
    'e mean'
    >>> croma_sql.connect(warehouse).sql('''
    ...     SELECT embedding FROM embeddings WHERE encoder = 'e mean' ORDER BY sample_id
    ... ''').fetchall()
    [([1.0, 1.0],), ([0.0, 2.0],), ([1.0, 1.0],), ([0.0, 2.0],)]
    """
    root = layout.open_warehouse(warehouse)
    how = _how(method, fit_on, n_directions=n_directions, folds=folds, seed=seed)
    to = f"{encoder} {method}" if to is None else to
    if to == encoder:
        raise HarmonisationError(f"{to!r} cannot replace itself; give the new encoder another name")
    names = [keep] if isinstance(keep, str) else list(keep)
    find = partial(origin, root, encoder, benchmark, names, _parameters(how))
    source = find()
    targets: dict[Path, list[Path]] = defaultdict(list)
    for file in layout.embeddings_files(root):
        if file.path in source.files:
            targets[layout.embeddings_path(root, to, file.dataset)].append(file.path)
    told = partial(_told, source, to)
    _replaced(root, to, source)
    there = _files(root, to)
    if set(there) == set(targets) and all(described(path) == source.about for path in there):
        return told("up to date", sum(map(n_null, there)))
    with cores(1), ExitStack() as files:
        stream = Stream(source, how.passes, on_progress)
        fitted = fit(stream.blocks, *_model(source, stream.ids), how, stream.largest)
        for target, paths in targets.items():
            stream.write(files.enter_context(publishing(target)), paths, fitted)
        with locked(root):
            if find().about != source.about:
                raise HarmonisationError(f"encoder {encoder!r} has changed meanwhile; run it again")
            replaced = _replaced(root, to, source)
            outdated = set(_files(root, to)) - set(targets)
            if replaced is not None:
                _remove_scores(root, to)
            files.close()
            for path in outdated:
                path.unlink()
    return replace(told("harmonised", len(source.rows) - len(stream.ids)), replaced=replaced)


def _how(method: Method, fit_on: FitOn, **of_directions: int | None) -> How:
    given = {name: value for name, value in of_directions.items() if value is not None}
    how = checked(How(method, fit_on, **given))
    if given and method != "directions":
        raise HarmonisationError(
            f"{next(iter(given))} is for method 'directions' only; leave it out"
        )
    return how


def _parameters(how: How) -> dict[str, Any]:
    """Give what the result depends on."""
    asked = asdict(how)
    return asked if how.method == "directions" else {"method": how.method, "fit_on": how.fit_on}


def _files(root: Path, encoder: str) -> list[Path]:
    return [file.path for file in layout.embeddings_files(root) if file.encoder == encoder]


def _replaced(root: Path, to: str, source: Origin) -> dict[str, Any] | None:
    """Check that what is there may be replaced; tell how it was made, if differently."""
    replaced = None
    for path in _files(root, to):
        about = replaceable(path)
        if any(about[name] != source.about[name] for name in ("encoder", "benchmark")):
            raise HarmonisationError(
                f"encoder {to!r} is there already, harmonised from {about['encoder']!r} on "
                f"benchmark {about['benchmark']!r}; name another with --to (Python: to=)"
            )
        if _recipe(about) != _recipe(source.about):
            replaced = _recipe(about)
    return replaced


def _recipe(about: dict[str, Any]) -> dict[str, Any]:
    where = ("encoder", "benchmark", "fingerprint")
    return {name: value for name, value in about.items() if name not in where}


def _remove_scores(root: Path, encoder: str) -> None:
    for file in layout.scores_files(root):
        if file.encoder == encoder:
            file.path.unlink()


def _model(source: Origin, ids: pa.Array) -> tuple[Design, Levels]:
    """Code the rows that have a vector, and their groups."""
    rows = source.rows.take(pc.index_in(ids, source.rows.column(SAMPLE)))
    column = {name: as_column(rows.column(name), name) for name in rows.column_names}
    keep = {name: column[kept(name)] for name in source.about["keep"]}
    return design(column["confounder"], keep, ids), levels(column["group_id"], "group_id", ids)


def _told(source: Origin, to: str, outcome: Outcome, nulls: int) -> Harmonised:
    vectors = sum(read_footer(path).num_rows for path in source.files)
    n = len(source.rows)
    confounders, groups = (
        pc.count_distinct(source.rows.column(name)).as_py() for name in ("confounder", "group_id")
    )
    kinds = {name: source.rows.schema.field(kept(name)).type for name in source.about["keep"]}
    known: dict[str, KeptAs] = {
        name: "number" if is_number(kind) else "categories" for name, kind in kinds.items()
    }
    return Harmonised(to, outcome, n, nulls, vectors - n, confounders, groups, known)
