"""Laps of croma_sql: each takes inputs and options, and gives what is timed and what it found.

A lap is ``begin(inputs, options) -> (compute, describe)``. Only ``compute()`` is timed; what
``describe`` makes of its result is compared with the other variants.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from inputs import Inputs

Found = dict[str, Any]
Lap = tuple[Callable[[], Any], Callable[[Any], Found]]


def search(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Search one scope; ``scope: true`` also times its validation, which croma does too."""
    from croma_sql.udfs.neighbours.search import search

    wanted, threads = _wanted(options), options["threads"]
    if options.get("scope"):
        return lambda: search(_scope(inputs), wanted, threads=threads), _describe(options)
    scope = _scope(inputs)
    return lambda: search(scope, wanted, threads=threads), _describe(options)


def margins(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Go through the public door: validation, search and a frame of margins."""
    import croma_sql

    given: dict[str, Any] = {"m": options["m"], "threads": options["threads"], **inputs.columns}

    def compute() -> Any:
        return croma_sql.margins(inputs.vectors, **given)

    return compute, lambda frame: {"margin": frame["margin"].to_numpy()}


def search_all(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Search every scope of the inputs; ``scope: true`` also times their validation."""
    from croma_sql.edges import margins_of
    from croma_sql.udfs.neighbours.search import search_all

    wanted, threads = _wanted(options), options["threads"]

    def describe(found: Any) -> Found:
        margin = [margins_of(edges, options["m"]).margin for edges in found]
        again = sum(edges.searched_again for edges in found)
        return {"margin": np.concatenate(margin), "searched_again": again}

    if options.get("scope"):
        return lambda: search_all(_scopes(inputs), wanted, threads=threads), describe
    scopes = _scopes(inputs)
    return lambda: search_all(scopes, wanted, threads=threads), describe


def panel(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Search 101 neighbours of any type too, and make RI, MaRI and k-NN accuracies of them."""
    from panel import odd_up_to, robustness

    from croma_sql.udfs.neighbours.search import search

    wanted, threads = _wanted(options), options["threads"]

    def compute() -> Any:
        scope = _scope(inputs)
        edges = search(scope, wanted, threads=threads)
        ks = odd_up_to(options["k"])
        return edges, robustness(edges.nearest, scope, ks, accuracies=options["accuracies"])

    def describe(result: Any) -> Found:
        edges, indices = result
        return {**_describe(options)(edges), **indices}

    return compute, describe


def silhouettes(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Measure the silhouettes of the confounder through the public door."""
    import croma_sql

    cluster = inputs.columns["confounder"]

    def compute() -> Any:
        return croma_sql.silhouettes(inputs.vectors, cluster, threads=options["threads"])

    return compute, lambda frame: {"silhouette": frame["silhouette"].to_numpy()}


def warehouse(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Read the margins that the command line has stored, from Python."""
    import croma_sql

    path = Path(options["folder"]) / "warehouse0"
    ids = inputs.columns["sample_id"].tolist()

    def compute() -> Any:
        con = croma_sql.connect(path)
        return con.sql("SELECT sample_id, margin FROM margins_at(5)").fetchall()

    def describe(rows: Any) -> Found:
        margin = {sample_id: value for sample_id, value in rows if value is not None}
        return {"margin": np.array([margin.get(sample_id, np.nan) for sample_id in ids])}

    return compute, describe


def bootstrap(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Resample the groups for the first features, each taken for the margins of an encoder."""
    import croma_sql

    frame = _as_margins(inputs, options["encoders"])
    given = {name: options[name] for name in ("statistics", "threads")}

    def compute() -> Any:
        return croma_sql.bootstrap(frame, by="encoder", **given)

    return compute, lambda found: {name: found[name].to_numpy() for name in ("lo", "hi")}


def rank_stability(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Rank all features, each taken for the margins of an encoder."""
    import croma_sql

    frame = _as_margins(inputs, inputs.vectors.shape[1])
    return lambda: croma_sql.rank_stability(frame, threads=options["threads"]), lambda _: {}


def _as_margins(inputs: Inputs, encoders: int) -> Any:
    import polars as pl

    return pl.concat(
        pl.DataFrame(
            {
                "encoder": pl.repeat(f"e{encoder:02d}", len(inputs.vectors), eager=True),
                "group_id": inputs.columns["group"],
                "margin": inputs.vectors[:, encoder].astype(np.float64),
            }
        )
        for encoder in range(encoders)
    )


def _wanted(options: dict[str, Any]) -> Any:
    from croma_sql.udfs.scope import Wanted

    return Wanted(m=options["m"], k=options.get("k", 0), first_ranks=False)


def _scope(inputs: Inputs) -> Any:
    from croma_sql.cohort import build_scope

    columns: dict[str, Any] = dict(inputs.columns)
    return build_scope(inputs.vectors, **columns)


def _scopes(inputs: Inputs) -> Any:
    """Validate all scopes in one go, as the SQL and Polars doors do."""
    from croma_sql.cohort import Columns, Names, as_column, build_scopes
    from croma_sql.vectors import as_matrix, in_memory

    columns = Columns(**{name: as_column(column, name) for name, column in inputs.columns.items()})
    names = [Names()] * (len(inputs.bounds) - 1)
    vectors = in_memory(as_matrix(inputs.vectors))
    every_row = np.arange(len(inputs.vectors))
    return build_scopes(vectors, every_row, columns, inputs.bounds, names, "error")


def _describe(options: dict[str, Any]) -> Callable[[Any], Found]:
    def describe(edges: Any) -> Found:
        from croma_sql.edges import margins_of

        return {
            "margin": margins_of(edges, options["m"]).margin,
            "so": edges.so.distance,
            "os": edges.os.distance,
            "searched_again": edges.searched_again,
        }

    return describe
