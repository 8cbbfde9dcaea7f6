"""The search against the naive reference, and what its result must not depend on."""

import naive
import numpy as np
import numpy.testing as npt
import pytest
from cohorts import AWKWARD, Cohort, random_cohort
from hypothesis import given, settings
from hypothesis import strategies as st

import croma_sql
from croma_sql.cohort import build_scope
from croma_sql.udfs import exact
from croma_sql.udfs.neighbours.arrange import Residuals, arrange
from croma_sql.udfs.neighbours.search import search, search_all
from croma_sql.udfs.neighbours.small import search_small
from croma_sql.udfs.scope import Wanted
from croma_sql.udfs.threads import cores, one_by_one

EXACT = {"duplicates", "tied at every depth"}  # of integers, whose distances no rounding touches
EVERYTHING = Wanted(m=9, k=30, first_ranks=True)


def scope_of(cohort):
    return build_scope(*cohort.columns(), on_bad_vectors="null")


def search_cohort(cohort, wanted, **options):
    return search(scope_of(cohort), wanted, **options)


def by_id(cohort, edges):
    """Everything found per sample, in the order of ids, whatever the order of rows was."""
    order = np.argsort(cohort.ids)
    found = {}
    for kind in ("so", "os", "nearest"):
        neighbours = getattr(edges, kind)
        names = np.where(neighbours.neighbour >= 0, cohort.ids[neighbours.neighbour], "")
        found[kind] = names[order]
        found[f"{kind} distance"] = neighbours.distance[order].view(np.uint64)
    found["ranks"] = np.stack([edges.first_so_rank[order], edges.first_os_rank[order]])
    return found


def assert_same_bytes(one, other):
    for name, values in one.items():
        npt.assert_array_equal(values, other[name], err_msg=name)


def assert_is_true_nearest(cohort, edges, wanted, *, exact):
    expected = naive.neighbours(
        cohort.vectors.tolist(), *(c.tolist() for c in cohort.columns()[1:])
    )
    for i, neighbours in enumerate(expected):
        for name, found, depth, rank in (
            ("SO", edges.so, wanted.m, edges.first_so_rank),
            ("OS", edges.os, wanted.m, edges.first_os_rank),
            ("ANY", edges.nearest, wanted.k, None),
        ):
            distance = [d for d, _ in neighbours[name][:depth]]
            ids = [sample for _, sample in neighbours[name][:depth]]
            there = found.neighbour[i][found.neighbour[i] >= 0]
            npt.assert_allclose(found.distance[i, : len(there)], distance, atol=1e-13)
            assert np.isnan(found.distance[i, len(there) :]).all()
            # Rounding may swap what lies closer together than the reference can tell apart.
            every = [d for d, _ in neighbours["ANY"]]
            if exact or np.diff(every, append=9.0).min(initial=9.0) > 1e-13:
                assert cohort.ids[there].tolist() == ids
                if wanted.first_ranks and rank is not None:
                    place = 1 + neighbours["ANY"].index(neighbours[name][0]) if ids else 0
                    assert rank[i] == place


@pytest.mark.parametrize("m", [1, 5, 30])
@pytest.mark.parametrize("name", ["two by two", "duplicates", "unbalanced cells", "many labels"])
def test_margins_and_reasons_are_those_of_the_naive_reference(name, m):
    cohort = AWKWARD[name](3)
    rows = naive.neighbours(cohort.vectors.tolist(), *(c.tolist() for c in cohort.columns()[1:]))
    expected = [naive.margin(row, m) for row in rows]
    found = croma_sql.margins(**cohort.arguments(), m=m)
    assert found["undefined_reason"].to_list() == [reason for *_, reason in expected]
    for at, column in enumerate(("d_so", "d_os", "margin")):
        values = np.array([row[at] for row in expected], float)
        npt.assert_allclose(found[column].to_numpy(), values, atol=1e-12)


@pytest.fixture
def by_blocks(monkeypatch):
    """Search by blocks and on several threads, as large scopes are, also what is small."""
    monkeypatch.setattr("croma_sql.udfs.neighbours.search.SMALL", 0)
    monkeypatch.setattr("croma_sql.udfs.neighbours.search.WORTH_SPREADING", 0)


