"""ComBat, centring and projecting on arrays: as published, by hand, and on planted effects."""

import tracemalloc

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from harmonising import planted, probe, published
from hypothesis import given, settings
from hypothesis import strategies as st

import croma_sql
from croma_sql.harmonisation.design import Levels, design
from croma_sql.harmonisation.fitting import How, fit

METHODS = {
    "combat": croma_sql.combat,
    "mean": croma_sql.mean_centred,
    "directions": croma_sql.without_directions,
}


def harmonised(method, cohort, vectors=None, **options):
    return METHODS[method](
        cohort.vectors if vectors is None else vectors, cohort.centre, group=cohort.slide, **options
    )


# ComBat as published


@pytest.mark.parametrize(("n", "d", "k"), [(12, 30, 2), (40, 50, 3), (200, 64, 4), (2000, 48, 5)])
@pytest.mark.parametrize("seed", range(3))
def test_combat_is_that_of_neurocombat(n, d, k, seed):
    """With and without a label and an age to keep, for a dozen rows and for thousands."""
    rng = np.random.default_rng(seed)
    batch = rng.permutation(np.arange(n) % k)
    label, age = rng.integers(3, size=n), rng.integers(30, 90, size=n)
    vectors = rng.standard_normal((n, d)) * rng.gamma(4, 0.3, (k, d))[batch] + 5.0
    vectors += rng.standard_normal((k, d))[batch] + np.outer(label, rng.standard_normal(d))
    batch, label = np.array(list("ABCDE"))[batch], np.array(["x", "y", "z"])[label]
    keep = {"label": label, "age": age}
    for ours, theirs in (
        (croma_sql.combat(vectors, batch), published(vectors, batch)),
        (croma_sql.combat(vectors, batch, keep=label), published(vectors, batch, label)),
        (croma_sql.combat(vectors, batch, keep=keep), published(vectors, batch, label, age)),
    ):
        np.testing.assert_allclose(ours, theirs[0], rtol=0, atol=1e-10)
    framed = croma_sql.combat(vectors, batch, keep=pl.DataFrame(keep))
    np.testing.assert_array_equal(framed, croma_sql.combat(vectors, batch, keep=keep))


def test_combat_fitted_on_slides_is_that_of_their_means_applied_to_tiles():
    cohort = planted(scale=3.0)
    slides = np.unique(cohort.slide)
    means = np.array([cohort.vectors[cohort.slide == slide].mean(axis=0) for slide in slides])
    centre_of_slide = np.array(["A", "B", "C"])[slides % 3]
    _, known = published(means, centre_of_slide)
    mean, deviation = known["stand.mean"][:, 0], np.sqrt(known["var.pooled"][:, 0])
    batch = np.searchsorted(["A", "B", "C"], cohort.centre)
    standard = (cohort.vectors - mean) / deviation
    standard = (standard - known["gamma.star"][batch]) / np.sqrt(known["delta.star"][batch])
    found = harmonised("combat", cohort, fit_on="groups")
    np.testing.assert_allclose(found, standard * deviation + mean, rtol=0, atol=1e-10)


# Centring, by hand


def test_mean_centring_by_hand():
    """Means are (2, 0), (5, 4); that of all rows is (3, 4/3), for A has two rows of three."""
    found = croma_sql.mean_centred([[1.0, 0.0], [3.0, 0.0], [5.0, 4.0]], ["A", "A", "B"])
    expected = [[2, 4 / 3], [4, 4 / 3], [3, 4 / 3]]
    np.testing.assert_allclose(found, expected, atol=1e-14)


def test_mean_centring_beside_a_label_by_hand():
    """B adds 10 and tumour adds 4. A has three tumours of four, B one, so that means mislead.

    Without the label, centring takes away (11 - 3) / 2 = 4 from each side; with it, 10 / 2 = 5.
    """
    label = ["t", "t", "t", "n", "t", "n", "n", "n"]
    centre = list("AAAABBBB")
    value = [4.0, 4.0, 4.0, 0.0, 14.0, 10.0, 10.0, 10.0]
    misled = croma_sql.mean_centred(np.array(value)[:, None], centre)[:, 0]
    right = croma_sql.mean_centred(np.array(value)[:, None], centre, keep=label)[:, 0]
    np.testing.assert_allclose(misled, [8, 8, 8, 4, 10, 6, 6, 6], atol=1e-12)
    np.testing.assert_allclose(right, [9, 9, 9, 5, 9, 5, 5, 5], atol=1e-12)


