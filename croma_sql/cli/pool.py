"""croma-sql pool."""

import csv
from enum import StrEnum
from typing import Annotated

import typer

from croma_sql.cli.options import Warehouse
from croma_sql.errors import listed
from croma_sql.progress import progress_bars
from croma_sql.warehouse.data import pool as pooling

NAMES = 10  # of attributes that a sentence lists


class How(StrEnum):
    """What becomes of the vectors of a group."""

    mean = "mean"
    max = "max"
    mean_normalised = "mean-normalised"


def pool(
    warehouse: Warehouse,
    encoder: Annotated[str, typer.Option(help="The encoder to pool.")],
    to: Annotated[str, typer.Option(help="Name of the new encoder.")],
    dataset: Annotated[str, typer.Option(help="Name of the set of new samples, one per group.")],
    by: Annotated[
        list[str] | None,
        typer.Option(help="Attributes to pool by, such as slide_id,scanner; default slide_id."),
    ] = None,
    how: Annotated[
        How,
        typer.Option(help="Mean, maximum of every feature, or mean of vectors scaled to length 1."),
    ] = How.mean,
    from_dataset: Annotated[
        list[str] | None,
        typer.Option(help="Only this dataset of the encoder; may be repeated; default all."),
    ] = None,
    prefix: Annotated[str, typer.Option(help="What the new ids begin with.")] = "",
) -> None:
    """Pool vectors into one per slide, or any other group, as a new encoder."""
    names = [name.strip() for some in csv.reader(by or ["slide_id"]) for name in some]
    with progress_bars() as report:
        done = pooling.pool(
            warehouse,
            encoder=encoder,
            to=to,
            dataset=dataset,
            by=names,
            how=how.value,
            from_datasets=from_dataset,
            prefix=prefix,
            on_progress=lambda share: report(f"pooling {encoder}", share),
        )
    state = " (up to date)" if done.outcome == "up to date" else ""
    typer.echo(
        f"{done.n} vectors of {done.d} {done.dtype} values as encoder {to!r}, dataset {dataset!r} "
        f"of {warehouse}: the {how.value} by {', '.join(names)} of {done.n_vectors} vectors of "
        f"{encoder!r}{state}"
    )
    for line in _left_out(done, names):
        typer.echo(line)
    typer.echo(
        f"next: a benchmark WHERE dataset = {_quoted(dataset)}; one that takes all samples has "
        "these too now"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _left_out(done: pooling.PooledEncoder, names: list[str]) -> list[str]:
    """Say what did not take part, and which attributes the new samples have."""
    lines = {
        f"passed over: {done.n_null} NULL vectors": done.n_null,
        f"passed over: {done.n_absent} samples without a vector": done.n_absent,
        f"left out: {done.n_ungrouped} samples that lack {' or '.join(map(repr, names))}: "
        f"{listed(done.ungrouped)}": done.ungrouped,
        f"left out: {done.n_empty} groups without any vector: {listed(done.empty)}": done.empty,
        f"attributes: {listed(done.kept, show=NAMES)}": done.kept,
        "not kept, as they differ within a group: "
        f"{listed(done.differing, show=NAMES)}": done.differing,
    }
    return [line for line, is_told in lines.items() if is_told]
