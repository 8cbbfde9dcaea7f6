"""Whether files of scores hold what tables of their name can hold."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.errors import ScoringError
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks import AnyBenchmark
from croma_sql.warehouse.paired_benchmark import PairedBenchmark, lacking
from croma_sql.warehouse.parquet import read_metadata, read_table
from croma_sql.warehouse.plan import Work, members_fingerprint, planned
from croma_sql.warehouse.score_schemas import CONSISTENCY, EDGES, MEMBERS, SCHEMAS, Table

AGAIN = "delete it and score again"
ROUNDING = 1e-9
DISTANCE = 0.0, 2.0
CORRELATION = -1 - ROUNDING, 1 + ROUNDING
COUNT, COUNT_OR_NONE = (1.0, 2.0**31), (0.0, 2.0**31)
RANGES: dict[Table, dict[str, tuple[float, float]]] = {
    "typed_neighbours": {"so_distance": DISTANCE, "os_distance": DISTANCE},
    "neighbours": {"distance": DISTANCE},
    "units": {"n_samples": COUNT, "intra_distance": DISTANCE},
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
NAMES: dict[Table, tuple[str, ...]] = {  # lists of ids that are in the column sample_id
    "typed_neighbours": ("so_id", "os_id"),
    "neighbours": ("neighbour_id",),
}


Read = Callable[[str], AnyBenchmark]


def check_scores(root: Path, read: Read, file: layout.ScoresFile) -> list[str]:
    """Say what is wrong with a file of scores; ``read`` gives a benchmark by its name."""
    table = read_table(file.path)
    if not table.schema.equals(SCHEMAS[file.table]):
        return [f"{file.path} has other columns than scores have; {AGAIN}"]
    if file.benchmark not in layout.benchmarks_files(root):
        return [f"{file.path}: there is no benchmark {file.benchmark!r} (any more)"]
    if file.encoder not in {embeddings.encoder for embeddings in layout.embeddings_files(root)}:
        return [f"{file.path}: there are no embeddings of {file.encoder!r} (any more)"]
    try:
        work = planned(root, file, read(file.benchmark))
    except ScoringError:  # samples without a vector yet: out of date, which is no fault
        return _out_of_range(file, table)
    if work.is_up_to_date(file.path) and not _has_rows_of(work, file, table):
        return [f"{file.path} does not hold the rows of its benchmark; {AGAIN}"]
    return _out_of_range(file, table)


def check_members(root: Path, read: Read, benchmark: str, path: Path) -> list[str]:
    """Say what is wrong with a file of who is in which unit."""
    table = read_table(path)
    if not table.schema.equals(MEMBERS):
        return [f"{path} has other columns than members have; {AGAIN}"]
    if benchmark not in layout.benchmarks_files(root):
        return [f"{path}: there is no benchmark {benchmark!r} (any more)"]
    found = read(benchmark)
    if not isinstance(found, PairedBenchmark):
        return [f"{path}: benchmark {benchmark!r} has no units (any more); delete the file"]
    is_fresh = read_metadata(path).get("fingerprint") == members_fingerprint(found)
    if is_fresh and not table.replace_schema_metadata(None).equals(found.rows):
        return [f"{path} does not hold the rows of its benchmark; {AGAIN}"]
    return []


def _out_of_range(file: layout.ScoresFile, table: pa.Table) -> list[str]:
    for name, (low, high) in RANGES[file.table].items():
        values = table.column(name)
        if pa.types.is_list(values.type):
            values = pc.list_flatten(values)
        values = values.cast(pa.float64())
        fits = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        if pc.any(pc.invert(fits)).as_py():
            return [f"{file.path}: {name} is not from {low:g} to {high:g} throughout; {AGAIN}"]
    for name in NAMES.get(file.table, ()):
        known = pc.is_in(pc.list_flatten(table.column(name)), table.column("sample_id"))
        if pc.any(pc.invert(known)).as_py():
            return [f"{file.path} has {name} that is not in it; {AGAIN}"]
    return []


def _has_rows_of(work: Work, file: layout.ScoresFile, table: pa.Table) -> bool:
    if file.table in (*EDGES, "silhouettes"):
        rows = table.select(work.rows.column_names).replace_schema_metadata(None)
        return bool(rows.equals(work.rows))
    return file.table not in CONSISTENCY or _has_units_of(work, file, table)


def _has_units_of(work: Work, file: layout.ScoresFile, table: pa.Table) -> bool:
    """Tell whether each unit and acquisition that there should be stands there once.

    Which units those are, of the ones that the rows leave complete, shows only when vectors are
    read; how many, the file says.
    """
    n = read_metadata(file.path).get("n_units")
    if not isinstance(n, int):
        return False
    acquisitions = work.rows.column("acquisition").unique()
    short = pa.array(lacking(work.rows), pa.string())
    units = work.rows.column("unit").unique()
    units = units.filter(pc.invert(pc.is_in(units, short)))
    s = len(acquisitions)
    expected = {
        "units": n * s,
        "unit_pairs": n * s * (s - 1),
        "unit_neighbourhoods": n,
        "acquisition_pairs": s * (s - 1),
        "acquisitions": s + 1,
    }
    known = dict.fromkeys(("unit", "nearest_unit"), units) | dict.fromkeys(
        ("acquisition", "acquisition_a", "acquisition_b"), acquisitions
    )
    named = [name for name in table.column_names if name in known]
    keys = [name for name in named if name != "nearest_unit"]
    return (
        len(table) == expected[file.table]
        and len(table.group_by(keys).aggregate([])) == len(table)
        and all(
            pc.all(pc.is_in(table.column(name).drop_null(), known[name]), min_count=0).as_py()
            for name in named
        )
    )
