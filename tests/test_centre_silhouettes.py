"""Silhouettes: those of scikit-learn, without its pairs, in every door."""

import math

import duckdb
import numpy as np
import polars as pl
import pytest
from cohorts import AWKWARD, random_cohort
from hypothesis import given, settings
from hypothesis import strategies as st
from mistakes import raises
from naive import inner, within_range
from sklearn.metrics import silhouette_samples

import croma_sql
from croma_sql.udfs.centre import silhouettes as kernels

FOUR = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]]
CLOSER = [1 - 0.2 / 0.7, 1 - 0.2 / 0.22, 1 - 0.2 / 0.7, 1 - 0.2 / 0.22]


def silhouette(vectors, cluster, **options):
    return croma_sql.silhouettes(vectors, cluster, **options)["silhouette"].to_numpy()


def naive_silhouettes(vectors, cluster):
    """Slow and obvious; distances by |u - v|^2 / 2."""
    units = []
    for x in map(within_range, vectors):
        length = math.sqrt(inner(x, x))
        units.append([value / length for value in x])
    found = []
    for i, u in enumerate(units):
        means = {}
        for other in set(cluster):
            apart = [
                inner(gap, gap) / 2
                for j, v in enumerate(units)
                if cluster[j] == other and j != i
                for gap in [[a - b for a, b in zip(u, v, strict=True)]]
            ]
            if apart:
                means[other] = sum(apart) / len(apart)
        inside = means.pop(cluster[i], None)
        if inside is None:
            found.append(0.0)
            continue
        larger = max(inside, min(means.values()))
        found.append((min(means.values()) - inside) / larger if larger > 1e-29 else 0.0)
    return found


def test_hand_derived_values(con):
    """1: to 2 it is 0.2, to 3 and 4 1.0 and 0.4, so 1 - 0.2 / 0.7. 2: 0.2; 0.4 and 0.04."""
    cluster = ["x", "x", "y", "y"]
    np.testing.assert_allclose(silhouette(FOUR, cluster), CLOSER, rtol=1e-14)
    con.register("tiles", pl.DataFrame({"id": [1, 2, 3, 4], "vector": FOUR, "centre": cluster}))
    found = con.sql("""
        FROM croma_silhouettes('tiles', cluster := 'centre', sample_id := 'id',
                               embedding := 'vector')
    """)
    assert found.columns == ["sample_id", "cluster", "silhouette", "scope"]
    assert [str(kind) for kind in found.types] == ["BIGINT", "VARCHAR", "DOUBLE", "VARCHAR"]
    rows = sorted(found.fetchall())
    assert [row[:2] for row in rows] == [(1, "x"), (2, "x"), (3, "y"), (4, "y")]
    np.testing.assert_allclose([row[2] for row in rows], CLOSER, rtol=1e-14)


@pytest.mark.parametrize("column", ["label", "confounder"])
@pytest.mark.parametrize("name", AWKWARD)
def test_those_of_scikit_learn(name, column):
    cohort = AWKWARD[name](1)
    vectors = cohort.vectors.astype(np.float64)
    vectors = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    cluster = getattr(cohort, column)
    expected = silhouette_samples(vectors, cluster, metric="cosine")
    np.testing.assert_allclose(silhouette(cohort.vectors, cluster), expected, atol=1e-9)


small = st.integers(3, 12).flatmap(
    lambda n: st.tuples(
        st.lists(
            st.lists(st.integers(-2, 2), min_size=3, max_size=3).filter(any),
            min_size=n,
            max_size=n,
        ),
        st.lists(st.sampled_from("abc"), min_size=n, max_size=n).filter(lambda c: len(set(c)) > 1),
    )
)


@settings(max_examples=60, deadline=None)
@given(small)
def test_duplicates_and_only_members(cohort):
    """Integer vectors: many at one place, some opposite, some alone in their cluster."""
    vectors, cluster = cohort
    found = silhouette(np.array(vectors, float), cluster)
    np.testing.assert_allclose(found, naive_silhouettes(vectors, cluster), atol=1e-12)


@pytest.mark.parametrize("name", AWKWARD)
def test_no_bit_depends_on_which_clusters_a_product_proposes(name, monkeypatch):
    """As if every cluster had been measured; without any slack ties would be told otherwise."""
    cohort = AWKWARD[name](1)
    cluster = np.random.default_rng(0).integers(60, size=len(cohort.ids))
    found = silhouette(cohort.vectors, cluster)
    monkeypatch.setattr(kernels, "_slack", lambda square, d: np.full(len(square), np.inf))
    assert silhouette(cohort.vectors, cluster).tobytes() == found.tobytes()


