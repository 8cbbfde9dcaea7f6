"""Every benchmark of a kind under every encoder, or those that are named."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from croma_sql.errors import CromaSqlError, ScoringError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.margin import Benchmark
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import read_benchmark

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
) -> list[Done]:
    """Do something with every benchmark of a kind and every encoder, or with the one named.

    Benchmarks of the other kind are passed over.

    Raises
    ------
    ScoringError
        What failed and why, after everything else has been done. Nothing of that kind or name.
    """
    known = layout.benchmarks_files(root)
    names = _chosen(benchmark, list(known), "benchmark", root)
    encoders = _chosen(
        encoder, sorted({file.encoder for file in layout.embeddings_files(root)}), "encoder", root
    )
    done: list[Done] = []
    failures: list[str] = []
    others = []
    for name in names:
        try:
            found = read_benchmark(root, name)
        except CromaSqlError as error:
            failures.append(str(error))
            continue
        if not isinstance(found, kind):
            others.append(name)
            continue
        for one in encoders:
            try:
                done.append(do(found, one))
            except CromaSqlError as error:
                failures.append(f"benchmark {name!r}, encoder {one!r}: {error}")
    if len(others) == len(names):
        what = f"benchmark {benchmark!r} is" if benchmark else f"all benchmarks of {root} are"
        raise ScoringError(f"{what} {OTHER[kind]}")
    if failures:
        well = f"\n{len(done)} other(s) are done" if done else ""
        raise ScoringError("\n".join(failures) + well)
    return done


def _chosen(one: str | None, known: list[str], what: str, root: Path) -> list[str]:
    if not known:
        raise ScoringError(f"{root} has no {what} yet; add one first")
    if one is None:
        return known
    if one not in known:
        raise ScoringError(f"{root} has no {what} {one!r}; it has {listed(known, show=10)}")
    return [one]
