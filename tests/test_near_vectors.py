"""Distances of nearly coincident vectors, against arithmetic of 60 digits, in every metric."""

from dataclasses import replace

import mpmath
import numpy as np
import polars as pl
import pytest
from cohorts import Cohort, random_cohort

import croma_sql
from croma_sql.udfs import exact
from croma_sql.udfs.acquisitions.compare import compare
from croma_sql.vectors import in_memory

M = 2


def true_distance(x, y):
    with mpmath.workdps(60):
        x, y = ([mpmath.mpf(float(value)) for value in z] for z in (x, y))
        return 1 - mpmath.fdot(x, y) / mpmath.sqrt(mpmath.fdot(x, x) * mpmath.fdot(y, y))


def measured(x, y):
    """Distance, the same to the last bit whichever vector comes first."""
    vectors = in_memory(np.stack([x, y]))
    of = vectors.stored, np.arange(2), vectors.square
    found = exact.distance(*of, 0, 1)
    assert exact.distance(*of, 1, 0) == found
    return found


def nearby(x, euclidean, rng):
    """A vector about ``euclidean`` from x, in units of its length, and three times as long."""
    away = rng.standard_normal(len(x))
    away *= euclidean * np.linalg.norm(x.astype(float)) / np.linalg.norm(away)
    return (3 * (x + away)).astype(x.dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 48, 1536])
def test_distances_keep_their_relative_accuracy(d, dtype):
    """Far ones to 1e-12; near ones, however near, to the last bit but one."""
    rng = np.random.default_rng(d)
    for distance in 10.0 ** np.arange(-33.0, 0.0):
        x = rng.standard_normal(d).astype(dtype)
        y = nearby(x, np.sqrt(2 * distance), rng)
        expected = true_distance(x, y)
        found = measured(x, y)
        if abs(expected) < 1e-55:
            assert found == 0.0
        else:
            accuracy = 3e-16 if expected < 0.9 * exact.NEAR else 1e-12
            assert abs(found - expected) <= accuracy * expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 48, 1536])
def test_one_bit_is_a_distance_and_another_length_is_none(d, dtype):
    rng = np.random.default_rng(d)
    x = np.round(rng.standard_normal(d) * 1000).astype(dtype) + dtype(0.5)
    for length in (2.0, 3.0, 0.75, 1000.0):
        assert measured(x, dtype(length) * x) == 0.0
    y = 2 * x
    y[d // 2] = np.nextafter(y[d // 2], dtype(np.inf))
    expected = true_distance(x, y)
    assert expected > 0
    assert abs(measured(x, y) - expected) <= 3e-16 * expected


@pytest.mark.parametrize("exponent", [-1000, -160, 160, 1000])
def test_the_size_of_vectors_is_immaterial(exponent):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(24)
    y = nearby(x, 1e-9, rng)
    assert measured(np.ldexp(x, exponent), np.ldexp(y, -exponent)) == measured(x, y)
    other = 3.0 * np.float32(x).astype(float)
    assert measured(np.ldexp(x, exponent), np.ldexp(other, -exponent)) == measured(x, other) > 0


def test_beyond_float64_what_is_not_parallel_is_not_at_distance_zero():
    assert measured(np.array([1.0, 1e-200]), np.array([1.0, 2e-200])) == exact.LEAST


def test_what_is_equally_far_is_so_to_the_last_bit():
    """Vectors that differ in their length alone are neighbours in the order of their ids."""
    rng = np.random.default_rng(0)
    for distance in (1e-4, 1e-9, 1e-14, 1e-24):
        for _ in range(40):
            x = rng.standard_normal(24).astype(np.float32).astype(float)
            y = np.float64(np.float32(x)) + np.sqrt(2 * distance) * rng.standard_normal(24)
            y = np.round(y * 2.0**45) / 2.0**45  # three times it is a float64 as well
            assert measured(x, y) == measured(x, 3 * y) == measured(x, 8 * y)


def near_cohort(distance, d, dtype):
    """Vectors of many lengths, about ``distance`` from one."""
    cohort = random_cohort(7, n=24, d=d, groups=12)
    rng = np.random.default_rng(d)
    one = rng.standard_normal(d).astype(dtype)
    near = np.stack([nearby(one, np.sqrt(distance), rng) for _ in cohort.ids])
    return replace(cohort, vectors=near * dtype(2) ** rng.integers(-4, 5, (24, 1)).astype(dtype))


def true_margins(cohort):
    """Margins from 60 digits by definition; None where undefined."""
    found = []
    n = range(len(cohort.ids))
    distance = {(i, j): true_distance(cohort.vectors[i], cohort.vectors[j]) for i in n for j in n}
    for i in n:
        means = []
        for same_label in (True, False):
            some = sorted(
                distance[i, j]
                for j in n
                if cohort.group[i] != cohort.group[j]
                and (cohort.label[i] == cohort.label[j]) == same_label
                and (cohort.confounder[i] == cohort.confounder[j]) != same_label
            )
            means.append(sum(some[:M]) / M)
        d_so, d_os = means
        found.append((d_os - d_so) / (d_os + d_so) if d_os + d_so > 1e-50 else None)
    return found


def margins_of_every_door(cohort, con, root):
    """Margins and reasons in the order of ids, of Python, SQL, Polars, and a warehouse."""
    frame = cohort.frame()
    con.register("tiles", frame)
    croma_sql.import_embeddings(root, frame, encoder="e", dataset="d", samples=frame)
    croma_sql.add_benchmark(
        root, "b", "SELECT sample_id, label, confounder, group_id FROM samples WHERE dataset = 'd'"
    )
    croma_sql.score(root, on_undefined="null")
    expression = pl.col("embedding").croma.margin(
        "label", "confounder", "group_id", m=M, sample_id="sample_id"
    )
    frames = [
        croma_sql.margins(**cohort.arguments(), m=M),
        con.sql(f"FROM croma_margins('tiles', m := {M})").pl(),
        croma_sql.connect(root).sql(f"FROM margins_at({M})").pl(),
    ]
    yield frame.with_columns(margin=expression).sort("sample_id")["margin"].to_list(), None
    for one in frames:
        one = one.sort("sample_id")
        yield one["margin"].to_list(), one["undefined_reason"].to_list()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 48])
