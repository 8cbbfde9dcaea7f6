"""Columns of scores files."""

import pyarrow as pa

from croma_sql.warehouse import layout

_ROWS = [
    ("subset", pa.string()),
    ("sample_id", pa.string()),
    ("label", pa.string()),
    ("confounder", pa.string()),
    ("group_id", pa.string()),
    ("matched", pa.string()),
    ("usable", pa.bool_()),
    ("depth", pa.int32()),
]
_TYPED = pa.schema(
    [
        *_ROWS,
        ("so_id", pa.list_(pa.string())),
        ("so_distance", pa.list_(pa.float64())),
        ("os_id", pa.list_(pa.string())),
        ("os_distance", pa.list_(pa.float64())),
        ("first_so_rank", pa.int64()),
        ("first_os_rank", pa.int64()),
    ]
)
_NEAREST = pa.schema(
    [
        *_ROWS,
        ("neighbour_id", pa.list_(pa.string())),
        ("type", pa.list_(pa.string())),
        ("distance", pa.list_(pa.float64())),
        ("label_hit", pa.list_(pa.bool_())),
        ("confounder_hit", pa.list_(pa.bool_())),
    ]
)

SCHEMAS: dict[layout.Edges, pa.Schema] = {"typed_neighbours": _TYPED, "neighbours": _NEAREST}