@pytest.mark.parametrize("name", AWKWARD)
def test_is_the_true_nearest_set(name, by_blocks):
    cohort = AWKWARD[name](1)
    edges = search_cohort(cohort, EVERYTHING, block=64)
    assert_is_true_nearest(cohort, edges, EVERYTHING, exact=name in EXACT)


@pytest.mark.parametrize("name", ["two by two", "duplicates", "last bit", "unbalanced cells"])
def test_long_lists_that_begin_with_a_whole_line_of_products(name, by_blocks):
    """They hold more than `selection.LONG` keys; a block may fill one or leave it open."""
    cohort, wanted = AWKWARD[name](1), Wanted(70, k=101)
    for block in (50, 1000):
        edges = search_cohort(cohort, wanted, block=block)
        assert_is_true_nearest(cohort, edges, wanted, exact=name in EXACT)


@pytest.mark.parametrize("name", AWKWARD)
def test_small_scopes_are_searched_otherwise_with_the_same_result(name, by_blocks):
    scope = scope_of(AWKWARD[name](1))
    assert_same_bytes(
        by_id(AWKWARD[name](1), search(scope, EVERYTHING)),
        by_id(AWKWARD[name](1), search_small([scope], EVERYTHING, one_by_one)[0]),
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    n=st.integers(2, 40),
    d=st.integers(1, 5),
    m=st.integers(1, 9),
    levels=st.integers(1, 3),
)
def test_ties_go_by_sample_id_for_any_cohort(seed, n, d, m, levels):
    rng = np.random.default_rng(seed)
    cohort = Cohort(
        rng.integers(0, levels + 1, (n, d)) + 1.0,
        *(rng.integers(0, 3, (3, n)).astype(str)),
        rng.permutation(n).astype(str),
    )
    cohort.label[0], cohort.label[1] = "0", "1"
    cohort.confounder[0], cohort.confounder[1] = "0", "1"
    wanted = Wanted(m, k=2 * m, first_ranks=True)
    block = int(rng.integers(1, 50))
    assert_is_true_nearest(cohort, search_cohort(cohort, wanted), wanted, exact=True)
    edges = search_cohort(cohort, wanted, block=block)
    assert_is_true_nearest(cohort, edges, wanted, exact=True)


@pytest.mark.parametrize("name", AWKWARD)
def test_same_bytes_for_any_threads_blocks_memory_and_order(name, by_blocks):
    cohort = AWKWARD[name](2)
    expected = by_id(cohort, search_cohort(cohort, EVERYTHING, threads=1))
    shuffled = cohort.rows(np.random.default_rng(0).permutation(len(cohort.ids)))
    for threads, block, room in ((2, 64, None), (8, 37, 1), (1, 1000, 1)):
        options = {"threads": threads, "block": block, "room": room}
        found = search_cohort(cohort, EVERYTHING, **options)
        assert_same_bytes(expected, by_id(cohort, found))
        found = search_cohort(shuffled, EVERYTHING, **options)
        assert_same_bytes(expected, by_id(shuffled, found))


@pytest.mark.parametrize("name", AWKWARD)
def test_part_by_part_as_in_one_go(name):
    cohort = AWKWARD[name](2)
    whole = search_cohort(cohort, EVERYTHING, block=64)
    n = len(cohort.ids)
    for start in range(0, n, 70):
        anchors = range(start, min(start + 70, n))
        part = search_cohort(cohort, EVERYTHING, anchors=anchors, block=64)
        for kind in ("so", "os", "nearest"):
            expected, found = getattr(whole, kind), getattr(part, kind)
            npt.assert_array_equal(expected.neighbour[start : anchors.stop], found.neighbour)
            npt.assert_array_equal(expected.distance[start : anchors.stop], found.distance)
        npt.assert_array_equal(whole.first_so_rank[start : anchors.stop], part.first_so_rank)
        npt.assert_array_equal(whole.first_os_rank[start : anchors.stop], part.first_os_rank)


