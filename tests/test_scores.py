"""What scoring keeps, how deep, and within which memory."""

import pathlib

import numpy as np
import numpy.testing as npt
import polars as pl
import pyarrow.parquet as pq
import pytest
from cohorts import AWKWARD, random_cohort

import croma_sql
from croma_sql.udfs.neighbours.tiled import bytes_per_anchor
from croma_sql.udfs.scope import Wanted
from croma_sql.warehouse.scoring.memory import GROUP_ROWS, Cut, Size, checked_memory, cut

SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"
SUBSETS = SELECT.replace(" FROM", ", unnest(['x', 'y']) AS subset FROM")
NULL = {"on_undefined": "null"}


@pytest.fixture
def tiles():
    return random_cohort(0, n=90, groups=9).frame()


def built(root, tiles, select=SELECT):
    croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", samples=tiles)
    croma_sql.add_benchmark(root, "b", select)
    return root


def score(root, **options):
    (done,) = croma_sql.score(root, **NULL, **options)
    return done.outcome


def scores(root):
    return {path.name: path.read_bytes() for path in (root / "scores").rglob("*.parquet")}


def count(root, view):
    return croma_sql.connect(root).sql(f"SELECT count(*) FROM {view}").fetchall()[0][0]


# How deep


def test_deeper_is_scored_again_and_shallower_is_there(root, tiles):
    built(root, tiles)
    assert score(root) == "scored"
    assert count(root, "neighbours") == 0
    assert score(root, k=11) == "scored"
    assert score(root, m=5, k=3) == score(root) == "up to date"
    assert count(root, "neighbours") == 90 * 11
    assert score(root, k=12) == "scored"
    assert score(root, m=21) == "scored"
    assert count(root, "neighbours") == 90 * 12
    assert [(s.table, s.depth, s.status) for s in croma_sql.info(root).scores] == [
        ("typed_neighbours", 21, "up to date"),
        ("neighbours", 12, "up to date"),
    ]
    assert croma_sql.check(root) == []


def test_what_was_kept_is_kept_when_vectors_change(root, tiles):
    """A stale file beside a fresh one would answer for vectors that are gone."""
    built(root, tiles)
    score(root, k=11, first_ranks=True)
    moved = tiles.with_columns(pl.col("embedding").arr.to_list().list.reverse())
    croma_sql.import_embeddings(root, moved, encoder="e", dataset="d")
    assert {s.status for s in croma_sql.info(root).scores} == {"stale"}
    assert score(root) == "scored"
    assert {s.status for s in croma_sql.info(root).scores} == {"up to date"}
    assert count(root, "neighbours") == 90 * 11
    assert count(root, "first_ranks WHERE first_so_rank IS NULL") == 0


def test_first_ranks_count_all_eligible_candidates(root):
    cohort = random_cohort(3, n=200)
    built(root, cohort.frame())
    score(root, k=199)
    con = croma_sql.connect(root)
    assert con.sql("SELECT count(first_so_rank) FROM first_ranks").fetchall() == [(0,)]
    assert score(root, first_ranks=True) == "scored"
    wrong = croma_sql.connect(root).sql("""
        SELECT count(*) FROM first_ranks JOIN (
            SELECT
                sample_id,
                min(rank) FILTER (type = 'SO') AS so,
                min(rank) FILTER (type = 'OS') AS os
            FROM neighbours GROUP BY sample_id
        ) AS counted USING (sample_id)
        WHERE (first_so_rank, first_os_rank) IS DISTINCT FROM (so, os)
    """)
    assert wrong.fetchall() == [(0,)]


def test_paired_scopes_are_searched_each_by_itself(root, tiles):
    built(root, tiles, SUBSETS)
    score(root, k=7)
    edges = croma_sql.connect(root).sql("FROM neighbours").pl()
    assert edges.group_by("subset").len().sort("subset").rows() == [("x", 630), ("y", 630)]
    alone = croma_sql.neighbours(
        tiles["embedding"], tiles["label"], tiles["confounder"], tiles["group_id"],
        k=7, sample_id=tiles["sample_id"],
    ).sort("sample_id", "rank")  # fmt: skip
    for _, subset in edges.group_by("subset"):
        found = subset.sort("sample_id", "rank").select(alone.columns)
        assert found.equals(alone.with_columns(pl.col("rank").cast(found["rank"].dtype)))