def test_clusters_as_near_as_each_other_are_all_measured(monkeypatch):
    """Permutations of a vector are as far from one of equal features, except for rounding."""
    rng = np.random.default_rng(0)
    permuted = np.stack([rng.permutation(np.arange(1.0, 42.0)) for _ in range(121)])
    vectors = np.concatenate([permuted, np.ones((1, 41))])
    cluster = np.arange(122) // 2
    found = silhouette(vectors, cluster)

    def changed(slack):
        monkeypatch.setattr(kernels, "_slack", lambda square, d: np.full(len(square), slack))
        return silhouette(vectors, cluster).tobytes() != found.tobytes()

    assert changed(0.0)
    assert not changed(np.inf)


def test_the_only_member_of_a_cluster_has_none():
    assert silhouette(FOUR, ["x", "x", "y", "z"])[2:].tolist() == [0.0, 0.0]
    assert silhouette(FOUR, [1, 2, 3, 4]).tolist() == [0.0] * 4


def test_one_cluster_has_no_silhouettes(con):
    assert croma_sql.silhouettes(FOUR, [1] * 4)["silhouette"].to_list() == [None] * 4
    con.register(
        "t", pl.DataFrame({"sample_id": range(4), "embedding": FOUR, "confounder": [1] * 4})
    )
    assert con.sql("SELECT DISTINCT silhouette FROM croma_silhouettes('t')").fetchall() == [(None,)]