def test_many_scopes_as_one_after_the_other():
    """Small, middling and large ones, side by side."""
    cohorts = [random_cohort(seed, n=n, d=16) for seed, n in enumerate([8, 40, 3000, 2500, 700, 9])]
    scopes = [scope_of(cohort) for cohort in cohorts]
    for threads in (1, 2, 5):
        for cohort, scope, edges in zip(
            cohorts, scopes, search_all(scopes, EVERYTHING, threads=threads), strict=True
        ):
            assert_same_bytes(by_id(cohort, search(scope, EVERYTHING)), by_id(cohort, edges))


@pytest.mark.parametrize("name", AWKWARD)
def test_shorter_searches_are_prefixes_of_longer_ones(name):
    cohort = AWKWARD[name](3)
    long = search_cohort(cohort, Wanted(20, k=101))
    short = search_cohort(cohort, Wanted(3, k=8))
    for kind, depth in (("so", 3), ("os", 3), ("nearest", 8)):
        one, other = getattr(long, kind), getattr(short, kind)
        npt.assert_array_equal(one.neighbour[:, :depth], other.neighbour)
        npt.assert_array_equal(one.distance[:, :depth], other.distance)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16), exponent=st.integers(-60, 60))
def test_length_of_vectors_does_not_matter(seed, exponent):
    cohort = random_cohort(seed, n=60, d=4)
    lengths = 2.0 ** np.random.default_rng(seed).integers(-9, 9, (60, 1)) * 2.0**exponent
    scaled = Cohort(cohort.vectors * lengths, *cohort.columns()[1:])
    assert_same_bytes(
        by_id(cohort, search_cohort(cohort, EVERYTHING, block=16)),
        by_id(scaled, search_cohort(scaled, EVERYTHING, block=16)),
    )


def test_equal_vectors_are_at_distance_zero():
    cohort = random_cohort(0, d=1536)
    same = Cohort(np.broadcast_to(cohort.vectors[0], (200, 1536)).copy(), *cohort.columns()[1:])
    edges = search_cohort(same, Wanted(5, k=20), block=64)
    for found in (edges.so, edges.os, edges.nearest):
        assert (found.distance == 0).all()


def test_rows_the_float32_pass_cannot_separate_are_searched_again():
    """Distances that differ in the last bits of float64 only: every row needs the exact search."""
    cohort = random_cohort(0, n=300, d=8)
    close = Cohort(1.0 + 1e-15 * cohort.vectors, *cohort.columns()[1:])
    wanted = Wanted(5, k=5)
    edges = search_cohort(close, wanted, block=64)
    assert edges.searched_again > 300
    assert_is_true_nearest(close, edges, wanted, exact=False)
    assert search_cohort(cohort, wanted, block=64).searched_again < 10


@pytest.mark.parametrize("name", AWKWARD)
def test_float32_distances_stay_within_the_bound(name):
    """For every pair; and not by much more than is needed, or it would prove nothing."""
    scope = scope_of(AWKWARD[name](6))
    every = np.arange(len(scope.row))
    with cores(1) as for_each:
        arranged = arrange(scope, for_each)
        product = Residuals(arranged, for_each, keep=True).product(every, every)
    measured = arranged.half[:, None] + arranged.half - product
    d, worst = scope.vectors.d, 0.0
    stored, place = arranged.near(every)
    for p in every[::7]:
        for q in every:
            distance = exact.distance(stored, place, arranged.square, p, q)
            bound = exact.slack(arranged.radius[p], arranged.radius[q], d)
            worst = max(worst, abs(float(measured[p, q]) - distance) / bound)
    assert 1e-4 < worst <= 1.0


def test_float16_is_read_by_its_bits():
    bits = np.arange(1 << 16, dtype=np.uint16)
    expected = bits.view(np.float16).astype(np.float64)
    square = np.empty(len(bits))
    exact.squared_norms(bits[:, None], square, 0, len(bits))
    finite = np.isfinite(expected)
    npt.assert_array_equal(square[finite], expected[finite] ** 2)
    assert not np.isfinite(square[~finite]).any()
    product = np.empty((len(bits), 1))
    one = np.array([0x3C00], np.uint16)
    for i in np.flatnonzero(finite):
        product[i] = exact.dot(bits[i : i + 1], one)
    npt.assert_array_equal(product[finite, 0], expected[finite])