# Within which memory


@pytest.mark.parametrize("select", [SELECT, SUBSETS])
@pytest.mark.parametrize("name", ["two by two", "duplicates", "float16", "float32", "huge", "wide"])
def test_any_cut_makes_the_same_files(root, name, select, monkeypatch):
    """In memory or set aside on disk, all at once or part by part, in small blocks or large."""
    monkeypatch.setattr("croma_sql.warehouse.scoring.parts.ROWS_PER_PART", 50)
    monkeypatch.setattr("croma_sql.warehouse.scoring.edge_tables.GROUP_ROWS", 64)
    tiles = AWKWARD[name](4).frame()
    expected = None
    for n, way in enumerate(
        [Cut(True, 1000, 1 << 30), Cut(True, 64, 1 << 20), Cut(False, 1000, 1), Cut(False, 64, 1)]
    ):
        monkeypatch.setattr("croma_sql.warehouse.scoring.parts.cut", lambda *_, way=way: way)
        copy = built(root.with_name(f"copy{n}"), tiles, select)
        before = set(copy.rglob("*"))
        score(copy, k=15, first_ranks=True)
        left_behind = {path for path in set(copy.rglob("*")) - before if path.is_file()}
        assert {path.suffix for path in left_behind} == {".parquet"}
        expected = expected or scores(copy)
        assert scores(copy) == expected
    path = next((copy / "scores/neighbours").rglob("*.parquet"))
    assert pq.read_metadata(path).row_group(0).num_rows == 64


SIZES = [Size(n, n, d, itemsize) for n in (2_000, 200_000, 2_000_000) for d in (384, 4608)
         for itemsize in (2, 4)]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("limit", ["1.5GB", "4GB", "64GB"])
@pytest.mark.parametrize("wanted", [Wanted(5), Wanted(20, k=101)])
def test_what_is_planned_fits(size, limit, wanted):
    memory = checked_memory(limit)
    way = cut(memory, size, wanted, threads=2)
    taken = way.room + way.anchors * bytes_per_anchor(wanted) + size.stored * way.in_memory
    assert taken < memory
    assert way.anchors >= min(size.rows, GROUP_ROWS)
    assert way.in_memory or size.stored + size.rows * bytes_per_anchor(wanted) > memory / 2


def test_by_default_a_camelyon_size_is_searched_in_one_go():
    """With its residuals kept, which is fastest."""
    for itemsize in (2, 4):
        way = cut(None, Size(20_400, 20_400, 1536, itemsize), Wanted(20), threads=2)
        assert way.anchors == 20_400
        assert itemsize == 4 or way.room > 4 * 20_400 * 1536


@pytest.mark.parametrize("size", SIZES)
def test_by_default_the_float32_matrix_and_600_mb_are_enough(size):
    way = cut(None, size, Wanted(20), threads=2)
    assert way.in_memory
    parts = way.anchors * bytes_per_anchor(Wanted(20))
    allowed = 4 * size.vectors * size.d + 600e6
    assert size.stored + parts < allowed or way.anchors == GROUP_ROWS


def test_too_little_memory_is_told_with_what_is_needed(root, tiles):
    built(root, tiles)
    with pytest.raises(croma_sql.ScoringError, match=r"memory is 1 MB; 90 rows of 16 dimensions"):
        croma_sql.score(root, memory="1MB", **NULL)
    with pytest.raises(croma_sql.ScoringError, match="memory is 'lots'; it is a number of bytes"):
        croma_sql.score(root, memory="lots", **NULL)
    needed = "need at least ([0-9]+) MB"
    with pytest.raises(croma_sql.ScoringError, match=needed) as told:
        croma_sql.score(root, memory=1, threads=2, **NULL)
    enough = int(str(told.value).rpartition("at least ")[2].removesuffix(" MB"))
    assert score(root, memory=enough * 10**6, threads=2) == "scored"