def test_each_slide_counts_once_when_fitted_on_groups():
    """A has a slide of one tile at 0 and one of three at 4; their mean is 2, that of tiles 3."""
    value, slide = np.array([0.0, 4, 4, 4, 6, 10]), [1, 2, 2, 2, 3, 4]
    found = croma_sql.mean_centred(value[:, None], list("AAAABB"), group=slide, fit_on="groups")[
        :, 0
    ]
    np.testing.assert_allclose(found, value + np.repeat([3, -3], [4, 2]), atol=1e-14)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
def test_centred_means_are_equal_and_centring_again_changes_nothing(seed, k, d):
    rng = np.random.default_rng(seed)
    batch = np.concatenate([np.arange(k), rng.integers(k, size=20)])
    vectors = rng.standard_normal((len(batch), d)) * 10.0 ** rng.integers(-3, 4)
    found = croma_sql.mean_centred(vectors, batch)
    size = np.abs(vectors).max()
    for one in range(k):
        gap = found[batch == one].mean(axis=0) - vectors.mean(axis=0)
        assert np.abs(gap).max() < 1e-13 * size
    np.testing.assert_allclose(
        croma_sql.mean_centred(found, batch), found, rtol=0, atol=1e-13 * size
    )


# What was planted


def margins(cohort, vectors):
    return croma_sql.margins(vectors, cohort.label, cohort.centre, cohort.slide)


@pytest.mark.parametrize("method", METHODS)
def test_an_additive_shift_is_removed_and_biology_kept(method):
    """A linear probe of the centre falls from certainty to chance in slides it has not seen.

    Below it, even: what is centred on all slides is centred the other way on those not seen.
    """
    cohort = planted()
    found = harmonised(method, cohort)
    before, after = (margins(cohort, vectors)["margin"] for vectors in (cohort.vectors, found))
    assert probe(cohort.vectors, cohort.centre, cohort.slide) > 0.99
    assert probe(found, cohort.centre, cohort.slide) < 0.4
    assert probe(found, cohort.label, cohort.slide) > 0.99
    assert after.median() > before.median() + 0.2
    assert (after <= 0).mean() == 0


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_an_interaction_of_biology_and_centre_is_not_removed(method, keep):
    """Centre B hides nine tenths of the class. No probe of the centre finds it any more, over all
    classes; yet the difference between classes is as unlike as it was, tumour of B is as fragile,
    and among tumour the centre is found as before.
    """
    cohort = planted(interaction=3.6)
    found = harmonised(method, cohort, **({"keep": cohort.label} if keep else {}))

    def unlike(vectors):
        differences = []
        for centre in "AB":
            cells = (
                vectors[(cohort.centre == centre) & (cohort.label == label)].mean(axis=0)
                for label in ("tumour", "normal")
            )
            differences.append(next(cells) - next(cells))
        return np.linalg.norm(differences[0] - differences[1])

    def fragile(vectors):
        cell = (pl.col("confounder") == "B") & (pl.col("label") == "tumour")
        return (margins(cohort, vectors).filter(cell)["margin"] <= 0).mean()

    tumour = cohort.label == "tumour"
    assert unlike(cohort.vectors) == pytest.approx(3.6, abs=0.3)
    assert unlike(found) > 0.8 * unlike(cohort.vectors)
    assert fragile(cohort.vectors) == 1.0
    assert fragile(found) > 0.6
    assert probe(found, cohort.centre, cohort.slide) < 0.4
    assert probe(found[tumour], cohort.centre[tumour], cohort.slide[tumour]) > 0.5


def test_combat_removes_a_scale_and_centring_does_not():
    cohort = planted(scale=3.0, slides=300, n=900)

    def spread(vectors):
        """Of residuals in centre C, by that in centre A."""
        cells = [
            vectors[(cohort.centre == centre) & (cohort.label == label)]
            for centre in "CA"
            for label in ("tumour", "normal")
        ]
        size = [cell.std(axis=0).mean() for cell in cells]
        return (size[0] + size[1]) / (size[2] + size[3])

    assert spread(cohort.vectors) == pytest.approx(3.0, abs=0.15)
    centred, combat = (harmonised(m, cohort, keep=cohort.label) for m in ("mean", "combat"))
    assert spread(centred) == pytest.approx(spread(cohort.vectors))
    assert spread(combat) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_keeping_the_label_saves_it_where_centres_differ_in_it(method):
    """Nine tenths of centre A are tumour, half of the others: what removes the difference of the
    means removes biology, unless it is kept.
    """
    cohort = planted(unbalanced=0.4)

    def biology(vectors):
        of_label = (vectors[cohort.label == label].mean(axis=0) for label in ("tumour", "normal"))
        return np.linalg.norm(next(of_label) - next(of_label))

    lost, kept = harmonised(method, cohort), harmonised(method, cohort, keep=cohort.label)
    assert (
        margins(cohort, kept)["margin"].median() > margins(cohort, lost)["margin"].median() + 0.02
    )
    assert biology(kept) > biology(lost) + 0.2