def test_an_outlier_makes_no_row_need_the_exact_search():
    """Its long residual loosens the bound of pairs with itself only."""
    cohort = AWKWARD["outlier"](1)
    without = search_cohort(AWKWARD["near-collapsed"](1), Wanted(5), block=64)
    assert search_cohort(cohort, Wanted(5), block=64).searched_again <= without.searched_again + 2


def test_more_neighbours_than_rows_cost_no_more_than_all(con):
    """A large m is a way to say all; memory follows the rows, and too few are still too few."""
    cohort = random_cohort(0, n=100)
    for block in (None, 32):
        everything = search_cohort(cohort, Wanted(10**9, k=10**9), block=block)
        assert everything.so.neighbour.shape == everything.nearest.neighbour.shape == (100, 100)
        few = search_cohort(cohort, Wanted(20))
        npt.assert_array_equal(everything.os.neighbour[:, :20], few.os.neighbour)
    margins = croma_sql.margins(**cohort.arguments(), m=10**9)
    assert margins["undefined_reason"].unique().to_list() == ["too_few_so_and_os"]
    con.register("tiles", cohort.frame())
    found = con.sql("SELECT DISTINCT undefined_reason FROM croma_margins('tiles', m := 1000000000)")
    assert found.fetchall() == [("too_few_so_and_os",)]


@pytest.mark.parametrize("block", [None, 32])
def test_unusable_rows_are_neither_anchors_nor_candidates(block):
    cohort = random_cohort(4)
    holes = cohort.vectors.copy()
    holes[::7] = np.nan
    edges = search_cohort(Cohort(holes, *cohort.columns()[1:]), EVERYTHING, block=block)
    rest = np.flatnonzero(np.arange(len(holes)) % 7)
    alone = search_cohort(cohort.rows(rest), EVERYTHING, block=block)
    for kind in ("so", "os", "nearest"):
        found, expected = getattr(edges, kind), getattr(alone, kind)
        assert (found.neighbour[::7] == -1).all()
        npt.assert_array_equal(found.neighbour[rest], rest[expected.neighbour])
        npt.assert_array_equal(found.distance[rest], expected.distance)
    npt.assert_array_equal(edges.first_so_rank[rest], alone.first_so_rank)
    assert (edges.first_so_rank[::7] == 0).all()


@pytest.mark.parametrize("wanted", [Wanted(5), Wanted(5, k=20), Wanted(5, first_ranks=True)])
@pytest.mark.parametrize("anchors", [None, range(100, 300)])
def test_progress_reaches_the_end_and_never_goes_back(wanted, anchors):
    """Where no row has to be searched again, as here, all work is known beforehand."""
    seen = []
    cohort = random_cohort(0, n=500)
    search_cohort(cohort, wanted, anchors=anchors, block=64, on_progress=seen.append)
    shares = [progress.share for progress in seen]
    assert len(shares) > 5
    assert all(progress.rate > 0 and progress.seconds_left >= 0 for progress in seen)
    assert shares[-1] == 1.0
    if not wanted.first_ranks:  # which may find that it has to count in some blocks again
        assert shares == sorted(shares)
        assert shares[-2] < 1.0


def test_progress_counts_rows_that_are_searched_again():
    """They are found late, and the share falls back rather than pretend to be at the end."""
    seen = []
    cohort = random_cohort(0, n=600, d=8)
    close = Cohort(1.0 + 1e-15 * cohort.vectors, *cohort.columns()[1:])
    search_cohort(close, Wanted(5), block=64, on_progress=seen.append)
    shares = [progress.share for progress in seen]
    assert shares != sorted(shares)
    assert shares[-1] == 1.0


def test_progress_of_many_scopes_is_one():
    seen = []
    scopes = [scope_of(random_cohort(seed, n=200)) for seed in range(20)]
    search_all(scopes, Wanted(5), on_progress=seen.append)
    assert seen[-1].share == 1.0