@pytest.mark.parametrize("spread", [1e-4, 1e-7])
def test_a_collapsed_encoder_is_measured_as_well(spread):
    """All vectors near one; against |u - v|^2 / 2 in extended precision."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(3, size=60)
    vectors = 1 + spread * (rng.standard_normal((60, 24)) + rng.standard_normal((3, 24))[cluster])
    unit = vectors.astype(np.longdouble)
    unit /= np.sqrt((unit**2).sum(axis=1, keepdims=True))
    distance = ((unit[:, None] - unit[None]) ** 2).sum(axis=2) / 2
    mean = np.stack([distance[:, cluster == c].sum(axis=1) for c in range(3)], axis=1)
    own = np.arange(60), cluster
    size = np.bincount(cluster)
    inside = mean[own] / (size[cluster] - 1)
    mean /= size
    mean[own] = np.inf
    nearest = mean.min(axis=1)
    expected = (nearest - inside) / np.maximum(nearest, inside)
    found = silhouette(vectors, cluster)
    np.testing.assert_allclose(found, expected.astype(float), atol=1e-15 / spread)
    assert found.mean() > 0.2


@pytest.mark.parametrize("n", [5, 4000])
def test_vectors_at_one_place_have_silhouette_zero(n):
    """Also where rounding leaves their unit vectors apart by a bit."""
    one = np.random.default_rng(0).standard_normal(24)
    length = np.random.default_rng(1).integers(1, 9, size=(n, 1))
    assert not silhouette(length * one, np.arange(n) % 2).any()


@pytest.mark.parametrize("name", ["many labels", "float16", "duplicates", "near-collapsed"])
def test_the_same_bits_in_every_order_on_any_threads_in_every_door(name, con):
    cohort = AWKWARD[name](2)
    expected = None
    for seed, threads in enumerate((1, 2, 4)):
        order = np.random.default_rng(seed).permutation(len(cohort.ids))
        frame = cohort.rows(order).frame()
        columns = (frame[name] for name in ("embedding", "confounder"))
        found = croma_sql.silhouettes(*columns, sample_id=frame["sample_id"], threads=threads)
        found = found.sort("sample_id")["silhouette"]
        expected = found if expected is None else expected
        assert found.equals(expected)
        con.execute(f"SET threads = {threads}")
        in_float32 = pl.col("embedding").cast(pl.Array(pl.Float32, cohort.vectors.shape[1]))
        con.register("tiles", frame.with_columns(in_float32) if name == "float16" else frame)
        in_sql = con.sql("FROM croma_silhouettes('tiles')").pl().sort("sample_id")
        assert in_sql["silhouette"].equals(expected)


def test_by_measures_each_group_by_itself(con):
    cohorts = {f"encoder {seed}": random_cohort(seed, n=60) for seed in range(3)}
    con.register(
        "tiles",
        pl.concat(c.frame().with_columns(encoder=pl.lit(name)) for name, c in cohorts.items()),
    )
    found = con.sql("FROM croma_silhouettes('tiles', cluster := 'label', by := 'encoder')").pl()
    assert len(found) == 180
    for name, cohort in cohorts.items():
        alone = silhouette(cohort.vectors, cohort.label, sample_id=cohort.ids)
        expected = dict(zip(cohort.ids.tolist(), alone.tolist(), strict=True))
        assert dict(found.filter(scope=name).select("sample_id", "silhouette").rows()) == expected


def test_bad_vectors_are_errors_dropped_or_null(con):
    vectors = [[1, 0], [0, 0], [4, 3], [0, 1], [3, 4]]
    cluster, ids = ["x", "y", "x", "y", "y"], list("abcde")
    told = "keep them with a NULL silhouette (on_bad_vectors = 'null')"
    with raises("1 of 5 vectors", "'b'", told):
        croma_sql.silhouettes(vectors, cluster, sample_id=ids)
    kept = croma_sql.silhouettes(vectors, cluster, sample_id=ids, on_bad_vectors="null")
    assert kept["silhouette"].is_null().to_list() == [False, True, False, False, False]
    np.testing.assert_allclose(kept["silhouette"].drop_nulls(), CLOSER, rtol=1e-14)
    dropped = croma_sql.silhouettes(vectors, cluster, sample_id=ids, on_bad_vectors="drop")
    assert dropped.equals(kept.filter(sample_id="b").clear().vstack(kept.drop_nulls()))
    con.register("t", pl.DataFrame({"sample_id": ids, "embedding": vectors, "c": cluster}))
    with pytest.raises(duckdb.InvalidInputException, match="keep them with a NULL silhouette"):
        con.sql("FROM croma_silhouettes('t', 'c')").fetchall()
    for way, expected in (("null", kept), ("drop", dropped)):
        found = con.sql(f"FROM croma_silhouettes('t', 'c', on_bad_vectors := '{way}')").pl()
        assert found.drop("scope").sort("sample_id").equals(expected)


def test_mistakes_are_told(con):
    with raises("'cluster' has 3 rows but there are 4 vectors"):
        croma_sql.silhouettes(FOUR, [1, 2, 3])
    with raises("column 'cluster' is NULL in 1 of 4 rows", "2"):
        croma_sql.silhouettes(FOUR, [1, 2, None, 3])
    with raises("column 'sample_id' is not unique", "'a'"):
        croma_sql.silhouettes(FOUR, [1, 1, 2, 2], sample_id=list("abca"))
    con.register(
        "t", pl.DataFrame({"id": list("abca"), "z": FOUR, "centre": [1, 1, 2, None], "e": [1] * 4})
    )
    asked = "FROM croma_silhouettes('t', 'centre', sample_id := 'id', embedding := 'z', by := 'e')"
    with pytest.raises(duckdb.InvalidInputException, match="scope '1': column 'id' is not unique"):
        con.sql(asked).fetchall()
    con.execute("CREATE VIEW u AS SELECT * REPLACE (id || coalesce(centre, 0) AS id) FROM t")
    with pytest.raises(duckdb.InvalidInputException, match="column 'centre' is NULL in 1 of 4"):
        con.sql(asked.replace("'t'", "'u'")).fetchall()
    with pytest.raises(duckdb.InvalidInputException, match="on_bad_vectors is NULL; leave it out"):
        con.sql(asked.replace("by :=", "on_bad_vectors := NULL, by :=")).fetchall()
    with pytest.raises(duckdb.BinderException, match='Could not find key "scanner"'):
        con.sql(asked.replace("'centre'", "'scanner'"))


def test_no_rows_have_no_silhouettes(con):
    assert croma_sql.silhouettes(np.empty((0, 3)), []).shape == (0, 3)
    con.execute("CREATE TABLE t (sample_id INTEGER, embedding FLOAT[], confounder VARCHAR)")
    assert con.sql("FROM croma_silhouettes('t')").fetchall() == []


def test_a_stored_view_tells_the_cure_until_it_is_registered(tmp_path):
    path = str(tmp_path / "study.duckdb")
    with croma_sql.register(duckdb.connect(path)) as con:
        con.execute("CREATE TABLE t (sample_id INTEGER, embedding FLOAT[], confounder VARCHAR)")
        con.execute("CREATE VIEW spread AS FROM croma_silhouettes('t')")
    with duckdb.connect(path) as con:
        with pytest.raises(duckdb.CatalogException, match=r"croma_sql.register\(con\)"):
            con.sql("FROM spread")
        croma_sql.register(con)
        assert con.sql("FROM spread").fetchall() == []
