"""Remove encoders, datasets, benchmarks and scores, with what cannot be without them.

What is to go is listed in a file of the warehouse before anything is deleted, and that file is
deleted last. So a run that is killed leaves its list: `check` names it, and the same command, run
again, ends the work.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from croma_sql.errors import WarehouseError, listed
from croma_sql.places import below, is_local
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.texts import read_text
from croma_sql.warehouse.derived import harmonised, pooled
from croma_sql.warehouse.pending import PENDING, Pending, begun, read_pending, write_pending
from croma_sql.warehouse.publish import locked
from croma_sql.warehouse.scoring.made_of import MADE_OF
from croma_sql.warehouse.scoring.schemas import CONSISTENCY


@dataclass(frozen=True, slots=True)
class Removed:
    """What went, or would go.

    files, size : how many files, and their bytes
    encoders, datasets, benchmarks : names of those that are gone as a whole
    scores : benchmark and encoder of tables of scores
    """

    files: int
    size: int
    encoders: list[str]
    datasets: list[str]
    benchmarks: list[str]
    scores: list[tuple[str, str]]


@dataclass(slots=True)
class _Wanted:
    """What is to go: encoders, datasets and benchmarks by name, and scores."""

    encoders: set[str]
    datasets: set[str]
    benchmarks: set[str]
    scores: Callable[[layout.ScoresFile], bool]


def remove_encoder(
    warehouse: str | Path, encoder: str, *, with_derived: bool = False, dry_run: bool = False
) -> Removed:
    """Remove an encoder: its vectors, what they were imported from, and its scores.

    Its attributes (`import_encoders`) stay.

    Parameters
    ----------
    warehouse : path or URL
    encoder : str
    with_derived : bool
        Also remove encoders that were harmonised or pooled from it, and from those.
    dry_run : bool
        Remove nothing, and tell what would go.

    Returns
    -------
    Removed

    Raises
    ------
    WarehouseError
        No such encoder; others are derived from it; another removal has not ended.
    """
    root = layout.find_warehouse(warehouse)

    def plan() -> _Wanted:
        _check_known("encoder", encoder, _encoders(root), root)
        encoders = _derived(root, {encoder})
        _check_alone(f"encoder {encoder!r}", encoders - {encoder}, with_derived)
        return _Wanted(encoders, set(), set(), lambda _: False)

    return _remove(root, ("encoder", [encoder]), plan, dry_run)


def remove_dataset(
    warehouse: str | Path, dataset: str, *, with_derived: bool = False, dry_run: bool = False
) -> Removed:
    """Remove a dataset: its samples, and the vectors of all encoders of it.

    Parameters
    ----------
    warehouse, dry_run : as in `remove_encoder`
    dataset : str
    with_derived : bool
        Also remove benchmarks that are bound to it, with their scores, and encoders that were
        pooled from it or harmonised on those benchmarks.

    Returns
    -------
    Removed
        An encoder that has vectors of no other dataset is gone with it, and so are its scores.

    Raises
    ------
    WarehouseError
        No such dataset; benchmarks or encoders depend on it; another removal has not ended.
    """
    root = layout.find_warehouse(warehouse)

    def plan() -> _Wanted:
        files = layout.embeddings_files(root)
        known = {*layout.samples_files(root), *(file.dataset for file in files)}
        _check_known("dataset", dataset, known, root)
        bound = {name for name in layout.benchmarks_files(root) if dataset in _bound(root, name)}
        elsewhere = {file.encoder for file in files if file.dataset != dataset}
        made_from = {file.encoder for file in files if dataset in _pooled_datasets(file)}
        gone = {file.encoder for file in files if file.dataset == dataset} - elsewhere
        encoders = _derived(root, made_from | _fitted(root, bound))
        _check_alone(f"dataset {dataset!r}", encoders, with_derived, bound)
        return _Wanted(encoders | gone, {dataset}, bound, lambda _: False)

    return _remove(root, ("dataset", [dataset]), plan, dry_run)


def remove_benchmark(
    warehouse: str | Path, benchmark: str, *, with_derived: bool = False, dry_run: bool = False
) -> Removed:
    """Remove a benchmark and its scores.

    Parameters
    ----------
    warehouse, dry_run : as in `remove_encoder`
    benchmark : str
    with_derived : bool
        Also remove encoders that were harmonised on it, and what was made from those.

    Returns
    -------
    Removed

    Raises
    ------
    WarehouseError
        No such benchmark; encoders are derived from it; another removal has not ended.
    """
    root = layout.find_warehouse(warehouse)

    def plan() -> _Wanted:
        _check_known("benchmark", benchmark, set(layout.benchmarks_files(root)), root)
        encoders = _derived(root, _fitted(root, {benchmark}))
        _check_alone(f"benchmark {benchmark!r}", encoders, with_derived)
        return _Wanted(encoders, set(), {benchmark}, lambda _: False)

    return _remove(root, ("benchmark", [benchmark]), plan, dry_run)


def remove_scores(
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    dry_run: bool = False,
) -> Removed:
    """Remove scores, which can be computed again; those of all benchmarks and encoders by default.

    Parameters
    ----------
    warehouse, dry_run : as in `remove_encoder`
    benchmark, encoder : str, optional
        Only scores of this one.

    Returns
    -------
    Removed

    Raises
    ------
    WarehouseError
        No scores of these names; another removal has not ended.
    """
    root = layout.find_warehouse(warehouse)

    def is_wanted(file: layout.ScoresFile) -> bool:
        return benchmark in (None, file.benchmark) and encoder in (None, file.encoder)

    def plan() -> _Wanted:
        if not any(map(is_wanted, layout.scores_files(root))):
            raise WarehouseError(f"{root} has no scores of these names; croma-sql info lists all")
        return _Wanted(set(), set(), set(), is_wanted)

    options = [] if benchmark is None else ["--benchmark", benchmark]
    options += [] if encoder is None else ["--encoder", encoder]
    return _remove(root, ("scores", options), plan, dry_run)


def _remove(
    root: Path, command: tuple[str, list[str]], plan: Callable[[], _Wanted], dry_run: bool
) -> Removed:
    """Delete what was listed before, where such a command was interrupted; else what is planned."""
    with locked(root):
        pending = read_pending(root)
        if pending is None:
            pending = _pending(root, command, plan())
        elif not pending.is_of(*command):
            raise WarehouseError(begun(root, pending))
        files = [path for name in pending.files if (path := root / name).exists()]
        size = sum(file.stat().st_size for file in files)
        if not dry_run:
            write_pending(root, pending)
            _delete(root, files)
            (root / PENDING).unlink()
    scores = [(benchmark, encoder) for benchmark, encoder in pending.scores]
    names = pending.encoders, pending.datasets, pending.benchmarks
    return Removed(len(files), size, *names, scores)


def _pending(root: Path, command: tuple[str, list[str]], wanted: _Wanted) -> Pending:
    files, scores = _files(root, wanted)
    return Pending(
        *command,
        [file.relative_to(root).as_posix() for file in files],
        sorted(wanted.encoders),
        sorted(wanted.datasets),
        sorted(wanted.benchmarks),
        [list(one) for one in scores],
    )


def _files(root: Path, wanted: _Wanted) -> tuple[list[Path], list[tuple[str, str]]]:
    """Files that are to go, those that need others first; and whose scores are among them."""
    all_scores = layout.scores_files(root)
    scores = [
        file
        for file in all_scores
        if file.encoder in wanted.encoders
        or file.benchmark in wanted.benchmarks
        or wanted.scores(file)
    ]
    compared = {f.benchmark for f in all_scores if f.table in CONSISTENCY and f not in scores}
    touched = {file.benchmark for file in scores} | wanted.benchmarks
    members = [
        path
        for name, path in layout.members_files(root).items()
        if name in touched and name not in compared
    ]
    benchmarks = [layout.benchmark_path(root, name) for name in wanted.benchmarks]
    samples = [layout.samples_path(root, name) for name in wanted.datasets]
    pairs = {
        (file.encoder, file.dataset)
        for file in _vectors(root)
        if file.encoder in wanted.encoders or file.dataset in wanted.datasets
    }
    found = [file.path for file in scores] + members + benchmarks
    for encoder, dataset in sorted(pairs):
        found += layout.parts_there(root, encoder, dataset)
        found.append(layout.sources_path(root, encoder, dataset))
        found.append(layout.embeddings_path(root, encoder, dataset))
    there = [path for path in [*found, *samples] if path.exists()]
    return there, sorted({(file.benchmark, file.encoder) for file in scores})


def _delete(root: Path, files: Iterable[Path]) -> None:
    for path in files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise WarehouseError(
                f"cannot delete {path}: {error.strerror or error}. Run the same command again"
            ) from error
        if is_local(path):
            for folder in path.parents:
                if folder == root or below(folder):
                    break
                with contextlib.suppress(OSError):  # another writer was faster
                    folder.rmdir()


def _vectors(root: Path) -> list[layout.EmbeddingsFile | layout.SourcesFile]:
    return [*layout.embeddings_files(root), *layout.sources_files(root)]


def _encoders(root: Path) -> set[str]:
    return {file.encoder for file in _vectors(root)} | {
        file.encoder for file in layout.scores_files(root)
    }


def _derived(root: Path, encoders: set[str]) -> set[str]:
    """Add encoders that were harmonised or pooled from these, and from those."""
    made_from = {
        (file.encoder, about.get("encoder"))
        for file in layout.embeddings_files(root)
        if (about := harmonised.described(file.path) or pooled.described(file.path))
    }
    found = set(encoders)
    while more := {one for one, source in made_from if source in found} - found:
        found |= more
    return found


def _fitted(root: Path, benchmarks: set[str]) -> set[str]:
    """Find encoders that were harmonised on benchmarks."""
    return {
        file.encoder
        for file in layout.embeddings_files(root)
        if (harmonised.described(file.path) or {}).get("benchmark") in benchmarks
    }


def _pooled_datasets(file: layout.EmbeddingsFile) -> Collection[str]:
    """List datasets that vectors were pooled from."""
    about = pooled.described(file.path) or {}
    made = about.get(MADE_OF)
    return made.get("samples", ()) if isinstance(made, dict) else ()


def _bound(root: Path, benchmark: str) -> tuple[str, ...]:
    """Datasets that a benchmark names as those that it is bound to."""
    text = read_text(benchmark, layout.benchmark_path(root, benchmark).read_text(encoding="utf-8"))
    return text.datasets if isinstance(text.datasets, tuple) else ()


def _check_known(what: str, name: str, known: set[str], root: Path) -> None:
    if name not in known:
        there = listed(sorted(known), show=10) if known else "none"
        raise WarehouseError(f"{root} has no {what} {name!r}; it has {there}")


def _check_alone(
    what: str, encoders: set[str], with_derived: bool, benchmarks: Iterable[str] = ()
) -> None:
    if with_derived:
        return
    told = [
        f"{kind} {listed(sorted(names), show=10)}"
        for kind, names in (("benchmarks", benchmarks), ("encoders", encoders))
        if names
    ]
    if told:
        raise WarehouseError(
            f"{' and '.join(told)} depend on {what}. Remove them too with --with-derived "
            "(Python: with_derived=True), or one by one before it"
        )
