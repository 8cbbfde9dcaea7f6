"""Which values the columns of tables of scores can have, whatever they are scores of."""

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.warehouse.scoring.schemas import Table

ROUNDING = 1e-9
DISTANCE = 0.0, 2.0
CORRELATION = -1 - ROUNDING, 1 + ROUNDING
COUNT, COUNT_OR_NONE = (1.0, 2.0**31), (0.0, 2.0**31)
RANGES: dict[Table, dict[str, tuple[float, float]]] = {
    "typed_neighbours": {"so_distance": DISTANCE, "os_distance": DISTANCE},
    "neighbours": {"distance": DISTANCE},
    "units": {"n_samples": COUNT, "intra_distance": DISTANCE, "median_distance": DISTANCE},
    "unit_pairs": {"distance": DISTANCE, "rank": COUNT, "profile_r": CORRELATION},
    "unit_neighbourhoods": {"n_units": COUNT, "depth": COUNT, "shared_at": COUNT},
    "acquisition_pairs": {
        "mantel_r": CORRELATION,
        "mantel_p": (0.0, 1.0),
        "permutations": COUNT_OR_NONE,
    },
    "acquisitions": {
        "n_vectors": COUNT,
        "mean_distance": DISTANCE,
        "effective_rank": (1 - ROUNDING, 2.0**31),
    },
    "silhouettes": {"label_silhouette": CORRELATION, "confounder_silhouette": CORRELATION},
    "cluster_counts": {"k": COUNT, "silhouette": CORRELATION},
    "clusterings": {
        "trial": COUNT_OR_NONE,
        "k": COUNT,
        "ari_bio": CORRELATION,
        "ari_confounder": CORRELATION,
    },
    "probe_predictions": {"fold": COUNT_OR_NONE},
}
_OF_ROWS = {"subset", "matched"}
NULLABLE: dict[Table, set[str]] = {
    "typed_neighbours": _OF_ROWS | {"first_so_rank", "first_os_rank"},
    "neighbours": _OF_ROWS,
    "units": set(),
    "unit_pairs": {"profile_r"},
    "unit_neighbourhoods": set(),
    "acquisition_pairs": {"mantel_r", "mantel_p"},
    "acquisitions": {"acquisition", "effective_rank"},
    "silhouettes": _OF_ROWS | {"label_silhouette", "confounder_silhouette"},
    "cluster_counts": {"silhouette"},
    "clusterings": {"k", "ari_bio", "ari_confounder"},
    "probe_predictions": {"subset", "fold", "predicted"},
}
NAMES: dict[Table, tuple[str, ...]] = {  # lists of ids that are in the column sample_id
    "typed_neighbours": ("so_id", "os_id"),
    "neighbours": ("neighbour_id",),
}


def impossible_value(name: Table, table: pa.Table) -> str | None:
    """Say which column holds what no table of this name does; None if none does."""
    for column in table.column_names:
        if column not in NULLABLE[name] and _nulls(table.column(column)):
            return f"{column} is NULL, or holds a NULL, which it never does"
    for column, (low, high) in RANGES[name].items():
        values = _flat(table.column(column)).cast(pa.float64())
        fits = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        if pc.any(pc.invert(fits)).as_py():
            return f"{column} is not from {low:g} to {high:g} throughout"
    for column in NAMES.get(name, ()):
        known = pc.is_in(_flat(table.column(column)), table.column("sample_id"))
        if pc.any(pc.invert(known)).as_py():
            return f"{column} has ids that are not in the file"
    return None


def _nulls(values: pa.ChunkedArray) -> int:
    return int(values.null_count) + int(_flat(values).null_count)


def _flat(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.list_flatten(values) if pa.types.is_list(values.type) else values
