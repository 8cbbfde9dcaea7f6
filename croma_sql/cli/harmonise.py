"""croma-sql harmonise."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from croma_sql.cli.options import Warehouse
from croma_sql.progress import progress_bars
from croma_sql.warehouse.derived import harmonise as harmonising


class Method(StrEnum):
    """How the confounder is removed."""

    combat = "combat"
    mean = "mean"
    directions = "directions"


class FitOn(StrEnum):
    """What estimates are made on."""

    samples = "samples"
    groups = "groups"


_AS = {"number": "a number", "categories": "categories"}
_DID = {
    "combat": "shift and scale of {confounders} confounders removed (ComBat)",
    "mean": "centred on the means of {confounders} confounders",
    "directions": "directions of {confounders} confounders removed, as other groups show them",
}


def harmonise(
    warehouse: Warehouse,
    encoder: Annotated[str, typer.Option(help="The encoder to harmonise.")],
    benchmark: Annotated[str, typer.Option(help="Whose confounder is removed.")],
    to: Annotated[
        str | None,
        typer.Option(help="Name of the new encoder; default the old one's and the method."),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(help="ComBat, centring on means, or projecting out what tells them apart."),
    ] = Method.combat,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="'label', or an attribute of the samples, to keep; may be repeated. Numbers are a "
            "straight line, all else categories."
        ),
    ] = None,
    fit_on: Annotated[
        FitOn, typer.Option(help="Estimate on samples, or on means of groups.")
    ] = FitOn.samples,
    n_directions: Annotated[
        int | None, typer.Option(help="For directions: how many; default all.", min=1)
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="For directions: of groups; default 5.", min=2)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="For directions: of the folds; default 0.", min=0)
    ] = None,
) -> None:
    """Remove a confounder from an encoder, into a new one."""
    with progress_bars() as report:
        done = harmonising.harmonise(
            warehouse,
            encoder=encoder,
            benchmark=benchmark,
            to=to,
            method=method.value,
            keep=keep or (),
            fit_on=fit_on.value,
            n_directions=n_directions,
            folds=folds,
            seed=seed,
            on_progress=lambda share: report(f"harmonising {encoder}", share),
        )
    counts = [
        f", {count} {what}"
        for count, what in ((done.n_null, "of them NULL"), (done.left_out, "others left out"))
        if count
    ]
    did = _DID[method.value].format(confounders=done.confounders)
    state = " (up to date)" if done.outcome == "up to date" else ""
    typer.echo(
        f"{done.n} vectors of {done.groups} groups as encoder {done.encoder!r} of {warehouse}"
        f"{''.join(counts)}: {did}{_kept(done.kept)}{state}"
    )
    if done.replaced is not None:
        typer.echo(f"replaced {done.encoder!r} and its scores: {_made(done.replaced)}")
    typer.echo(
        "next: croma-sql score and croma-sql centre, then croma-sql sql with "
        "'FROM harmonisation' for before and after"
    )


def _kept(kept: Mapping[str, str]) -> str:
    told = [f"{name!r} as {_AS[kind]}" for name, kind in kept.items()]
    return f"; kept {', '.join(told)}" if told else ""


def _made(recipe: Mapping[str, Any]) -> str:
    """Say how the vectors that were there had been made."""
    keep = f", kept {', '.join(map(repr, recipe['keep']))}" if recipe.get("keep") else ""
    given = [
        f", {name} {recipe[name]}"
        for name in ("fit_on", "n_directions", "folds", "seed")
        if recipe.get(name) is not None
    ]
    return f"it had been made with method {recipe.get('method')}{''.join(given)}{keep}"
