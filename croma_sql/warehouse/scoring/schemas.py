"""Tables under ``scores/``: their names, which are published together, and their columns."""

from typing import Literal, get_args

import pyarrow as pa

Edges = Literal["typed_neighbours", "neighbours"]
Consistency = Literal[
    "units", "unit_pairs", "unit_neighbourhoods", "acquisition_pairs", "acquisitions"
]
Centre = Literal["silhouettes", "cluster_counts", "clusterings", "probe_predictions"]
Table = Edges | Consistency | Centre

EDGES: tuple[Edges, ...] = get_args(Edges)
CONSISTENCY: tuple[Consistency, ...] = get_args(Consistency)
CENTRE: tuple[Centre, ...] = get_args(Centre)
FAMILIES: tuple[tuple[Table, ...], ...] = (EDGES, CONSISTENCY, CENTRE)

_ANCHOR = [
    ("subset", pa.string()),
    ("sample_id", pa.string()),
    ("label", pa.string()),
    ("confounder", pa.string()),
    ("group_id", pa.string()),
    ("matched", pa.string()),
]
_SEARCHED = [*_ANCHOR, ("usable", pa.bool_()), ("depth", pa.int32())]
_PAIR = [("acquisition_a", pa.string()), ("acquisition_b", pa.string())]

SCHEMAS: dict[Table, pa.Schema] = {
    "typed_neighbours": pa.schema(
        [
            *_SEARCHED,
            ("so_id", pa.list_(pa.string())),
            ("so_distance", pa.list_(pa.float64())),
            ("os_id", pa.list_(pa.string())),
            ("os_distance", pa.list_(pa.float64())),
            ("first_so_rank", pa.int64()),
            ("first_os_rank", pa.int64()),
        ]
    ),
    "neighbours": pa.schema(
        [
            *_SEARCHED,
            ("neighbour_id", pa.list_(pa.string())),
            ("type", pa.list_(pa.string())),
            ("distance", pa.list_(pa.float64())),
            ("label_hit", pa.list_(pa.bool_())),
            ("confounder_hit", pa.list_(pa.bool_())),
        ]
    ),
    "units": pa.schema(
        [
            ("unit", pa.string()),
            ("acquisition", pa.string()),
            ("n_samples", pa.int32()),
            ("intra_distance", pa.float64()),
            ("median_distance", pa.float64()),
        ]
    ),
    "unit_pairs": pa.schema(
        [
            ("unit", pa.string()),
            *_PAIR,
            ("distance", pa.float64()),
            ("rank", pa.int32()),
            ("nearest_unit", pa.string()),
            ("profile_r", pa.float64()),
        ]
    ),
    "unit_neighbourhoods": pa.schema(
        [
            ("unit", pa.string()),
            ("n_units", pa.int32()),
            ("depth", pa.int32()),
            ("shared_at", pa.list_(pa.int32())),
        ]
    ),
    "acquisition_pairs": pa.schema(
        [
            *_PAIR,
            ("mantel_r", pa.float64()),
            ("mantel_p", pa.float64()),
            ("permutations", pa.int32()),
        ]
    ),
    "acquisitions": pa.schema(
        [
            ("acquisition", pa.string()),
            ("n_vectors", pa.int32()),
            ("mean_distance", pa.float64()),
            ("effective_rank", pa.float64()),
        ]
    ),
    "silhouettes": pa.schema(
        [
            *_ANCHOR,
            ("label_silhouette", pa.float64()),
            ("confounder_silhouette", pa.float64()),
        ]
    ),
    "cluster_counts": pa.schema(
        [("quartet", pa.string()), ("k", pa.int32()), ("silhouette", pa.float64())]
    ),
    "clusterings": pa.schema(
        [
            ("quartet", pa.string()),
            ("trial", pa.int32()),
            ("k", pa.int32()),
            ("ari_bio", pa.float64()),
            ("ari_confounder", pa.float64()),
        ]
    ),
    "probe_predictions": pa.schema(
        [
            ("subset", pa.string()),
            ("sample_id", pa.string()),
            ("group_id", pa.string()),
            ("target", pa.string()),
            ("probe", pa.string()),
            ("fold", pa.int32()),
            ("truth", pa.string()),
            ("predicted", pa.string()),
        ]
    ),
}
MEMBERS = pa.schema(
    [("sample_id", pa.string()), ("unit", pa.string()), ("acquisition", pa.string())]
)


def family_of(table: Table) -> tuple[Table, ...]:
    """Tables that are made and published together with this one, itself among them."""
    return next(family for family in FAMILIES if table in family)
