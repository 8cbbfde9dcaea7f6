"""What every door makes of the edges a search found: lists per sample, and margins."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.udfs.scope import OS, SO, Edges


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

    Distances are added nearest first, as `croma_typed_mean` in ``sql/macros`` does, so that all
    doors agree to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> edges = Edges(np.zeros((2, 1, 1), int), np.array([[[0.1]], [[0.3]]]), np.array([True]), 0)
    >>> margins_of(edges, 1).margin.round(6).tolist()  # (0.3 - 0.1) / (0.3 + 0.1)
    [0.5]
    """
    total = np.zeros(edges.distance.shape[:2])
    for nth in range(m):
        if nth == edges.distance.shape[2]:  # more than there are rows
            total[:] = np.nan
            break
        total += edges.distance[:, :, nth]
    d_so, d_os = total / m
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


def neighbour_lists(edges: Edges, ids: pa.Array) -> pa.StructArray:
    """Per row, the ids and distances of its typed neighbours, nearest first.

    Lists ``so_id``, ``so_distance``, ``os_id``, ``os_distance``, as long as neighbours exist.
    """
    fields: dict[str, pa.Array] = {}
    for kind, name in ((SO, "so"), (OS, "os")):
        found = edges.neighbour[kind] >= 0
        offsets = pa.array(np.concatenate([[0], found.sum(axis=1).cumsum()]), pa.int32())
        neighbours = ids.take(pa.array(edges.neighbour[kind][found]))
        distances = pa.array(edges.distance[kind][found])
        fields[f"{name}_id"] = pa.ListArray.from_arrays(offsets, neighbours)
        fields[f"{name}_distance"] = pa.ListArray.from_arrays(offsets, distances)
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
