"""Every benchmark of a kind under every encoder, or those that are named."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from croma_sql.errors import CromaSqlError, ScoringError, SourceError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.margin import Benchmark
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import read_benchmark
from croma_sql.warehouse.scoring.known_rows import keep_known, question
from croma_sql.warehouse.scoring.made_of import rows_of

Kind = TypeVar("Kind", Benchmark, PairedBenchmark)
Done = TypeVar("Done")

OTHER = {
    Benchmark: "of paired acquisitions, which is for croma-sql consistency",
    PairedBenchmark: "of margins, which is for croma-sql score",
}


def for_every(
    root: Path,
    kind: type[Kind],
    benchmark: str | None,
    encoder: str | None,
    do: Callable[[Kind, str], Done],
    failed: Callable[[str, str], Done],
) -> list[Done]:
    """Do something with every benchmark of a kind and every encoder, or with the one named.

    Benchmarks of the other kind are passed over.

    Parameters
    ----------
    do : gets a benchmark and the name of an encoder
    failed : says of the names of a benchmark and an encoder that they failed

    Raises
    ------
    ScoringError
        What failed and why, after everything else has been done, with all that became of them as
        ``done``. Nothing of that kind or name.
    """
    known = layout.benchmarks_files(root)
    names = _chosen(benchmark, list(known), "benchmark", root)
    encoders = _chosen(
        encoder, sorted({file.encoder for file in layout.embeddings_files(root)}), "encoder", root
    )
    done: list[Done] = []
    failures: list[str] = []
    others = []
    rows: dict[str, str] = {}
    for name in names:
        try:
            asked = _question(root, name)
            found = read_benchmark(root, name)
            if asked is not None and asked == _question(root, name):
                rows[asked] = rows_of(found)
        except CromaSqlError as error:
            failures.append(str(error))
            done += [failed(name, one) for one in encoders]
            continue
        if not isinstance(found, kind):
            others.append(name)
            continue
        for one in encoders:
            try:
                done.append(do(found, one))
            except CromaSqlError as error:
                failures.append(f"benchmark {name!r}, encoder {one!r}: {error}")
                done.append(failed(name, one))
    keep_known(root, rows)
    if len(others) == len(names):
        what = f"benchmark {benchmark!r} is" if benchmark else f"all benchmarks of {root} are"
        raise ScoringError(f"{what} {OTHER[kind]}")
    if failures:
        raise ScoringError("\n".join(failures), done)
    return done


def _question(root: Path, benchmark: str) -> str | None:
    """Ask what the rows depend on; None where a file cannot be read, as running it will say."""
    try:
        select = layout.benchmark_path(root, benchmark).read_bytes()
        return question(select, layout.samples_files(root))
    except (OSError, SourceError):
        return None


def _chosen(one: str | None, known: list[str], what: str, root: Path) -> list[str]:
    if not known:
        raise ScoringError(f"{root} has no {what} yet; add one first")
    if one is None:
        return known
    if one not in known:
        raise ScoringError(f"{root} has no {what} {one!r}; it has {listed(known, show=10)}")
    return [one]
