"""Probes of label and confounder: scikit-learn's, on groups they have not learnt from."""

import numpy as np
import polars as pl
import pytest
from cohorts import random_cohort
from hypothesis import given, settings
from hypothesis import strategies as st
from mistakes import raises
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import croma_sql

EIGHT = [[1, 0], [1, 0.1], [1, 0.2], [1, 0.3], [0, 1], [0.1, 1], [0.2, 1], [0.3, 1]]


def probes(cohort, **options):
    return croma_sql.probes(**cohort.arguments(), **options)


def balanced(frame, target, probe):
    some = frame.filter(target=target, probe=probe)
    return balanced_accuracy_score(some["truth"], some["predicted"])


def test_those_of_scikit_learn():
    cohort = random_cohort(1, n=240, d=12, labels=3, groups=40)
    found = probes(cohort, folds=4, neighbours=7, seed=3)
    assert found.columns == [
        "sample_id", "group_id", "target", "probe", "fold", "truth", "predicted",
    ]  # fmt: skip
    assert len(found) == 4 * 240
    order = np.argsort(cohort.ids)
    vectors, group = cohort.vectors[order], cohort.group[order]
    for target in ("label", "confounder"):
        truth = getattr(cohort, target)[order]
        divided = StratifiedGroupKFold(4, shuffle=True, random_state=3).split(vectors, truth, group)
        expected = {name: np.empty(240, truth.dtype) for name in ("knn", "linear")}
        fold = np.empty(240, int)
        for number, (learnt, asked) in enumerate(divided):
            fold[asked] = number
            models = {
                "knn": KNeighborsClassifier(7, metric="cosine"),
                "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            }
            unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            for name, model in models.items():
                expected[name][asked] = model.fit(unit[learnt], truth[learnt]).predict(unit[asked])
        for name, predicted in expected.items():
            some = found.filter(target=target, probe=name)
            assert some["sample_id"].to_list() == cohort.ids[order].tolist()
            assert some["group_id"].to_list() == group.tolist()
            assert some["truth"].to_list() == truth.tolist()
            assert some["fold"].to_list() == fold.tolist()
            assert some["predicted"].to_list() == predicted.tolist()


def test_no_group_is_both_learnt_from_and_predicted():
    """Every slide has a direction of its own and a label by lot: others teach nothing of it."""
    rng = np.random.default_rng(0)
    slide = np.repeat(np.arange(60), 8)
    vectors = 5 * rng.standard_normal((60, 120))[slide] + rng.standard_normal((480, 120))
    label, centre = rng.integers(2, size=(2, 60))[:, slide]
    found = croma_sql.probes(vectors, label, centre, slide, neighbours=5)
    assert found.group_by("target", "group_id").agg(pl.col("fold").n_unique())["fold"].max() == 1
    known = croma_sql.probes(vectors, label, centre, np.arange(480), neighbours=5)
    for target in ("label", "confounder"):
        for probe in ("knn", "linear"):
            assert balanced(found, target, probe) < 0.7
            assert balanced(known, target, probe) > 0.95


@pytest.mark.parametrize(("effect", "low", "high"), [(0.0, 0.4, 0.6), (4.0, 0.99, 1.0)])
def test_planted_confounders_are_found(effect, low, high):
    """At chance without a trace of it, and all of them with a strong one."""
    rng = np.random.default_rng(0)
    slide = np.repeat(np.arange(50), 12)
    centre, label = slide % 2, rng.integers(2, size=600)
    directions = np.linalg.qr(rng.standard_normal((24, 24)))[0]
    vectors = rng.standard_normal((600, 24)) + 4 * (2 * label - 1)[:, None] * directions[0]
    vectors += effect * (2 * centre - 1)[:, None] * directions[1]
    found = croma_sql.probes(vectors, label, centre, slide)
    for probe in ("knn", "linear"):
        assert low <= balanced(found, "confounder", probe) <= high
        assert balanced(found, "label", probe) > 0.95


def test_a_collapsed_encoder_is_probed_as_well():
    cohort = random_cohort(0, n=120, d=8, groups=24, effect=2.0)
    columns = cohort.label, cohort.confounder, cohort.group
    spread, collapsed = (
        croma_sql.probes(1 + by * cohort.vectors, *columns, sample_id=cohort.ids)
        for by in (1e-4, 1e-9)
    )
    agree = (spread["predicted"] == collapsed["predicted"]).mean()
    assert agree > 0.98
    assert balanced(collapsed, "label", "linear") > 0.75


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_the_same_bits_in_every_order_on_any_threads(dtype):
    cohort = random_cohort(5, n=600, d=24, dtype=dtype, effect=0.3)
    expected = probes(cohort, folds=3, threads=1)
    order = np.random.default_rng(0).permutation(600)
    assert probes(cohort.rows(order), folds=3, threads=4).equals(expected)


def test_too_few_groups_are_told_or_leave_a_target_out():
    label, confounder = list("aaaabbbb"), list("xxyyxxyy")
    group = [1, 2, 3, 4, 5, 5, 5, 6]
    with raises("column 'label'", "'b' is in 2 group(s), fewer than the 3 folds", "'null'"):
        croma_sql.probes(EIGHT, label, confounder, group, folds=3, neighbours=1)
    found = croma_sql.probes(
        EIGHT, label, confounder, group, folds=3, neighbours=1, on_few_groups="null"
    )
    left_out = found.filter(target="label")
    assert left_out.select("fold", "predicted").null_count().rows() == [(16, 16)]
    assert left_out["truth"].to_list() == label * 2
    assert found.filter(target="confounder")["predicted"].null_count() == 0
    with raises("column 'confounder' has one value only, '7'; give it two"):
        croma_sql.probes(EIGHT, label, [7] * 8, range(8), folds=2)
    none = croma_sql.probes(EIGHT, [1] * 8, [7] * 8, range(8), on_few_groups="null")
    assert none["predicted"].null_count() == len(none) == 32


FOUR = {
    "embeddings": [[1, 0], [1, 0.1], [0, 1], [0.1, 1]],
    "group": [3, 1, 2, 1],
    "folds": 2,
    "seed": 3,
    "neighbours": 1,
}


def test_a_class_that_a_fold_has_all_of_is_told_or_leaves_a_target_out():
    """Both labels are in two groups; with this seed those of 'a' come into one fold."""
    label, other = list("bbaa"), list("xxyy")
    with raises(
        "column 'label': all groups of 'a' came into one of the 2 folds (seed 3)", "'null'"
    ):
        croma_sql.probes(label=label, confounder=other, **FOUR)
    found = croma_sql.probes(label=label, confounder=other, **FOUR, on_few_groups="null")
    assert found.select("fold", "predicted").null_count().rows() == [(16, 16)]
    single = croma_sql.probes(label=label, confounder=other, **(FOUR | {"group": range(4)}))
    assert single["predicted"].null_count() == 0


few = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), min_size=4, max_size=9)


