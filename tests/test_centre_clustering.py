"""The clustering score: scikit-learn's k-means and ARI on every quartet, as PathoROB has it."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from cohorts import random_cohort
from mistakes import raises
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

import croma_sql

EIGHT = [[1, 0], [1, 0.1], [1, 0.2], [1, 0.3], [0, 1], [0.1, 1], [0.2, 1], [0.3, 1]]
ARIS = """(VALUES
    ('p', 1.0, 0.0), ('p', 0.5, 0.0), ('q', 0.0, 1.0), ('q', NULL, 0.5), ('r', NULL, NULL)
)"""


def clustering(cohort, **options):
    given = cohort.arguments()
    del given["group"]
    return croma_sql.clustering(**given, **options)


def naive_clustering(vectors, label, confounder, ks, trials, seed):
    """What PathoROB does with one quartet, in float64 and with all pairs."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def clusters(k, seed, starts):
        return KMeans(k, random_state=seed, init="random", n_init=starts).fit(unit).labels_

    silhouettes = [silhouette_score(unit, clusters(k, seed, 20), metric="cosine") for k in ks]
    k = ks[int(np.argmax(silhouettes))]
    aris = []
    for trial in range(trials):
        found = clusters(k, seed + trial, 5)
        aris.append([adjusted_rand_score(truth, found) for truth in (label, confounder)])
    return silhouettes, k, np.array(aris)


def test_hand_derived_values():
    """Clusters of labels. Each holds 2 + 2 of each confounder: 4 pairs in common of 12 and 12,
    where 12 * 12 / 28 are expected by chance: (4 - 144 / 28) / (12 - 144 / 28) = -1 / 6."""
    found = croma_sql.clustering(EIGHT, list("aaaabbbb"), list("xxyyxxyy"), trials=3)
    assert found.clusterings.drop("ari_confounder").rows() == [
        ("a | b under x | y", trial, 2, 1.0) for trial in range(3)
    ]
    assert found.clusterings["ari_confounder"].to_list() == pytest.approx([-1 / 6] * 3, abs=1e-15)
    assert found.cluster_counts["k"].to_list() == [2, 3, 4, 5, 6, 7]  # fewer than there are samples
    by_label = croma_sql.silhouettes(EIGHT, list("aaaabbbb"))["silhouette"].mean()
    assert found.cluster_counts["silhouette"][0] == pytest.approx(by_label, abs=1e-14)


@pytest.mark.parametrize("d", [12, 300], ids=["tall", "wide"])
def test_that_of_pathorob_on_one_quartet(d):
    """Also where there are more features than vectors."""
    cohort = random_cohort(3, n=120, d=d, effect=1.5)
    found = clustering(cohort, trials=6, k_range=(2, 8), seed=1337)
    order = np.argsort(cohort.ids)
    columns = (column[order] for column in (cohort.vectors, cohort.label, cohort.confounder))
    silhouettes, k, aris = naive_clustering(*columns, range(2, 9), 6, 1337)
    np.testing.assert_allclose(found.cluster_counts["silhouette"], silhouettes, atol=1e-9)
    assert set(found.clusterings["k"]) == {k}
    compared = found.clusterings.select("ari_bio", "ari_confounder").to_numpy()
    np.testing.assert_allclose(compared, aris, atol=1e-12)


def test_quartets_are_those_of_the_design(con):
    """Three labels and three confounders, with a cell that is empty."""
    cohort = random_cohort(0, n=200, labels=3, confounders=3, groups=30)
    cohort = cohort.rows(
        np.flatnonzero((cohort.label != "class2") | (cohort.confounder != "centre1"))
    )
    found = clustering(cohort, trials=1, k_range=(2, 3))
    con.register("tiles", cohort.frame())
    expected = con.sql("SELECT DISTINCT subset FROM croma_quartets('tiles') ORDER BY 1").fetchall()
    assert found.clusterings.select("quartet").rows() == expected
    assert len(expected) == 5
    one = expected[1][0]
    rows = con.execute("FROM croma_quartets('tiles') SELECT sample_id WHERE subset = ?", [one])
    ids = [sample for (sample,) in rows.fetchall()]
    alone = clustering(
        cohort.rows(np.flatnonzero(np.isin(cohort.ids, ids))), trials=1, k_range=(2, 3)
    )
    assert alone.clusterings.equals(found.clusterings.filter(quartet=one))
    assert alone.cluster_counts.equals(found.cluster_counts.filter(quartet=one))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_same_bits_in_every_order_on_any_threads(dtype):
    cohort = random_cohort(5, n=700, d=24, dtype=dtype)
    expected = clustering(cohort, trials=3, k_range=(2, 5), threads=1)
    order = np.random.default_rng(0).permutation(700)
    found = clustering(cohort.rows(order), trials=3, k_range=(2, 5), threads=4)
    assert found.cluster_counts.equals(expected.cluster_counts)
    assert found.clusterings.equals(expected.clusterings)


