"""croma-sql pool."""

import csv
from enum import StrEnum
from typing import Annotated

import typer

from croma_sql.cli.options import Warehouse
from croma_sql.errors import counted, listed
from croma_sql.progress import progress_bars
from croma_sql.warehouse.derived import pool as pooling

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
    vectors, values = counted(done.n, "vector"), counted(done.d, f"{done.dtype} value")
    typer.echo(
        f"{vectors} of {values} as encoder {to!r}, "
        f"dataset {dataset!r} of {warehouse}: the {how.value} by {', '.join(names)} of "
        f"{counted(done.n_vectors, 'vector')} of {encoder!r}{state}"
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
    groups = counted(done.n_empty, "group")
    lines = {
        f"passed over: {counted(done.n_null, 'NULL vector')}": done.n_null,
        f"passed over: {counted(done.n_absent, 'sample')} without a vector": done.n_absent,
        f"left out: {counted(done.n_ungrouped, 'sample')} without {' or '.join(map(repr, names))}: "
        f"{listed(done.ungrouped)}": done.ungrouped,
        f"left out: {groups} without any vector: {listed(done.empty)}": done.empty,
        f"attributes: {listed(done.kept, show=NAMES)}": done.kept,
        "not kept, as they differ within a group: "
        f"{listed(done.differing, show=NAMES)}": done.differing,
    }
    return [line for line, is_told in lines.items() if is_told]
