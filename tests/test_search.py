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
from croma_sql.udfs import kernels
from croma_sql.udfs.arrange import arrange
from croma_sql.udfs.scope import OS, SO, Edges
from croma_sql.udfs.search import typed_neighbours
from croma_sql.udfs.threads import cores


def search(cohort, m, **options) -> Edges:
    scope = build_scope(*cohort.columns(), on_bad_vectors="null")
    return typed_neighbours(scope, m, **options)


def by_id(cohort, edges):
    """Neighbour ids and distances per sample, whatever the order of rows."""
    order = np.argsort(cohort.ids)
    named = np.where(edges.neighbour >= 0, cohort.ids[edges.neighbour], "")
    return named[:, order], edges.distance[:, order]


def assert_same_bytes(one, other):
    npt.assert_array_equal(one[0], other[0])
    npt.assert_array_equal(one[1].view(np.uint64), other[1].view(np.uint64))


def assert_is_true_nearest(cohort, edges, m, *, exact):
    expected = naive.typed_neighbours(
        cohort.vectors.tolist(), *(c.tolist() for c in cohort.columns()[1:]), m
    )
    for i, neighbours in enumerate(expected):
        for kind, name in ((SO, "SO"), (OS, "OS")):
            distance = [d for d, _ in neighbours[name]]
            ids = [sample for _, sample in neighbours[name]]
            found = edges.neighbour[kind, i]
            found = found[found >= 0]
            npt.assert_allclose(edges.distance[kind, i, : len(found)], distance, atol=1e-13)
            assert np.isnan(edges.distance[kind, i, len(found) :]).all()
            # Rounding may swap what lies closer together than the reference can tell apart.
            if exact or np.diff(distance, append=2.0).min(initial=2.0) > 1e-13:
                assert cohort.ids[found].tolist() == ids


@pytest.mark.parametrize("name", AWKWARD)
def test_is_the_true_nearest_set(name):
    cohort = AWKWARD[name](1)
    assert_is_true_nearest(cohort, search(cohort, 20), 20, exact=name == "duplicates")


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
    assert_is_true_nearest(cohort, search(cohort, m), m, exact=True)


@pytest.mark.parametrize("name", AWKWARD)
def test_same_bytes_for_any_threads_blocks_and_order(name, monkeypatch):
    monkeypatch.setattr("croma_sql.udfs.search.WORTH_SPREADING", 0)
    cohort = AWKWARD[name](2)
    expected = by_id(cohort, search(cohort, 5, threads=1))
    shuffled = cohort.rows(np.random.default_rng(0).permutation(len(cohort.ids)))
    for threads, block in ((2, 64), (8, 37), (1, 1000)):
        assert_same_bytes(expected, by_id(cohort, search(cohort, 5, threads=threads, block=block)))
        found = search(shuffled, 5, threads=threads, block=block)
        assert_same_bytes(expected, by_id(shuffled, found))


@pytest.mark.parametrize("name", AWKWARD)
def test_shorter_searches_are_prefixes_of_longer_ones(name):
    cohort = AWKWARD[name](3)
    names, distances = by_id(cohort, search(cohort, 20))
    short = by_id(cohort, search(cohort, 3))
    assert_same_bytes(short, (names[:, :, :3], distances[:, :, :3].copy()))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16), exponent=st.integers(-60, 60))
def test_length_of_vectors_does_not_matter(seed, exponent):
    cohort = random_cohort(seed, n=60, d=4)
    lengths = 2.0 ** np.random.default_rng(seed).integers(-9, 9, (60, 1)) * 2.0**exponent
    scaled = Cohort(cohort.vectors * lengths, *cohort.columns()[1:])
    assert_same_bytes(by_id(cohort, search(cohort, 4)), by_id(scaled, search(scaled, 4)))


def test_equal_vectors_are_at_distance_zero():
    cohort = random_cohort(0, d=1536)
    same = Cohort(np.broadcast_to(cohort.vectors[0], (200, 1536)).copy(), *cohort.columns()[1:])
    edges = search(same, 5)
    assert (edges.distance == 0).all()


def test_rows_the_float32_pass_cannot_separate_are_searched_again():
    """Distances that differ in the last bits of float64 only: every row needs the exact search."""
    cohort = random_cohort(0, n=300, d=8)
    close = Cohort(1.0 + 1e-15 * cohort.vectors, *cohort.columns()[1:])
    edges = search(close, 5)
    assert edges.searched_again > 300
    assert_is_true_nearest(close, edges, 5, exact=False)
    assert search(cohort, 5).searched_again < 10


@pytest.mark.parametrize("name", AWKWARD)
def test_float32_distances_stay_within_the_bound(name):
    """For every pair; and not by much more than is needed, or it would prove nothing."""
    scope = build_scope(*AWKWARD[name](6).columns())
    with cores(1) as for_each:
        arranged = arrange(scope, for_each)
    product = arranged.residual @ arranged.residual.T
    measured = arranged.half[:, None] + arranged.half - product
    d, worst = scope.vectors.shape[1], 0.0
    for p in range(0, len(arranged.order), 7):
        for q in range(len(arranged.order)):
            i, j = arranged.order[p], arranged.order[q]
            exact = kernels.distance(arranged.stored, arranged.square, i, j)
            bound = kernels.slack(arranged.radius[p], arranged.radius[q], d)
            worst = max(worst, abs(float(measured[p, q]) - exact) / bound)
    assert 1e-4 < worst <= 1.0


def test_an_outlier_makes_no_row_need_the_exact_search():
    """Its long residual loosens the bound of pairs with itself only."""
    cohort = AWKWARD["outlier"](1)
    assert (
        search(cohort, 5).searched_again
        <= search(AWKWARD["near-collapsed"](1), 5).searched_again + 2
    )


def test_more_neighbours_than_rows_cost_no_more_than_all(con):
    """A large m is a way to say all; memory follows the rows, and too few are still too few."""
    cohort = random_cohort(0, n=100)
    everything = search(cohort, 10**9)
    assert everything.neighbour.shape == (2, 100, 100)
    npt.assert_array_equal(everything.neighbour[:, :, :20], search(cohort, 20).neighbour)
    margins = croma_sql.margins(**cohort.arguments(), m=10**9)
    assert margins["undefined_reason"].unique().to_list() == ["too_few_so_and_os"]
    con.register("tiles", cohort.frame())
    found = con.sql("SELECT DISTINCT undefined_reason FROM croma_margins('tiles', m := 1000000000)")
    assert found.fetchall() == [("too_few_so_and_os",)]


def test_unusable_rows_are_neither_anchors_nor_candidates():
    cohort = random_cohort(4)
    holes = cohort.vectors.copy()
    holes[::7] = np.nan
    edges = search(Cohort(holes, *cohort.columns()[1:]), 5)
    rest = np.flatnonzero(np.arange(len(holes)) % 7)
    alone = search(cohort.rows(rest), 5)
    assert (edges.neighbour[:, ::7] == -1).all()
    npt.assert_array_equal(edges.neighbour[:, rest], rest[alone.neighbour])
    npt.assert_array_equal(edges.distance[:, rest], alone.distance)


def test_progress_reaches_the_end_and_never_goes_back():
    seen = []
    search(random_cohort(0, n=500), 5, block=64, on_progress=seen.append)
    assert seen == sorted(seen)
    assert len(seen) > 5
    assert seen[-1] == 1.0
