"""Harmonising where nothing differs, at the ends of float64, and whatever columns are called."""

import numpy as np
import pytest
from harmonising import planted, published
from hypothesis import given, settings
from hypothesis import strategies as st

import croma_sql

METHODS = {
    "combat": croma_sql.combat,
    "mean": croma_sql.mean_centred,
    "directions": croma_sql.without_directions,
}


def harmonised(method, cohort, vectors=None, **options):
    return METHODS[method](
        cohort.vectors if vectors is None else vectors, cohort.centre, group=cohort.slide, **options
    )


# Nothing differs


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from([None, "label", "age"]))
def test_combat_of_equal_confounders_only_narrows_them(seed, k, kept):
    """The same n vectors under each: no shift; variances, by n - 1 against n, are n / (n - 1)."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 40)), 6
    once = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4)
    vectors, scanner = np.tile(once, (k, 1)), np.repeat([*"ABCD"][:k], n)
    keep, about = None, vectors.mean(axis=0)
    if kept is not None:
        column = np.arange(n) % 2 if kept == "label" else rng.integers(30, 90, size=n)
        keep = np.tile(column.astype(str) if kept == "label" else column, k)
        model = np.column_stack([np.ones(n), column])
        about = np.tile(model @ np.linalg.lstsq(model, once, rcond=None)[0], (k, 1))
    found = croma_sql.combat(vectors, scanner, keep=keep)
    expected = about + (vectors - about) * np.sqrt((n - 1) / n)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(vectors).max())


@pytest.mark.parametrize("pinned", [1, 5])
def test_features_without_a_difference_leave_the_others_as_published(pinned):
    """A shift that is zero to the last bit is as one of 1e-9, which neuroCombat can start from."""
    rng = np.random.default_rng(pinned)
    half = rng.standard_normal((40, 30))
    vectors, batch = np.vstack([half, half]), np.repeat(["A", "B"], 40)
    vectors[40:, pinned:] = 2 * rng.standard_normal((40, 30 - pinned)) + 1
    nudged = vectors.copy()
    nudged[40:, :pinned] += 1e-9
    np.testing.assert_allclose(
        croma_sql.combat(vectors, batch), published(nudged, batch)[0], rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("fit_on", ["samples", "groups"])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
def test_directions_that_are_not_there_are_not_removed(offset, fit_on):
    """Equal means, whether near zero or far from it: only rounding tells them apart."""
    rng = np.random.default_rng(0)
    once = rng.standard_normal((60, 8)) + offset
    order = [np.arange(60), *(rng.permutation(60) for _ in range(2))]  # sums round differently
    vectors, slide = np.vstack([once[some] for some in order]), np.concatenate(order) // 3
    scanner = np.repeat(["A", "B", "C"], 60)
    found = croma_sql.without_directions(vectors, scanner, slide, fit_on=fit_on)
    np.testing.assert_array_equal(found, vectors)


def test_two_confounders_of_three_that_are_identical_differ_in_one_direction():
    rng = np.random.default_rng(0)
    once = rng.standard_normal((60, 8))
    shift = 3.0 * np.eye(8)[2]
    vectors, scanner = np.vstack([once, once, once + shift]), np.repeat(["A", "B", "C"], 60)
    slide = np.tile(np.arange(60) // 3, 3)
    found = croma_sql.without_directions(vectors, scanner, slide)
    np.testing.assert_allclose(np.delete(found, 2, axis=1), np.delete(vectors, 2, axis=1))
    one = croma_sql.without_directions(vectors, scanner, slide, n_directions=1)
    np.testing.assert_array_equal(found, one)


def test_a_small_difference_is_one_nevertheless():
    """A thousandth of a millionth of the vectors' size, which is a hundred times that of float64's
    last bit after all is added up.
    """
    rng = np.random.default_rng(0)
    once = rng.standard_normal((60, 4))
    vectors = np.vstack([once, once + 1e-9 * np.eye(4)[0]])
    slide = np.tile(np.arange(60) // 3, 2)
    found = croma_sql.without_directions(vectors, np.repeat(["A", "B"], 60), slide)
    assert np.ptp(found[:, 0]) < 1e-3 + np.ptp(np.unique(found[:, 0]).round(3))
    assert np.abs(found[:, 0] - vectors[:, 0]).max() > 1.0
    np.testing.assert_allclose(found[:, 1:], vectors[:, 1:], atol=1e-5)


# The ends of float64


@pytest.mark.parametrize("exponent", [-1040, -533, -500, 500, 664, 1018])
@pytest.mark.parametrize("fit_on", ["samples", "groups"])
@pytest.mark.parametrize("method", METHODS)
def test_the_size_of_vectors_is_immaterial(method, fit_on, exponent):
    """Times a power of two, 1e-313 to 1e306; but for what is subnormal, not one bit changes."""
    cohort = planted(scale=2.0)
    options = {"keep": cohort.label, "fit_on": fit_on}
    rounded = cohort.vectors.astype(np.float16).astype(np.float64)
    expected = np.ldexp(harmonised(method, cohort, rounded, **options), exponent)
    found = harmonised(method, cohort, np.ldexp(rounded, exponent), **options)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2.0 ** max(exponent - 45, -1074))


@pytest.mark.parametrize("method", ["combat", "mean"])
def test_features_may_be_of_any_sizes(method):
    cohort = planted(scale=2.0)
    exponent = np.linspace(-1000, 1000, 32).astype(int)
    expected = np.ldexp(harmonised(method, cohort), exponent)
    found = harmonised(method, cohort, np.ldexp(cohort.vectors, exponent))
    np.testing.assert_array_equal(found, expected)


def test_what_float64_does_not_hold_is_refused():
    """A lies at both ends; moved to the mean of all, one of it is beyond them."""
    value = np.array([1.7, 1.7, 1.7, -1.7]) * 1e308
    with pytest.raises(
        croma_sql.HarmonisationError, match=r"1 of 4 vectors are beyond .* row.s. 2"
    ):
        croma_sql.mean_centred(np.column_stack([value, value]), list("AABB"))


@pytest.mark.parametrize("exponent", [-1060, -500, 1021])
def test_the_size_of_what_is_kept_is_immaterial(exponent):
    cohort = planted()
    age = np.random.default_rng(1).integers(-7, 8, size=600).astype(float)
    np.testing.assert_array_equal(
        harmonised("combat", cohort, keep=np.ldexp(age, exponent)),
        harmonised("combat", cohort, keep=age),
    )


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("method", METHODS)
def test_whole_numbers_that_float64_rounds_are_refused(method, kind):
    cohort = planted()
    ids = 2**60 + np.arange(600).astype(kind)
    with pytest.raises(croma_sql.HarmonisationError, match=r"'slide' holds whole numbers .* text"):
        harmonised(method, cohort, keep={"slide": ids})
    below = 2**53 - 600 + np.arange(600).astype(kind)
    np.testing.assert_allclose(
        harmonised(method, cohort, keep={"slide": below}),
        harmonised(method, cohort, keep={"slide": np.arange(600)}),
        atol=1e-9,
    )


# What is kept


@pytest.mark.parametrize("fit_on", ["samples", "groups"])
@pytest.mark.parametrize("name", ["confounder", "group", "embeddings", "label", ""])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_kept_may_be_called_anything(method, name, fit_on):
    """It is kept, under a name that the function uses itself as under any other."""
    cohort = planted(unbalanced=0.4)
    found, expected = (
        harmonised(method, cohort, keep={called: cohort.label}, fit_on=fit_on)
        for called in (name, "class")
    )
    np.testing.assert_array_equal(found, expected)
    assert not np.allclose(found, harmonised(method, cohort, fit_on=fit_on))


def test_a_name_twice_is_refused():
    cohort = planted()
    with pytest.raises(croma_sql.HarmonisationError, match="keep has a name twice: 1, '1'"):
        harmonised("mean", cohort, keep={1: cohort.label, "1": cohort.label})


def test_integers_are_a_straight_line_and_text_of_them_categories():
    """Codes 0, 1, 2 of values 0, 5, 1: a line through them keeps less than categories do."""
    code = np.tile([0, 1, 2, 0, 1, 1], 10)
    value = np.array([0.0, 5.0, 1.0])[code] + np.repeat([0.0, 7.0], 30)
    centre = np.repeat(["A", "B"], 30)
    value, code, centre = value[3:], code[3:], centre[3:]
    as_text = croma_sql.mean_centred(value[:, None], centre, keep=code.astype(str))[:, 0]
    as_line = croma_sql.mean_centred(value[:, None], centre, keep=code)[:, 0]
    gap = {name: [] for name in ("text", "line")}
    for one in range(3):
        for name, found in (("text", as_text), ("line", as_line)):
            means = (found[(code == one) & (centre == where)].mean() for where in "AB")
            gap[name].append(abs(next(means) - next(means)))
    assert max(gap["text"]) < 1e-12
    assert min(gap["line"]) > 1e-2


def test_a_covariate_told_twice_changes_nothing():
    """In other words, or as a number for two categories: only what it spans matters."""
    cohort = planted()
    code = (cohort.label == "tumour") * 2.5 + 7
    once = croma_sql.combat(cohort.vectors, cohort.centre, keep=cohort.label)
    number = croma_sql.combat(cohort.vectors, cohort.centre, keep=code)
    twice = croma_sql.combat(
        cohort.vectors, cohort.centre, keep={"a": cohort.label, "b": code, "constant": code * 0}
    )
    np.testing.assert_allclose(number, once, atol=1e-12)
    np.testing.assert_allclose(twice, once, atol=1e-12)


def test_many_categories_are_kept():
    """Two rows of each: what is left of a category is the mean of its rows, moved by centre."""
    n = 300
    category = np.tile(np.arange(n), 2).astype(str)
    centre = np.array(["A", "B"])[np.concatenate([np.arange(n) % 2, 1 - np.arange(n) % 2])]
    value = np.random.default_rng(0).standard_normal((n, 1))
    vectors = np.vstack([value, value]) + 9.0 * (centre == "B")[:, None]
    found = croma_sql.mean_centred(vectors, centre, keep=category)
    np.testing.assert_allclose(found, np.vstack([value, value]) + 4.5, atol=1e-12)
