"""Names that views have for columns of their own, beside which attributes of samples stand.

There an attribute of such a name is ``sample_<name>``: see ``sql/views/data/attributes_but``.
"""

from collections.abc import Sequence

from croma_sql.errors import SourceError, listed

OWN = frozenset(
    {"acquisition", "acquisition_a", "acquisition_b", "benchmark", "confounder",
     "confounder_silhouette", "converged", "d_cos", "d_os", "d_so", "distance", "dominant",
     "encoder", "fold", "group_id", "intra_distance", "iok", "iok_1", "iok_10", "iok_5",
     "is_stale", "k", "label", "label_silhouette", "log_os", "log_so", "margin", "margins",
     "mari", "matched", "median_distance", "mr_1nn", "n_oo", "n_os", "n_samples",
     "n_shared", "n_so", "n_ss", "nearest_unit", "os_lift", "predicted", "probe",
     "profile_r", "rank", "ri", "so_lift", "subset", "target", "tau", "tau_warning",
     "top_10", "top_3", "top_5", "truth", "undefined_reason", "unit", "unsupported_reason"}
)  # fmt: skip
PREFIX = "sample_"


def told(columns: Sequence[str]) -> list[str]:
    """Say of attributes what views call them, where they have such columns of their own.

    Examples
    --------
    >>> told(["site", "margin"])
    ["column 'margin' is 'sample_margin' in views with a column of that name, as margins"]
    """
    found = [name for name in columns if name.lower() in OWN]
    if not found:
        return []
    noun, verb = ("column", "is") if len(found) == 1 else ("columns", "are")
    called = listed((PREFIX + name for name in found), show=len(found))
    return [
        f"{noun} {listed(found, show=len(found))} {verb} {called} in views with a column of that "
        "name, as margins"
    ]


def check_pairs(columns: Sequence[str], name: str) -> None:
    """Refuse two attributes that a view would give one name.

    Raises
    ------
    SourceError
    """
    there = {column.lower(): column for column in columns}
    for column in columns:
        other = there.get(PREFIX + column.lower())
        if column.lower() in OWN and other is not None:
            raise SourceError(
                f"{name}: columns {column!r} and {other!r} would have one name in views, which "
                f"call the first {PREFIX + column!r} beside results; rename one of them"
            )