def test_lists_that_had_to_be_searched_again_are_told(root, tiles, monkeypatch):
    """Distances that float32 cannot tell apart; each list counts once, however the work is cut."""
    near = tiles.with_columns(embedding=pl.lit(1.0) + 1e-15 * pl.col("embedding"))
    monkeypatch.setattr("croma_sql.warehouse.scoring.parts.ROWS_PER_PART", 20)
    monkeypatch.setattr("croma_sql.udfs.neighbours.search.SMALL", 0)
    built(root, near)
    (done,) = croma_sql.score(root, m=5, **NULL)
    assert 0 < done.searched_again <= 2 * 90
    (again,) = croma_sql.score(root, m=5, **NULL)
    assert again.searched_again == 0


@pytest.mark.parametrize("memory", ["5I", "5IB", "5\u0131", "5K\u212a", "9" * 400, "-1", "1e9"])
def test_what_is_no_size_is_told(root, tiles, memory):
    with pytest.raises(croma_sql.ScoringError, match="is a number of bytes, or a size such as 4GB"):
        croma_sql.score(built(root, tiles), memory=memory, **NULL)


@pytest.mark.parametrize("depth", [{"m": 2**31}, {"k": 2**63}, {"k": True}, {"k": 0}])
def test_depths_that_cannot_be_are_told(root, tiles, depth):
    with pytest.raises(croma_sql.CohortError, match=r"cannot be kept|a whole number of at least 1"):
        croma_sql.score(built(root, tiles), **depth, **NULL)


def test_a_run_that_ends_between_two_files_is_finished_by_the_next(root, tiles, monkeypatch):
    built(root, tiles)
    score(root)
    replace = pathlib.Path.replace

    def fail_for_typed(self, target):
        if target.name == "typed_neighbours.parquet":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    with monkeypatch.context() as context:
        context.setattr(pathlib.Path, "replace", fail_for_typed)
        with pytest.raises(croma_sql.ScoringError, match="No space left"):
            score(root, k=10, first_ranks=True)
    assert score(root, k=10, first_ranks=True) == "scored"
    assert count(root, "first_ranks WHERE first_so_rank IS NULL") == 0


def test_damaged_neighbours_are_named_before_anything_is_searched(root, tiles):
    built(root, tiles)
    score(root, k=10)
    path = next((root / "scores/neighbours").rglob("*.parquet"))
    path.write_bytes(b"")
    with pytest.raises(croma_sql.ScoringError, match=r"neighbours.parquet.*Score with --k to make"):
        score(root)
    assert score(root, k=10) == "scored"
    assert score(root) == "up to date"


def test_sizes_are_read_as_people_write_them():
    sizes = ["4GB", "4 gb", "0.5GiB", "100", 100, "3MB", "2m", "1TiB"]
    npt.assert_array_equal(
        [checked_memory(size) for size in sizes],
        np.array([4e9, 4e9, 2**29, 100, 100, 3e6, 2e6, 2**40]),
    )


def test_a_full_disk_is_told(root, tiles, monkeypatch):
    """Vectors that are set aside need room in the warehouse's folder."""
    monkeypatch.setattr("croma_sql.warehouse.scoring.parts.cut", lambda *_: Cut(False, 90, 1))

    def full(*_):
        raise OSError(28, "No space left on device")

    built(root, tiles)
    monkeypatch.setattr("croma_sql.warehouse.scoring.spill.os.pwrite", full)
    with pytest.raises(
        croma_sql.ScoringError, match=r"No space left on device.* need 1 MB of disk"
    ):
        croma_sql.score(root, **NULL)
    assert scores(root) == {}


def test_progress_tells_share_rate_and_time_left(root, tiles):
    seen = []
    built(root, tiles, SUBSETS)
    croma_sql.score(root, on_progress=lambda *told: seen.append(told), **NULL)
    benchmark, encoder, progress = seen[-1]
    assert (benchmark, encoder, progress.share, progress.seconds_left) == ("b", "e", 1.0, 0.0)
    assert progress.rate > 0
