"""Mantel's test: the correlation by an independent implementation, its p by every permutation."""

from itertools import combinations, permutations

import mantel
import naive_consistency as naive
import numpy as np
import pytest
from acquired import scanned

from croma_sql.udfs.acquisitions.compare import compare

TIMES = 4000
BY_HAND = np.array(  # distances (0.4, 1, 0.2) and (0.2, 0.4, 1): r is -39/78
    [[[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], [[0.8, 0.6], [1.0, 0.0], [0.0, 1.0]]]
)


def outcome(units, times=TIMES, seed=0):
    compared = compare(np.asarray(units, float), 1, times, seed, 1)
    return compared.mantel_r, compared.mantel_p


def within_chance(p, exact, times=TIMES):
    """Four standard errors of a share, and the one permutation that is not drawn."""
    return abs(p - exact) < 4 * np.sqrt(exact * (1 - exact) / times) + 2 / times


def test_p_by_hand():
    """Sums of products of the six orders are -39, 69, -66, -39, 78, -3: five are -39 or more.

    Two of them are equal, the one of the data and another, which rounding must not part.
    """
    assert within_chance(outcome(BY_HAND)[1][0, 1], 5 / 6)


def test_p_is_the_share_of_all_orders():
    units = scanned(0, units=6, scanners=2, d=5, noise=1.0)
    one, other = (naive.distances(x, x).astype(float) for x in units)
    pairs = list(combinations(range(6), 2))
    fixed = [other[pair] for pair in pairs]
    r = [
        np.corrcoef([one[order[p], order[q]] for p, q in pairs], fixed)[0, 1]
        for order in permutations(range(6))
    ]
    exact = np.mean(np.array(r) >= r[0] - 1e-12)
    assert 0.01 < exact < 0.9
    assert within_chance(outcome(units)[1][0, 1], exact)


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_the_package_mantel(seed):
    """Which goes through all 720 orders of six units, the one of the data among them."""
    units = scanned(seed, units=6, d=7, noise=0.8 + 0.2 * seed)
    r, p = outcome(units)
    for a, b in combinations(range(3), 2):
        pairwise = [np.array(naive.pairwise(units, s), float) for s in (a, b)]
        expected = mantel.test(*pairwise, perms=0, tail="upper")
        assert r[a, b] == pytest.approx(expected.r, abs=1e-12)
        assert within_chance(p[a, b], expected.p)


def test_p_is_symmetric_seeded_and_never_zero():
    units = scanned(1, units=30, noise=0.1)
    r, p = outcome(units, 99)
    np.testing.assert_array_equal(r, r.T)
    np.testing.assert_array_equal(p, p.T)
    assert (p[np.triu_indices(3, 1)] == 1 / 100).all()
    noisy = scanned(1, units=8, noise=3.0)
    np.testing.assert_array_equal(outcome(noisy, 99)[1], outcome(noisy, 99)[1])
    assert outcome(noisy, 99, seed=1)[1].tolist() != outcome(noisy, 99)[1].tolist()


def test_r_does_not_depend_on_permutations():
    units = scanned(2, units=20)
    r, p = outcome(units, 0)
    np.testing.assert_array_equal(r, outcome(units, 50)[0])
    assert np.isnan(p).all()


def test_unrelated_scanners_have_a_uniform_p():
    rng = np.random.default_rng(0)
    p = [outcome(rng.standard_normal((2, 12, 4)), 199, seed)[1][0, 1] for seed in range(200)]
    assert 0.4 < np.mean(p) < 0.6
    assert 0.02 <= np.mean(np.array(p) <= 0.1) <= 0.18
