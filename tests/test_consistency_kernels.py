"""Units compared across acquisitions: values by hand, and by the definitions, pair by pair."""

from itertools import pairwise

import naive_consistency as naive
import numpy as np
import pytest
from acquired import scanned
from hypothesis import given, settings
from hypothesis import strategies as st

from croma_sql.udfs.acquisitions.compare import compare

# Cosine distances between directions on a plane: 0.2 for neighbours in this list, 0.4 from the
# first to the third and from the second to the fourth, 1 from end to end, 0.04 in the middle.
EAST, MIDDLE, STEEP, NORTH = [1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]
BY_HAND = np.array([[EAST, STEEP, NORTH], [MIDDLE, EAST, NORTH]])


def found(units, depth=None, permutations=0, seed=0, threads=1):
    units = np.asarray(units, float)
    return compare(units, depth or units.shape[1] - 1, permutations, seed, threads)


def shared_at(compared):
    offsets, values = compared.shared_at
    return [values[a:b].tolist() for a, b in pairwise(offsets)]


class TestByHand:
    compared = found(BY_HAND)

    def test_distance_of_a_unit_to_itself(self):
        assert self.compared.distance[0, 1] == pytest.approx([0.2, 0.4, 0.0], abs=1e-15)
        assert self.compared.distance[1, 0].tolist() == self.compared.distance[0, 1].tolist()

    def test_ranks_and_nearest(self):
        """Under the second, the first unit sees 0.2, 0, 1; the second 0.04, 0.4, 0.2; ..."""
        assert self.compared.rank[0, 1].tolist() == [2, 3, 1]
        assert self.compared.nearest[0, 1].tolist() == [1, 0, 2]
        assert self.compared.rank[1, 0].tolist() == [2, 2, 1]
        assert self.compared.nearest[1, 0].tolist() == [1, 0, 2]

    def test_mantel_r(self):
        """(0.4, 1, 0.2) and (0.2, 0.4, 1): -39/225 over 78/225."""
        assert self.compared.mantel_r == pytest.approx(np.array([[1, -0.5], [-0.5, 1]]), abs=1e-14)

    def test_profile_r_of_three_units_is_a_sign(self):
        assert self.compared.profile_r[0, 1] == pytest.approx([1, -1, -1], abs=1e-14)

    def test_intra_distance(self):
        assert self.compared.intra_distance == pytest.approx(
            np.array([[0.7, 0.3, 0.6], [0.3, 0.6, 0.7]]), abs=1e-15
        )

    def test_median_distance_of_two_others_is_between_them(self):
        assert self.compared.median_distance == pytest.approx(
            self.compared.intra_distance, abs=1e-15
        )

    def test_shared_neighbours(self):
        """The first has the second next to it both times; the others turn their two around."""
        assert shared_at(self.compared) == [[1, 2], [2, 2], [2, 2]]

    def test_mean_distance(self):
        assert self.compared.mean_distance == pytest.approx([8 / 15, 8 / 15, 6.44 / 15], abs=1e-15)


def test_match_rates_differ_by_direction():
    compared = found([[EAST, NORTH], [MIDDLE, EAST]])
    assert compared.rank[0, 1].tolist() == [2, 2]
    assert compared.rank[1, 0].tolist() == [1, 2]


def test_effective_rank():
    """Singular values 2 and the root of 2 are shares 0.586 and 0.414 of their sum."""
    cross = [[1, 0], [-1, 0], [1, 0], [-1, 0], [0, 1], [0, -1]]
    line = [[3, 0], [-1, 0], [2, 0], [-1, 0], [1, 0], [-5, 0]]
    shares = np.array([2, np.sqrt(2)]) / (2 + np.sqrt(2))
    expected = np.prod(shares**-shares)
    assert found([cross, line]).effective_rank[:2] == pytest.approx([expected, 1.0], abs=1e-12)


def test_two_units_have_no_correlation():
    compared = found([[EAST, NORTH], [MIDDLE, EAST]], permutations=9)
    assert np.isnan(compared.profile_r).all()
    assert np.isnan(compared.mantel_r).all()
    assert np.isnan(compared.mantel_p[0, 1])
    assert shared_at(compared) == [[1], [1]]


def test_units_equally_far_apart_have_no_correlation():
    """Distances of unit vectors of a simplex differ by rounding only."""
    simplex = np.eye(5) + 0.1
    compared = found([simplex, simplex[::-1] * 3], permutations=9)
    assert np.isnan(compared.mantel_r).all()
    assert np.isnan(compared.profile_r).all()


def test_equal_vectors_go_by_number():
    compared = found(np.ones((3, 6, 5)), permutations=9)
    assert compared.rank[0, 1].tolist() == [1, 2, 3, 4, 5, 6]
    assert compared.nearest[0, 1].tolist() == [0] * 6
    assert shared_at(compared) == [[1, 2, 3, 4, 5]] * 6
    for name in ("distance", "intra_distance", "median_distance", "mean_distance"):
        assert not getattr(compared, name).any()
    for undefined in (compared.mantel_r, compared.profile_r, compared.effective_rank):
        assert np.isnan(undefined).all()


