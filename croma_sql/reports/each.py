"""One benchmark at a time, so that no number depends on what else is in the warehouse."""

from collections.abc import Callable

import polars as pl


def each_benchmark(
    frame: pl.DataFrame, statistic: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """Draw the groups of one benchmark at a time, so that no interval depends on the others."""
    parts = frame.sort("benchmark").partition_by("benchmark", maintain_order=True)
    return pl.concat([statistic(part) for part in parts], how="vertical_relaxed")


def subset_column(frame: pl.DataFrame) -> str | None:
    """Benchmarks without subsets have NULL there, which is one subset."""
    return None if frame["subset"].null_count() == len(frame) else "subset"