# Directions


def test_directions_are_those_of_other_groups():
    """Vectors of a slide have no say in what happens to its fold; all others they change."""
    cohort = planted()
    one = cohort.slide == 7
    changed = cohort.vectors.copy()
    changed[one] += np.random.default_rng(1).standard_normal(changed.shape[1])
    before, after = (
        harmonised("directions", cohort, vectors) for vectors in (cohort.vectors, changed)
    )
    same = (before == after).all(axis=1)
    unmoved = set(cohort.slide[same])
    assert len(unmoved) == 30 // 5 - 1
    assert not same[one].any()
    assert {slide % 3 for slide in [*unmoved, 7]} == {0, 1, 2}  # each fold has all centres


def test_a_shift_is_removed_in_the_dimensions_it_has_and_no_others():
    """Three centres differ in two directions; a fold loses these, in one lies most of it."""
    cohort = planted(n=1500, slides=60)
    for n_directions, rank in ((None, 2), (2, 2), (1, 1)):
        found = croma_sql.without_directions(
            cohort.vectors, cohort.centre, cohort.slide, n_directions=n_directions
        )
        moved = (cohort.vectors - found)[np.isin(cohort.slide, [0, 1, 2])]
        kept = cohort.slide[np.isin(cohort.slide, [0, 1, 2])]
        for slide in np.unique(kept):  # all rows of a slide are in one fold
            spread = moved[kept == slide] - moved[kept == slide].mean(axis=0)
            assert np.linalg.matrix_rank(spread, tol=1e-9) == rank


def test_a_label_that_other_groups_lack_is_no_hindrance():
    """'a' comes first and is in one slide per centre; with seed 7, one fold holds all three."""
    cohort = planted()
    label = np.where(cohort.slide < 3, "a", cohort.label)
    for seed in (0, 7):
        found = harmonised("directions", cohort, keep=label, seed=seed, folds=2)
        assert probe(found, cohort.centre, cohort.slide) < 0.4