def test_lengths_do_not_matter():
    """Directions of vectors that are long, short, or near the ends of float64."""
    units = scanned(0)
    lengths = np.array([1.0, 3.7, 1e-3, 1e200, 1e-300])[np.arange(40) % 5]
    for name in ("rank", "nearest"):
        expected = getattr(found(units), name)
        assert getattr(found(units * lengths[:, None]), name).tolist() == expected.tolist()
    same = np.array([[1.0, 2.0], [3.0, 6.0], [1.0, 0.0]])
    assert found([same, same * 7]).distance[0, 1].tolist() == [0, 0, 0]
    assert found([same, same[[1, 0, 2]]]).distance[0, 1].tolist() == [0, 0, 0]


def agrees(units, depth, tolerance):
    compared = found(units, depth)
    count, n, _ = units.shape
    for a in range(count):
        intra = [naive.intra_distance(units, a, p) for p in range(n)]
        assert compared.intra_distance[a] == pytest.approx(intra, rel=tolerance, abs=1e-28)
        assert compared.mean_distance[a] == pytest.approx(np.mean(intra), rel=tolerance, abs=1e-28)
        median = [naive.median_distance(units, a, p) for p in range(n)]
        assert compared.median_distance[a] == pytest.approx(median, rel=tolerance, abs=1e-28)
        for b in set(range(count)) - {a}:
            ranks, nearest = naive.retrieval(units, a, b)
            assert compared.rank[a, b].tolist() == ranks
            assert compared.nearest[a, b].tolist() == nearest
            own = np.diag(naive.distances(units[a], units[b])).astype(float)
            assert compared.distance[a, b] == pytest.approx(own, rel=tolerance, abs=1e-28)
            pairs = [(compared.mantel_r[a, b], naive.mantel(units, a, b))]
            pairs += [
                (compared.profile_r[a, b, p], naive.profile(units, a, b, p)) for p in range(n)
            ]
            for r, expected in pairs:
                assert r == pytest.approx(expected, abs=tolerance, nan_ok=True)
    for p, places in enumerate(shared_at(compared)):
        for k in range(1, depth + 1):
            assert np.count_nonzero(np.array(places) <= k) / k == naive.iok(units, p, k)
    return compared


SHAPES = {"units": st.integers(2, 8), "scanners": st.integers(2, 4), "d": st.integers(2, 6)}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.fixed_dictionaries(SHAPES), st.data())
def test_agrees_with_the_definitions(seed, shape, data):
    units = scanned(seed, **shape)
    if data.draw(st.booleans()):  # from few vectors, so that many are equal
        few = units.reshape(-1, shape["d"])[:3]
        units = few[np.random.default_rng(seed).integers(len(few), size=units.shape[:2])]
    compared = agrees(units, data.draw(st.integers(1, shape["units"] - 1)), 1e-9)
    if not np.isnan(compared.effective_rank).any():
        for s, one in enumerate(units):
            assert compared.effective_rank[s] == pytest.approx(naive.effective_rank(one), rel=1e-6)


@pytest.mark.parametrize("spread", [1e-3, 1e-6])
def test_a_collapsed_encoder_is_measured_as_well(spread):
    """Distances are about 1e-12 in the second: 1 - cos, or products of vectors, would be noise."""
    rng = np.random.default_rng(0)
    units = 1.0 + spread * (scanned(1, units=9, d=12) + rng.standard_normal((3, 1, 12)))
    compared = agrees(units, 8, 1e-8)
    assert compared.mean_distance[-1] < 3 * spread**2
    assert compared.effective_rank[0] > 4


def test_an_offset_between_scanners_hides_nothing():
    """Units within 1e-6 of each other under scanners far apart."""
    offset = 5 * np.random.default_rng(2).standard_normal((3, 1, 12))
    units = offset + 1e-6 * scanned(1, units=9, d=12)
    compared = found(units)
    assert compared.distance[0, 1].min() > 0.1
    for a, b in ((0, 1), (1, 2)):
        assert compared.mantel_r[a, b] == pytest.approx(naive.mantel(units, a, b), abs=1e-8)
        assert compared.rank[a, b].tolist() == naive.retrieval(units, a, b)[0]


def test_depth_cuts_what_is_shared():
    units = scanned(5)
    whole, cut = shared_at(found(units)), shared_at(found(units, depth=7))
    assert cut == [[place for place in places if place <= 7] for places in whole]
    assert [len(places) for places in whole] == [39] * 40
    assert shared_at(compare(units, 0, 0, 0, 1)) == [[]] * 40


def test_progress_and_stopping():
    shares = []
    units = scanned(6, units=600)
    for permutations in (0, 500):
        shares.clear()
        compare(units, 5, permutations, 0, 1, on_progress=lambda told: shares.append(told.share))
        assert shares == sorted(shares)
        assert shares[-1] == 1.0 > shares[-2]
    with pytest.raises(KeyboardInterrupt):
        compare(units, 5, 0, 0, 1, is_stopped=lambda: True)