def test_a_collapsed_encoder_is_clustered_as_well():
    """float32 could not tell these vectors apart."""
    cohort = random_cohort(0, n=80, d=8, effect=4.0)
    spread, collapsed = (
        clustering(random_cohort_near_one(cohort, by), trials=2, k_range=(2, 6))
        for by in (1e-3, 1e-9)
    )
    assert collapsed.clusterings.equals(spread.clusterings)
    assert collapsed.clusterings["ari_bio"].max() > 0.1


def random_cohort_near_one(cohort, by):
    return replace(cohort, vectors=1 + by * cohort.vectors)


@pytest.mark.parametrize("d", [2, 20], ids=["tall", "wide"])
def test_fewer_different_vectors_than_clusters(d):
    label, confounder = list("aaaabbbb"), list("xxyyxxyy")
    three = np.zeros((8, d))
    three[:, :2] = [[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1], [1, 1], [1, 1]]
    found = croma_sql.clustering(three, label, confounder, trials=2)
    assert found.cluster_counts.rows() == [
        ("a | b under x | y", 2, pytest.approx(found.cluster_counts["silhouette"][0])),
        ("a | b under x | y", 3, 1.0),
    ]
    assert found.clusterings["k"].to_list() == [3, 3]
    one = croma_sql.clustering([[1, 2]] * 8, label, confounder, trials=2)
    assert one.cluster_counts.is_empty()
    assert one.clusterings.rows() == [("a | b under x | y", t, None, None, None) for t in (0, 1)]


@pytest.mark.parametrize("k_range", [(8, 9), (4, 9)], ids=["samples", "different vectors"])
def test_a_least_k_that_cannot_be_is_undefined(k_range):
    """Of 8 samples at 3 places."""
    three = [[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1], [1, 1], [1, 1]]
    vectors = EIGHT if k_range == (8, 9) else three
    options = {"trials": 2, "k_range": k_range}
    none = croma_sql.clustering(vectors, list("aaaabbbb"), list("xxyyxxyy"), **options)
    assert none.cluster_counts.is_empty()
    assert none.clusterings.rows() == [("a | b under x | y", t, None, None, None) for t in (0, 1)]


def test_mistakes_are_told():
    label, confounder = list("aaaabbbb"), list("xxyyxxyy")
    with raises("no quartet", "the labels are 'a', 'b'", "the confounders 'x'"):
        croma_sql.clustering(EIGHT, label, ["x"] * 8)
    with raises("no quartet"):
        croma_sql.clustering(np.empty((0, 3)), [], [])
    for options, message in (
        ({"trials": 0}, "trials is 0; it is a whole number of at least 1"),
        ({"k_range": (1, 5)}, "the first of k_range is 1; it is a whole number of at least 2"),
        ({"k_range": (5, 3)}, "the second of k_range is 3; it is a whole number of at least 5"),
        ({"k_range": 5}, "k_range is 5; it is two numbers"),
        ({"seed": -1}, "seed is -1; it is a whole number of at least 0"),
        ({"seed": 2**32 - 1}, "seed is 4294967295; it is a whole number"),
    ):
        with raises(message):
            croma_sql.clustering(EIGHT, label, confounder, **options)
    with raises("'confounder' has 7 rows but there are 8 vectors"):
        croma_sql.clustering(EIGHT, label, confounder[:7])
    with raises("1 of 8 vectors", "3. Cosine", "Leave the rows out (on_bad_vectors = 'drop', or"):
        croma_sql.clustering([*EIGHT[:3], [0, 0], *EIGHT[4:]], label, confounder)
    left = croma_sql.clustering(
        [*EIGHT[:3], [0, 0], *EIGHT[4:]], label, confounder, trials=1, on_bad_vectors="drop"
    )
    assert left.cluster_counts["k"].max() == 6


