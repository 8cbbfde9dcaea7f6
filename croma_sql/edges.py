"""What every door makes of the edges a search found: lists per sample, and margins."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.udfs.neighbours.votes import hits
from croma_sql.udfs.scope import Codes, Edges, Neighbours, Scope


@dataclass(frozen=True, slots=True)
class Margins:
    """One entry per row of a scope; NaN where undefined, and then a reason.

    d_so, d_os : (n,) float64, mean cosine distance to the m nearest SO and OS neighbours
    margin : (n,) float64 in [-1, 1]
    undefined_reason : (n,) text or None
    """

    d_so: NDArray[np.float64]
    d_os: NDArray[np.float64]
    margin: NDArray[np.float64]
    undefined_reason: NDArray[np.object_]


def margins_of(edges: Edges, m: int) -> Margins:
    """Margin of every row: ``(d_OS - d_SO) / (d_OS + d_SO)`` (Grisi et al. 2026, CRoMa).

    Distances are added nearest first, as `croma_typed_mean` in ``sql/macros/parts`` does, so that
    all doors agree to the last bit.

    Examples
    --------
    >>> import croma_sql
    >>> z = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]
    >>> scope = croma_sql.cohort.build_scope(z, [0, 0, 1, 1], [0, 1, 0, 1], [1, 2, 3, 4])
    >>> edges = croma_sql.udfs.neighbours.search.search(scope, croma_sql.udfs.scope.Wanted(m=1))
    >>> margins_of(edges, 1).margin.round(6).tolist()  # (1 - 0.2) / (1 + 0.2) first
    [0.666667, -0.666667, 0.666667, -0.666667]
    """
    d_so, d_os = _typed_mean(edges.so, m), _typed_mean(edges.os, m)
    few_so, few_os = np.isnan(d_so), np.isnan(d_os)
    zero = d_so + d_os == 0
    reason = np.select(
        [~edges.usable, few_so & few_os, few_so, few_os, zero],
        ["bad_vector", "too_few_so_and_os", "too_few_so", "too_few_os", "zero_distance"],
        "",
    ).astype(object)
    reason[reason == ""] = None
    denominator = np.where(zero, np.nan, d_so + d_os)
    return Margins(d_so, d_os, (d_os - d_so) / denominator, reason)


def _typed_mean(neighbours: Neighbours, m: int) -> NDArray[np.float64]:
    n, depth = neighbours.distance.shape
    if m > depth:  # more than there are rows
        return np.full(n, np.nan)
    total = np.zeros(n)
    for nth in range(m):
        total += neighbours.distance[:, nth]
    return total / m


def typed_lists(found: Sequence[Edges], ids: pa.Array) -> pa.StructArray:
    """Per row, the ids and distances of its typed neighbours, nearest first.

    ``found`` are scopes whose rows follow one another, and ``ids`` those of all these rows. Lists
    ``so_id``, ``so_distance``, ``os_id``, ``os_distance`` are as long as neighbours exist.
    """
    fields: dict[str, pa.Array] = {}
    for name in ("so", "os"):
        offsets, neighbours, distances = _flat([getattr(edges, name) for edges in found])
        fields[f"{name}_id"] = pa.ListArray.from_arrays(offsets, ids.take(neighbours))
        fields[f"{name}_distance"] = pa.ListArray.from_arrays(offsets, distances)
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def nearest_lists(
    found: Sequence[Edges], scopes: Sequence[Scope], ids: pa.Array, anchors: slice = slice(None)
) -> pa.StructArray:
    """Per row, its nearest neighbours of any type: lists ``id``, ``type``, ``distance``.

    And lists ``label_hit``, ``confounder_hit``: whether the nearest so far vote for the sample's
    own (see `croma_sql.udfs.neighbours.votes.hits`). Parameters as in `typed_lists`; ``anchors``
    are the rows of their only scope that were searched.
    """
    offsets, neighbours, distances = _flat([edges.nearest for edges in found])
    label = np.concatenate([scope.label for scope in scopes])
    confounder = np.concatenate([scope.confounder for scope in scopes])
    anchor = np.repeat(np.arange(len(label))[anchors], np.diff(offsets))
    other_label = label[anchor] != label[neighbours]
    other_confounder = confounder[anchor] != confounder[neighbours]
    types = pa.array(["SS", "SO", "OS", "OO"]).take(pa.array(2 * other_label + other_confounder))
    fields = {
        "id": pa.ListArray.from_arrays(offsets, ids.take(neighbours)),
        "type": pa.ListArray.from_arrays(offsets, types),
        "distance": pa.ListArray.from_arrays(offsets, distances),
    }
    for name in ("label", "confounder"):
        voted = [
            _hits(edges.nearest, scope, getattr(scope, name), anchors)
            for edges, scope in zip(found, scopes, strict=True)
        ]
        fields[f"{name}_hit"] = pa.ListArray.from_arrays(offsets, pa.array(np.concatenate(voted)))
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def _hits(nearest: Neighbours, scope: Scope, code: Codes, anchors: slice) -> NDArray[np.bool_]:
    anchor = np.arange(len(code))[anchors]
    of_all = hits(nearest.neighbour, anchor, code, scope.usable, scope.rank)
    return of_all[nearest.neighbour >= 0]


def _flat(found: Sequence[Neighbours]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Offsets of lists, and what they hold: rows of all scopes one after the other, distances."""
    counts, rows, distances = [], [], []
    start = 0
    for some in found:
        there = some.neighbour >= 0
        counts.append(there.sum(axis=1))
        rows.append(some.neighbour[there].astype(np.int64) + start)
        distances.append(some.distance[there])
        start += len(there)
    offsets = np.concatenate([[0], np.concatenate(counts).cumsum()]).astype(np.int32)
    return pa.array(offsets), pa.array(np.concatenate(rows)), pa.array(np.concatenate(distances))