def test_folds_follow_the_seed():
    cohort = planted()
    first, again, other = (harmonised("directions", cohort, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


# Awkward vectors


@pytest.mark.parametrize("fit_on", ["samples", "groups"])
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_rows_is_immaterial(method, fit_on):
    cohort = planted(n=1500, scale=2.0)
    rng = np.random.default_rng(3)
    age = rng.integers(30, 90, size=1500)
    order = rng.permutation(1500)
    options = {"fit_on": fit_on}
    first = harmonised(method, cohort, keep={"label": cohort.label, "age": age}, **options)
    second = METHODS[method](
        cohort.vectors[order],
        cohort.centre[order],
        group=cohort.slide[order],
        keep={"label": cohort.label[order], "age": age[order]},
        **options,
    )
    np.testing.assert_allclose(second, first[order], rtol=0, atol=1e-12)


def test_features_without_variance():
    """A constant one stays to the last bit; one that is constant within centres loses its shift."""
    cohort = planted()
    centre = np.array([1.0, 2.0, 4.0])[np.searchsorted(["A", "B", "C"], cohort.centre)]
    vectors = np.column_stack([np.full(600, 0.1), cohort.vectors, centre, np.zeros(600)])
    found = croma_sql.combat(vectors, cohort.centre)
    assert (found[:, 0] == 0.1).all()
    assert (found[:, -1] == 0.0).all()
    np.testing.assert_allclose(found[:, -2], centre.mean(), atol=1e-14)
    np.testing.assert_allclose(found[:, 1:-2], croma_sql.combat(cohort.vectors, cohort.centre))


def test_a_feature_without_variance_under_one_centre_stays_finite():
    cohort = planted()
    vectors = cohort.vectors.copy()
    vectors[cohort.centre == "A", 3] = 0.0  # a unit that never fires there
    found = croma_sql.combat(vectors, cohort.centre)
    assert np.isfinite(found).all()
    vectors[cohort.centre == "A"] = 0.7  # nothing varies there: no scale to undo, only a shift
    found = croma_sql.combat(vectors, cohort.centre)
    np.testing.assert_allclose(
        found[cohort.centre == "A"], np.broadcast_to(vectors.mean(axis=0), (200, 32))
    )


def test_vectors_of_any_type_give_the_same():
    cohort = planted()
    half = cohort.vectors.astype(np.float16)
    expected = croma_sql.combat(half.astype(np.float64), cohort.centre)
    for vectors in (half, half.astype(np.float32), pa.array(half.astype(np.float64).tolist())):
        np.testing.assert_array_equal(croma_sql.combat(vectors, cohort.centre), expected)


def test_memory_does_not_grow_with_the_samples():
    """200,000 vectors of 64 features, made as they are asked for: 100 MB; what is held is codes."""
    n, d = 200_000, 64
    rows = np.arange(n)
    centre, label, slide = rows % 4, rows // 4 % 2, rows % 400
    shown = pa.array(rows)

    def blocks():
        for start in range(0, n, 1000):
            some = rows[start : start + 1000]
            noise = np.random.default_rng(start).standard_normal((1000, d))
            yield some, noise + centre[some, None] + 2 * label[some, None]

    model = design(pa.array(centre.astype(str)), {"label": pa.array(label.astype(str))}, shown)
    tracemalloc.start()
    try:
        for how in (How("combat"), How("mean"), How("combat", "groups")):
            fitted = fit(
                blocks,
                model,
                Levels(slide, [f"{one}" for one in range(400)]),
                how,
                np.full(d, 10.0),
            )
            for some, matrix in blocks():
                fitted.apply(some, matrix)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 15e6


# What is refused

GOOD = {
    "embeddings": np.random.default_rng(0).standard_normal((8, 3)),
    "confounder": list("AABBAABB"),
    "group": [1, 2, 3, 4, 1, 2, 3, 4],
}


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("combat", {"confounder": ["A"] * 8}, "confounder has 1 value.*'A'.*nothing to harmonise"),
        ("combat", {"confounder": list("AAABAAAA")}, "variance under each.*'B' has one"),
        ("combat", {"confounder": ["A", None, *"BBAABB"]}, "'confounder' is NULL in 1 of 8 .*: 1"),
        ("combat", {"keep": {"age": [1, 2, 3, None] * 2}}, "'age' is NULL in 2 of 8 rows: 3, 7"),
        ("combat", {"keep": {"age": [np.inf, *range(7)]}}, "'age' holds infinite"),
        ("combat", {"keep": list("xxyyxxyy")}, "'keep' cannot be kept.*is the same as the conf"),
        ("mean", {"keep": {"class": list("xxyyxxyz")}},
         "'class' cannot be kept.*'x' only under 'A'; 'y', 'z' only under 'B'"),
        ("mean", {"keep": {"year": [1, 1, 2, 2] * 2}}, "'year' .*has one value under each"),
        ("mean", {"keep": {"p": [1, 2, 3, 4, 5, 6, 7, 8], "q": [2, 3, 3, 4, 6, 7, 7, 8]}},
         "'p', 'q' cannot be kept together"),
        ("mean", {"keep": {"tile": list("abcdabef")}}, "too few for 2 confounders|cannot be kept"),
        ("mean", {"keep": [1, 2]}, "'keep' has 2 rows but there are 8 vectors"),
        ("mean", {"embeddings": [[np.nan, 1.0], *[[1.0, 2.0]] * 7]}, "1 of 8 vectors.*row.s. 0"),
        ("combat", {"embeddings": np.ones((8, 3))}, "0 of 3 features vary"),
        ("combat", {"fit_on": "slides"}, "fit_on is 'slides'; it is one of samples, groups"),
        ("combat", {"fit_on": "groups", "group": None}, "group is missing"),
        ("combat", {"fit_on": "groups", "group": [1, 1, 2, 2] * 2}, "variance.*'A', 'B' has one"),
        ("directions", {"group": [1, 1, 2, 3] * 2}, "on other groups, but 'A' has one group"),
        ("directions", {"folds": 1}, "folds is 1; it is a whole number from 2"),
        ("directions", {"folds": 9}, "folds is 9; .* from 2 to the 4 groups"),
        ("directions", {"folds": 2, "n_directions": 2}, "n_directions is 2; 2 confounders differ"),
        ("directions", {"folds": 2, "n_directions": True}, "n_directions is True"),
        ("directions", {"folds": 2, "embeddings": np.arange(8.0)[:, None]}, "1 dimensions have"),
        ("directions", {"folds": 2, "seed": -1}, "seed is -1"),
        ("directions", {"folds": 2, "keep": list("xyxyxyxy"), "group": [1, 2, 3, 4, 1, 2, 3, 4]},
         "without the groups of one fold, what is to be kept cannot be told from the confounder"),
    ],
)  # fmt: skip
def test_what_cannot_be_harmonised_is_refused(method, changes, message):
    with pytest.raises(croma_sql.HarmonisationError, match=message):
        METHODS[method](**GOOD | changes)