def test_progress_ends_at_one():
    told = []
    cohort = random_cohort(0, n=60, labels=3)
    clustering(cohort, trials=2, k_range=(2, 3), on_progress=told.append)
    assert told == sorted(told)
    assert len(told) == 3 * (2 + 2)
    assert told[-1] == 1.0


def test_score_of_hand_derived_values(con):
    con.execute(f"CREATE TABLE aris AS FROM {ARIS} t(quartet, ari_bio, ari_confounder)")
    of_each = con.sql("FROM croma_clustering_quartets('aris') ORDER BY quartet")
    assert of_each.columns == [
        "quartet", "trials", "ari_bio", "ari_confounder", "clustering_score",
        "clustering_score_sd", "scope",
    ]  # fmt: skip
    assert of_each.fetchall() == [
        ("p", 2, 0.75, 0.0, 0.75, pytest.approx(0.125**0.5, abs=1e-15), None),
        ("q", 1, 0.0, 1.0, -1.0, None, None),
        ("r", 0, None, None, None, None, None),
    ]
    overall = con.sql("FROM croma_clustering_score('aris')").fetchall()
    assert overall == [(2, -0.125, pytest.approx(0.125**0.5, abs=1e-15), None)]
    con.execute("""
        CREATE TABLE named AS
        SELECT quartet AS q, ari_bio AS b, ari_confounder AS c, 'e' AS encoder FROM aris
    """)
    found = con.sql("""
        FROM croma_clustering_score('named', quartet := 'q', ari_bio := 'b', ari_confounder := 'c',
                                    by := 'encoder')
    """).fetchall()
    assert found == [(*overall[0][:3], "e")]


@pytest.mark.parametrize("undefined", ["nan", "-nan", "inf"])
def test_a_trial_that_is_no_number_is_undefined(con, undefined):
    """As NULL is: NaN comes neither in nor out."""
    con.execute(f"CREATE TABLE aris AS FROM {ARIS} t(quartet, ari_bio, ari_confounder)")
    con.execute(f"""
        CREATE TABLE holes AS SELECT
            quartet,
            coalesce(ari_bio, '{undefined}'::DOUBLE) AS ari_bio,
            coalesce(ari_confounder, '{undefined}'::DOUBLE) AS ari_confounder
        FROM aris
    """)
    for macro in ("croma_clustering_score", "croma_clustering_quartets"):
        expected, found = (
            con.sql(f"FROM {macro}('{table}') ORDER BY ALL").fetchall()
            for table in ("aris", "holes")
        )
        assert found == expected


@pytest.mark.parametrize("cohort", ["camelyon", "tcga", "tolkach_esca"])
@pytest.mark.parametrize("encoder", ["uni2h_clsmean", "phikonv2_clsmean"])
def test_published_scores_recompute_from_their_aris(con, shared, encoder, cohort):
    folder = shared / "truth_pathorob/clustering_score" / encoder / cohort
    published = json.loads((folder / "results_summary.json").read_text())
    con.register("aris", pl.read_csv(folder / "aris.csv"))
    names = "quartet := 'combination', ari_confounder := 'ari_mc'"
    found = con.sql(f"FROM croma_clustering_score('aris', {names})").fetchall()
    assert found == [
        (
            published["num_combinations"],
            pytest.approx(published["clustering_score_mean"], abs=1e-9),
            pytest.approx(published["clustering_score_mean_std"], abs=1e-9),
            None,
        )
    ]
    trials = con.sql(f"SELECT DISTINCT trials FROM croma_clustering_quartets('aris', {names})")
    assert trials.fetchall() == [(published["num_trials"],)]
    con.register("counts", pl.read_csv(folder / "silhouette_scores.csv"))
    chosen = con.sql("""
        SELECT min(k), median(k), max(k)
        FROM (SELECT arg_max(K, silhouette_score) AS k FROM counts GROUP BY combination)
    """)
    assert chosen.fetchall() == [tuple(published["Ks"][name] for name in ("min", "median", "max"))]