@settings(max_examples=60, deadline=None)
@given(few, st.integers(2, 3), st.integers(0, 5))
def test_what_is_asked_for_has_been_learnt(rows, folds, seed):
    """In every fold, of any classes in any groups; or the target is NULL as a whole."""
    classes, groups = zip(*rows, strict=True)
    vectors = np.random.default_rng(0).standard_normal((len(rows), 2))
    options = {"folds": folds, "seed": seed, "neighbours": 1, "on_few_groups": "null"}
    found = croma_sql.probes(vectors, classes, classes, groups, **options)
    some = found.filter(target="label", probe="linear")
    if some["fold"].null_count():
        assert some["fold"].null_count() == some["predicted"].null_count() == len(rows)
        return
    for fold in range(folds):
        learnt = set(some.filter(pl.col("fold") != fold)["truth"])
        assert learnt == set(classes)
    assert found["predicted"].null_count() == 0


def test_no_rows_are_not_probed():
    with raises("column 'label' has no value; give it two"):
        croma_sql.probes(np.empty((0, 3)), [], [], [])
    assert croma_sql.probes(np.empty((0, 3)), [], [], [], on_few_groups="null").is_empty()


def test_mistakes_are_told():
    label, confounder = list("aaaabbbb"), list("xxyyxxyy")
    for options, message in (
        ({"folds": 1}, "folds is 1; it is a whole number of at least 2"),
        ({"neighbours": 0}, "neighbours is 0; it is a whole number of at least 1"),
        ({"seed": 2**32}, "seed is 4294967296; it is a whole number of at least 0"),
        ({"on_few_groups": "drop"}, "on_few_groups is 'drop'; it is 'error' or 'null'"),
        ({"threads": 0}, "threads is 0"),
    ):
        with raises(message):
            croma_sql.probes(EIGHT, label, confounder, range(8), **options)
    with raises("column 'group_id' is NULL in 1 of 8 rows", "1"):
        croma_sql.probes(EIGHT, label, confounder, [0, None, *range(6)])