@pytest.mark.parametrize("distance", [1e-6, 1e-10, 1e-14])
def test_margins_of_near_cohorts(distance, d, dtype):
    cohort = near_cohort(distance, d, dtype)
    found = croma_sql.margins(**cohort.arguments(), m=M)["margin"].to_list()
    for one, expected in zip(found, true_margins(cohort), strict=True):
        assert abs(one - expected) <= 1e-12 * abs(expected)


def parallel(cohort):
    """One direction in every length, except for one vector of each type."""
    length = np.random.default_rng(0).integers(1, 9, (len(cohort.ids), 1))
    return replace(cohort, vectors=length * np.round(1000 * cohort.vectors[:1]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_distance_is_where_the_distance_is_zero_in_every_door(dtype, con, tmp_path):
    """Rows of parallel vectors are undefined; those with one other within reach are not."""
    cohort = parallel(random_cohort(7, n=24, d=16, groups=12))
    cohort = replace(cohort, vectors=cohort.vectors.astype(dtype))
    for row in np.flatnonzero((cohort.label == "class0") & (cohort.confounder == "centre0")):
        cohort.vectors[row, 3] = np.nextafter(cohort.vectors[row, 3], dtype(np.inf))
    expected = [margin for _, margin in sorted(zip(cohort.ids, true_margins(cohort), strict=True))]
    assert 0 < expected.count(None) < 24
    reasons = ["zero_distance" if margin is None else None for margin in expected]
    for margins, told in margins_of_every_door(cohort, con, tmp_path / "w"):
        assert told in (None, reasons)
        for found, margin in zip(margins, expected, strict=True):
            assert (found is None) == (margin is None)
            assert margin is None or abs(found - margin) <= 1e-12 * abs(margin)


def test_units_are_measured_as_samples_are():
    """d_cos between near units, to the last bit but one; units of other lengths are the same."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal((6, 32))
    for distance in (1e-6, 1e-12, 1e-14):
        second = np.stack([nearby(x, np.sqrt(2 * distance), rng) for x in first])
        found = compare(np.stack([first, second]), 2, 0, 0, 1).distance[0, 1]
        for p, one in enumerate(found):
            expected = true_distance(first[p], second[p])
            assert one == measured(first[p], second[p])
            assert abs(one - expected) <= 3e-16 * expected
    whole = np.round(1000 * first)
    assert not compare(np.stack([whole, 3 * whole]), 2, 0, 0, 1).distance.any()


def test_neighbours_equally_far_are_shared_in_the_order_of_units():
    """A unit at a right angle to all others, and one with pairs that differ in length alone."""
    rng = np.random.default_rng(0)
    few = np.zeros((8, 12))
    few[0, 0] = 3.7
    few[1:4, 1:6] = np.round(100 * rng.random((3, 5)))
    few[4:7] = np.array([7, 3, 11])[:, None] * few[1:4]
    few[7, 6:] = rng.random(6)
    shuffled = few * rng.random((8, 1))
    offsets, shared_at = compare(np.stack([few, few * 5, few * 7]), 7, 0, 0, 1).shared_at
    for p in range(8):
        assert shared_at[offsets[p] : offsets[p + 1]].tolist() == [1, 2, 3, 4, 5, 6, 7]
    offsets, shared_at = compare(np.stack([few, shuffled]), 7, 0, 0, 1).shared_at
    assert shared_at[offsets[0] : offsets[1]].tolist() == [1, 2, 3, 4, 5, 6, 7]  # all at 1


def test_a_search_finds_the_true_nearest_of_a_near_cohort(monkeypatch):
    """By blocks of float32 products, of which a bound tells what they can tell apart."""
    monkeypatch.setattr("croma_sql.udfs.neighbours.search.SMALL", 0)
    for distance in (1e-8, 1e-16, 1e-24):
        cohort = random_cohort(3, n=150, d=32, groups=30)
        rng = np.random.default_rng(0)
        one = rng.standard_normal(32)
        near = np.stack([nearby(one, np.sqrt(distance), rng) for _ in cohort.ids])
        assert_nearest(replace(cohort, vectors=near))


def assert_nearest(cohort: Cohort):
    found = croma_sql.neighbours(**cohort.arguments(), k=10)
    vectors = in_memory(cohort.vectors)
    place = np.arange(len(cohort.ids))
    for p in range(0, len(place), 10):
        everyone = sorted(
            (exact.distance(vectors.stored, place, vectors.square, p, q), cohort.ids[q])
            for q in place
            if cohort.group[q] != cohort.group[p]
        )
        some = found.filter(sample_id=cohort.ids[p]).sort("rank")
        assert some.select("distance", "neighbour_id").rows() == everyone[:10]
