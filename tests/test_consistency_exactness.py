"""Exact distances decide who is near: neither blocks nor threads nor the order of rows matter."""

import naive_consistency as naive
import numpy as np
import pytest
from acquired import scanned

from croma_sql.udfs.acquisitions.across import Across
from croma_sql.udfs.acquisitions.compare import compare
from croma_sql.udfs.acquisitions.directions import directions
from croma_sql.udfs.acquisitions.neighbourhoods import last_places
from croma_sql.udfs.acquisitions.pooling import Pool
from croma_sql.udfs.acquisitions.retrieval import look, own_distances
from croma_sql.udfs.acquisitions.spread import centre, distances_to_others
from croma_sql.udfs.acquisitions.within import Within


def as_parts(units):
    """Directions, and the same around a common centre and around that of each acquisition."""
    units = np.asarray(units, float)
    u, half = np.empty(units.shape), np.empty(units.shape[:2])
    for s in range(len(u)):
        directions(units[s], u[s])
    r = u.copy()
    centre(r.reshape(-1, u.shape[2]), half.reshape(-1))
    own, own_half = u.copy(), half.copy()
    for s in range(len(u)):
        centre(own[s], own_half[s])
    return u, r, half, own, own_half


@pytest.mark.parametrize("kind", ["distinct", "equal", "offset"])
def test_blocks_do_not_matter(kind):
    units = scanned(3, units=70, d=6)
    if kind == "equal":
        units = units[:, np.random.default_rng(0).integers(4, size=70)]
        units[1] = units[0]
    if kind == "offset":
        units = 1e-15 * units + 1.0 + np.arange(3)[:, None, None] * np.arange(6)
    u, r, half, own, own_half = as_parts(units)
    intra = np.stack([distances_to_others(*one) for one in zip(own, own_half, strict=True)])
    expected = compare(units, 20, 0, 0, 1)
    for block in ((1, 1), (7, 13), (70, 70)):
        across = Across(u, r, half, block)
        within = Within(u, own, own_half, intra, 20, False, rows=block[0])
        for parts in (across, within):
            for task, _ in parts.tasks():
                task()
        assert across.rank.tolist() == expected.rank.tolist()
        assert across.nearest.tolist() == expected.nearest.tolist()
        assert [part.tolist() for part in within.shared_at()] == [
            part.tolist() for part in expected.shared_at
        ]
        profile_r, mantel_r, _ = within.correlations()
        assert profile_r == pytest.approx(expected.profile_r, abs=1e-9, nan_ok=True)
        assert mantel_r == pytest.approx(expected.mantel_r, abs=1e-9, nan_ok=True)


BOUND = 1e-4


def near_ties():
    """Directions of 600 units under two acquisitions, of which many are equal, or nearly so."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((2, 300, 8))[:, rng.integers(300, size=600)]
    return z / np.linalg.norm(z, axis=2, keepdims=True)


def measured(x, y):
    """Distances, and what a matrix product may make of them that is off by up to `BOUND`."""
    distances = ((x[:, None] - y[None]) ** 2).sum(axis=2) / 2
    return distances, distances + np.random.default_rng(1).uniform(-BOUND, BOUND, distances.shape)


def test_exact_distances_decide_ranks():
    one, other = near_ties()
    distances, off = measured(one, other)
    own, half = np.empty(600), np.full(600, 0.5)
    own_distances(one, other, own)
    rows, cols = ((own.copy(), np.arange(600), np.zeros(600, np.int64)) for _ in range(2))
    for first in range(0, 600, 40):
        some = slice(first, first + 40)
        block = np.ascontiguousarray(1.0 - off[:, some])
        part = (of_cols[some] for of_cols in cols)
        look(block, 0, first, half, half, one, other, own, BOUND, *rows, *part)
    for (_, nearest, ahead), lines in ((rows, distances), (cols, distances.T)):
        orders = [naive.ordered(line) for line in lines]
        assert (ahead + 1).tolist() == [order.index(p) + 1 for p, order in enumerate(orders)]
        assert nearest.tolist() == [order[0] for order in orders]


@pytest.mark.parametrize("depth", [20, 599])
def test_exact_distances_decide_neighbourhoods(depth):
    one = near_ties()[0]
    distances, off = measured(one[:50], one)
    last = np.zeros((50, 600), np.int32)
    last_places(off, 0, one, BOUND, depth, last)
    for p, line in enumerate(distances):
        order = [q for q in naive.ordered(line) if q != p]
        places = np.full(600, depth + 1)
        places[order[:depth]] = np.arange(1, depth + 1)
        assert last[p].tolist() == places.tolist()


@pytest.mark.parametrize("shape", [(3, 12, 40), (3, 40, 12)])
def test_effective_ranks_from_blocks_are_those_of_singular_values(shape, monkeypatch):
    monkeypatch.setattr("croma_sql.udfs.acquisitions.spread.BLOCK", 49 * 40)
    units = np.random.default_rng(0).standard_normal(shape)
    shares = []
    found = compare(units, 1, 0, 0, 1, on_progress=lambda told: shares.append(told.share))
    expected = [naive.effective_rank(one) for one in (*units, units.reshape(-1, shape[2]))]
    assert found.effective_rank == pytest.approx(expected, rel=1e-12)
    assert shares[-1] == 1.0 > shares[-2]
    assert len(shares) > 4 * 3


def test_the_median_of_equal_vectors_is_zero_to_the_last_bit():
    """Matrix products of vectors that are equal, but not all there is, are off by rounding."""
    units = scanned(0, units=20)
    units[:, :14] = units[:, :1]
    found = compare(units, 5, 0, 0, 1)
    assert found.median_distance[:, :14].tolist() == [[0.0] * 14] * 3
    assert found.median_distance[:, 14:].min() > 0.01
    assert found.intra_distance.min() > 0.01


def test_threads_do_not_matter(monkeypatch):
    monkeypatch.setattr("croma_sql.udfs.acquisitions.compare.WORTH_SPREADING", 0)
    units = scanned(4, units=1100, d=12)
    first, *others = (compare(units, 50, 20, 0, threads) for threads in (1, 2, 3))
    for other in others:
        for name in first.__slots__:
            for one, same in zip(getattr(first, name), getattr(other, name), strict=True):
                np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_pool_gives_means_whatever_the_order(dtype):
    rng = np.random.default_rng(0)
    stored = (rng.standard_normal((500, 7)) * 10.0 ** rng.integers(-2, 3, (500, 1))).astype(dtype)
    places = rng.integers(-1, 4, 500)
    expected = np.stack(
        [stored[places == place].astype(np.longdouble).mean(axis=0) for place in range(4)]
    )
    means = []
    for order in (np.arange(500), rng.permutation(500), np.argsort(places)):
        pool = Pool(5, 7)
        for some in np.array_split(order, 3):
            pool.add(stored[some], places[some])
        assert pool.count.tolist() == [*np.bincount(places[places >= 0]), 0]
        means.append(pool.means())
    assert np.isnan(means[0][4]).all()
    assert means[0][:4] == pytest.approx(expected.astype(float), rel=4e-16)
    for other in means[1:]:
        np.testing.assert_array_equal(other, means[0])