def test_progress_ends_at_one():
    told = []
    probes(random_cohort(0, n=60), folds=2, on_progress=told.append)
    assert told == [n / 8 for n in range(1, 9)]


classes = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abcd")), min_size=1, max_size=40
)


def test_balanced_accuracy_is_that_of_scikit_learn(con):
    """Whose function warns of predictions that are no class; by its definition, then."""

    @settings(max_examples=60, deadline=None)
    @given(classes)
    def agree(rows):
        recalls = [
            np.mean([predicted == truth for truth, predicted in rows if truth == one])
            for one in {truth for truth, _ in rows}
        ]
        con.register("t", pl.DataFrame(rows, ["truth", "predicted"], orient="row"))
        found = con.sql("SELECT croma_balanced_accuracy(truth, predicted) FROM t").fetchall()
        assert found == [(pytest.approx(np.mean(recalls), abs=1e-15),)]

    agree()


def test_balanced_accuracy_is_an_aggregate_in_every_sense(con):
    rng = np.random.default_rng(0)
    truth, wrong = rng.integers(5, size=(2, 900))
    frame = pl.DataFrame(
        {
            "g": rng.integers(3, size=900),
            "truth": truth,
            "predicted": np.where(rng.random(900) < 0.7, truth, wrong),
        }
    )
    expected = {
        g: balanced_accuracy_score(some["truth"], some["predicted"])
        for (g,), some in frame.group_by("g")
    }
    con.register("t", frame)
    con.execute("CREATE TABLE u AS FROM t")
    con.execute("INSERT INTO u VALUES (0, NULL, 1), (1, 2, NULL), (7, NULL, NULL)")
    grouped = con.sql("""
        SELECT g, croma_balanced_accuracy(truth, predicted) AS bacc FROM u GROUP BY g
        HAVING croma_balanced_accuracy(truth, predicted) > 0 ORDER BY bacc
    """).fetchall()
    assert dict(grouped) == pytest.approx(expected, abs=1e-15)
    assert [bacc for _, bacc in grouped] == sorted(bacc for _, bacc in grouped)
    over = con.sql(
        "SELECT DISTINCT g, croma_balanced_accuracy(truth, predicted) OVER (PARTITION BY g) FROM u"
    ).fetchall()
    assert dict(over) == dict(grouped) | {7: None}
    for number in ("FLOAT", "DOUBLE"):  # NaN is NULL, but as text it is a class
        con.execute(
            f"CREATE OR REPLACE TABLE v AS SELECT g, truth::{number} AS truth, "
            f"predicted::{number} AS predicted FROM u"
        )
        con.execute("INSERT INTO v VALUES (0, 'nan', 1), (0, -'nan'::DOUBLE, 1), (1, 2, 'nan')")
        con.execute("INSERT INTO v VALUES (8, 'nan', 'nan')")
        found = con.sql("SELECT g, croma_balanced_accuracy(truth, predicted) FROM v GROUP BY g")
        assert dict(found.fetchall()) == dict(over) | {8: None}
    nan = con.sql("SELECT croma_balanced_accuracy(a, a) FROM (VALUES ('nan'), ('b')) t(a)")
    assert nan.fetchall() == [(1.0,)]
    text = con.sql("SELECT croma_balanced_accuracy(truth::VARCHAR, predicted::VARCHAR) FROM u")
    number = con.sql("SELECT croma_balanced_accuracy(truth, predicted) FROM u")
    assert text.fetchall() == number.fetchall()
