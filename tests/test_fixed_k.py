"""RI, MaRI, k-NN accuracies, k* and support, against a naive version; protocols and errors."""

import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal  # which does not underflow

import duckdb
import naive
import numpy as np
import polars as pl
import pytest
from cohorts import AWKWARD, random_cohort
from fixed_k import KS, SELECT, points, warehouse

import croma_sql

# Against the naive version


POINT = "SELECT 'b' AS benchmark, 'e' AS encoder, 3 AS k"


def naive_panel(cohort, k):
    """Everything at one k, from lists of all neighbours."""
    found = naive.neighbours(*cohort.columns())
    place = {str(name): i for i, name in enumerate(cohort.ids)}
    label, confounder = cohort.label, cohort.confounder
    rows, distances = [], []
    for i, neighbours in enumerate(found):
        near = [(distance, place[name]) for distance, name in neighbours["ANY"][:k]]
        kinds = Counter(
            ("S" if label[i] == label[j] else "O")
            + ("S" if confounder[i] == confounder[j] else "O")
            for _, j in near
        )
        so = [d for d, j in near if label[i] == label[j] and confounder[i] != confounder[j]]
        os = [d for d, j in near if label[i] != label[j] and confounder[i] == confounder[j]]
        distances += so + os
        rows.append((kinds, so, os, [j for _, j in near]))
    tau = float(np.median(distances)) if distances else 0.2
    return rows, tau if tau > 0 else 0.2


def as_float(value):
    return None if value is None else float(value)


def naive_accuracy(cohort, rows, target, k):
    if k >= len(rows):
        return None
    order = list(dict.fromkeys(target[np.argsort(cohort.ids)]))
    recalls = {}
    for i, (*_, near) in enumerate(rows):
        if near:
            votes = Counter(target[j] for j in near)
            winner = max(order, key=lambda one: (votes[one], -order.index(one)))
            recalls.setdefault(target[i], []).append(winner == target[i])
    return np.mean([np.mean(hits) for hits in recalls.values()])


# Distances that differ in the last bit are ordered as their rounding falls: see test_search.py.
@pytest.mark.parametrize("name", sorted(set(AWKWARD) - {"last bit"}))
def test_every_number_is_that_of_the_naive_version(root, name):
    cohort = AWKWARD[name](1)
    cohort = cohort.rows(
        np.arange(min(len(cohort.ids), 64 if cohort.vectors.shape[1] < 1000 else 24))
    )
    con = warehouse(root, {"e": cohort}, k=30)
    for k in (1, 7, 30):
        compare_with_naive(con, cohort, k)


def compare_with_naive(con, cohort, k):
    rows, tau = naive_panel(cohort, k)
    frame = con.sql("FROM neighbourhoods_at($k)", params={"k": k}).pl().sort("sample_id")
    order = np.argsort(cohort.ids.astype(str))
    assert frame["sample_id"].to_list() == cohort.ids.astype(str)[order].tolist()
    expected = [[rows[i][0][kind] for kind in ("SS", "SO", "OS", "OO")] for i in order]
    assert frame.select("n_ss", "n_so", "n_os", "n_oo").rows() == [tuple(e) for e in expected]
    assert frame["tau"].unique().to_list() == pytest.approx([tau], rel=1e-12)
    weight = [
        [sum(Decimal(-d / tau).exp() for d in rows[i][side]) for side in (1, 2)] for i in order
    ]
    mari = [so / (so + os) if so + os else None for so, os in weight]
    assert frame["mari"].to_list() == pytest.approx([as_float(x) for x in mari], abs=1e-12)
    counted = np.array(expected)
    n_so, n_os = counted[:, 1], counted[:, 2]
    summary = con.sql(f"FROM {points(con, k)}").pl().row(0, named=True)
    informative = n_so + n_os > 0
    ss, oo = counted[:, 0] > counted[:, 3], counted[:, 0] < counted[:, 3]
    total = [sum(side) for side in zip(*weight, strict=True)]
    expected = {
        "n": len(order),
        "n_unusable": 0,
        "bio_bacc": naive_accuracy(cohort, rows, cohort.label, k),
        "conf_bacc": naive_accuracy(cohort, rows, cohort.confounder, k),
        "ri": n_so.sum() / (n_so + n_os).sum() if informative.any() else None,
        "mari": float(total[0] / sum(total)) if informative.any() else None,
        "support": informative.mean(),
        "ss_dominated": (~informative & ss).mean(),
        "oo_dominated": (~informative & oo).mean(),
        "mixed": (~informative & ~ss & ~oo).mean(),
    }
    assert {name: summary[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_a_vote_is_won_by_the_class_that_comes_first(root):
    """One anchor, neighbours b, a, a, b at growing distance; b is first by sample_id.

    After 1: b. After 2: one each, b comes first. After 3: a. After 4: two each, b again. The anchor
    is an a."""
    angle = np.radians([0, 1, 2, 3, 4])
    tiles = pl.DataFrame(
        {
            "sample_id": ["anchor", "aa", "c", "d", "e"],
            "embedding": np.column_stack([np.cos(angle), np.sin(angle)]),
            "label": ["a", "b", "a", "a", "b"],
            "confounder": ["x", "x", "y", "y", "y"],
            "group_id": ["0", "1", "2", "3", "4"],
        }
    )
    con = croma_sql.register(duckdb.connect())
    con.register("tiles", tiles)
    hits = con.sql("""
        SELECT type, label_hit, confounder_hit FROM croma_nearest('tiles', k := 4)
        WHERE sample_id = 'anchor' ORDER BY rank
    """).fetchall()
    # Confounders: x, y, y, y; x comes first.
    assert hits == [
        ("OS", False, True),
        ("SO", False, True),
        ("SO", True, False),
        ("OO", False, False),
    ]


# Protocols, depths and errors


def test_protocols_leave_controls_out(root):
    """Each encoder at its own k*; all at the lower median over those that are no controls."""
    cohorts = {f"e{i}": random_cohort(i, n=120, groups=24, effect=0.1 * i) for i in range(5)}
    rows = cohorts["e0"]
    con = warehouse(root, {n: replace(rows, vectors=c.vectors) for n, c in cohorts.items()})
    controls = pl.DataFrame({"encoder": ["e0", "e3"], "is_control": [True, True]})
    croma_sql.import_encoders(root, controls)
    con = croma_sql.connect(root)
    grid = con.sql("FROM knn_accuracy").pl()
    assert sorted(grid["k"].unique()) == list(range(1, max(KS) + 1, 2))
    best = {
        name: min(k for _, _, k, bio, _ in of.rows() if bio == of["bio_bacc"].max())
        for (name,), of in grid.group_by("encoder")
    }
    assert len(set(best.values())) > 2
    shared = sorted(best[name] for name in ("e1", "e2", "e4"))[1]
    expected = {(n, p): k for n in best for p, k in (("k_star", best[n]), ("median_k", shared))}
    summary = con.sql("FROM fixed_k_summary").pl()
    assert {
        (e, p): k for p, _, e, k in summary.select("protocol", "benchmark", "encoder", "k").rows()
    } == expected
    one = summary.filter(pl.col("encoder") == "e2", pl.col("protocol") == "median_k").row(
        0, named=True
    )
    expected_ri = con.sql(
        "SELECT ri(n_so, n_os) FROM neighbourhoods_at($k) WHERE encoder = 'e2'",
        params={"k": shared},
    ).fetchall()[0][0]
    assert one["ri"] == expected_ri
    assert (
        one["bio_bacc"]
        == grid.filter(pl.col("encoder") == "e2", pl.col("k") == shared)["bio_bacc"][0]
    )


def test_the_lower_median_of_an_even_number(root):
    con = croma_sql.connect(croma_sql.create_warehouse(root))
    con.execute("""
        CREATE TABLE curves AS FROM (VALUES
            ('b', 'p', 3, 0.9), ('b', 'p', 5, 0.9), ('b', 'q', 9, 0.7), ('b', 'q', 7, 0.6)
        ) t(benchmark, encoder, k, bio_bacc)
    """)
    found = con.sql(
        "SELECT encoder, k_star, median_k FROM operating_points_of('curves') ORDER BY ALL"
    )
    assert found.fetchall() == [("p", 3, 3), ("q", 9, 3)]


def test_groups_of_samples_have_their_own_numbers(root):
    """RI by centre is a GROUP BY, and pooled over centres it is the whole again."""
    cohort = random_cohort(3, n=200)
    con = warehouse(root, {"e": cohort})
    by = con.sql("""
        SELECT confounder, sum(n_so)::DOUBLE AS so, sum(n_so + n_os)::DOUBLE AS typed,
            ri(n_so, n_os) AS ri, mari(log_so, log_os) AS mari, support(n_so, n_os) AS support,
            count(*) AS n
        FROM neighbourhoods_at(11) GROUP BY CUBE (confounder) ORDER BY confounder NULLS LAST
    """).pl()
    assert len(by) == 3
    *centres, whole = by.rows(named=True)
    assert whole["ri"] == pytest.approx(
        sum(c["so"] for c in centres) / sum(c["typed"] for c in centres)
    )
    assert min(c["mari"] for c in centres) < whole["mari"] < max(c["mari"] for c in centres)
    assert whole["support"] * whole["n"] == sum(c["support"] * c["n"] for c in centres)
    assert centres[0]["ri"] != centres[1]["ri"]


def test_edges_of_any_relation_have_the_same_ri(con):
    con.register("tiles", random_cohort(3, n=200).frame())
    found, weighted = con.sql("""
        SELECT ri((type = 'SO')::INTEGER, (type = 'OS')::INTEGER),
            mari(
                CASE type WHEN 'SO' THEN -distance / 0.5 END,
                CASE type WHEN 'OS' THEN -distance / 0.5 END
            )
        FROM croma_nearest('tiles', k := 11)
    """).fetchall()[0]
    kinds = con.sql("""
        SELECT type, count(*), sum(exp(-distance / 0.5))
        FROM croma_nearest('tiles', k := 11) GROUP BY type
    """)
    count = {kind: (n, weight) for kind, n, weight in kinds.fetchall()}
    assert found == count["SO"][0] / (count["SO"][0] + count["OS"][0])
    assert weighted == pytest.approx(count["SO"][1] / (count["SO"][1] + count["OS"][1]), abs=1e-12)


def test_no_evidence_is_no_number(con):
    nothing = "SELECT ri(a, a), mari(b, b), support(a, a) FROM (VALUES {}) t(a, b)"
    assert con.sql(nothing.format("(0, NULL::DOUBLE)")).fetchall() == [(None, None, 0.0)]
    assert con.sql(nothing.format("(NULL::INTEGER, NULL::DOUBLE)")).fetchall() == [
        (None, None, None)
    ]


def test_mari_where_every_weight_underflows(con):
    """exp(-2000) is 0 in float64; the share of two such is 1 / (1 + e), whatever is smaller."""
    asked = "SELECT mari(a, b) FROM (VALUES (-2001.0, -2000.0), (-9000.0, NULL)) t(a, b)"
    assert con.sql(asked).fetchall()[0][0] == pytest.approx(1 / (1 + np.e), abs=1e-15)


def test_a_pinned_tau_is_used_and_told_where_it_is_off(root):
    cohort = random_cohort(3, n=200)
    con = warehouse(root, {"e": cohort})
    scale = con.sql("SELECT any_value(tau) FROM neighbourhoods_at(11)").fetchall()[0][0]
    told = {}
    for factor in (0.2, 0.3, 1, 3.9, 4.1):
        (found,) = con.sql(
            "SELECT DISTINCT tau, tau_warning FROM neighbourhoods_at(11, tau := $tau)",
            params={"tau": scale * factor},
        ).fetchall()
        assert found[0] == scale * factor
        told[factor] = found[1]
    assert told[0.3] is told[1] is told[3.9] is None
    assert told[0.2].startswith("tau is less than a quarter of")
    assert told[4.1].startswith("tau is more than 4 times")
    text = con.sql("SELECT DISTINCT tau FROM neighbourhoods_at(11, tau := '0.1')").fetchall()
    assert text == [(0.1,)]
    for tau in ("-1", "0", "'nan'", "'inf'"):
        with pytest.raises(duckdb.Error, match="; it is a distance above 0, or left out"):
            con.sql(f"SELECT mari FROM neighbourhoods_at(11, tau := {tau})").fetchall()


@pytest.mark.parametrize("k", [0, 35, 2.5, None])
def test_a_k_that_was_not_scored_is_refused(root, k):
    con = warehouse(root, {"e": random_cohort(0, n=60)})
    expected = (
        f'k is {"NULL" if k is None else k}, but benchmark "b" was scored to a depth of 34 for '
        'encoder "e"; k can be a whole number up to 34, or score again with a larger --k'
    )
    for asked in (
        "SELECT ri(n_so, n_os) FROM neighbourhoods_at($k)",
        "SELECT count(*) FROM neighbourhoods_at($k) WHERE n_ss > 0",
        "FROM knn_accuracy_at([$k, 3])",
    ):
        with pytest.raises(duckdb.Error, match=re.escape(expected)):
            con.sql(asked, params={"k": k}).fetchall()


def test_points_may_repeat_and_go_by_any_name(root):
    """Both protocols at one k make a point twice; a relation is called as its owner likes."""
    con = warehouse(root, {"e": random_cohort(0, n=60)})
    expected = con.sql(f"FROM {points(con, 3)}").fetchall()
    for name in ("sizes", "grid", "typed", "asked", "pooled", "ranked", "points"):
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {POINT} UNION ALL {POINT}")
        assert con.sql(f"FROM fixed_k_summary_of('{name}')").fetchall() == expected
        assert con.sql(f"SELECT n FROM window_shortfall_of('{name}')").fetchall() == [(60,)]


def test_samples_without_a_vector_count_nowhere(root):
    cohort = random_cohort(0, n=60)
    tiles = cohort.frame()
    vectors = cohort.vectors.copy()
    vectors[0] = 0
    broken = replace(cohort, vectors=vectors).frame()
    croma_sql.import_embeddings(
        root, broken, encoder="e", dataset="d", samples=tiles, on_bad_vectors="null"
    )
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, k=11, on_undefined="null")
    con = croma_sql.connect(root)
    (row,) = (
        con.sql("FROM neighbourhoods_at(5) WHERE unsupported_reason = 'bad_vector'")
        .pl()
        .rows(named=True)
    )
    assert row["sample_id"] == cohort.ids[0]
    assert row["n_ss"] is row["n_so"] is row["ri"] is row["mari"] is None
    without = croma_sql.neighbours(**cohort.rows(np.arange(1, 60)).arguments(), k=5)
    counts = dict(without.group_by("type").len().rows())
    summary = con.sql(f"FROM {points(con, 5)}").pl().row(0, named=True)
    assert (summary["n"], summary["n_unusable"]) == (59, 1)
    assert summary["ri"] == counts["SO"] / (counts["SO"] + counts["OS"])
    recall = (
        without.filter(pl.col("rank") == 5)
        .join(tiles, on="sample_id")
        .group_by("label")
        .agg(pl.col("label_hit").mean())
    )
    assert summary["bio_bacc"] == pytest.approx(recall["label_hit"].mean(), abs=1e-12)


def test_windows_fall_short_as_ranks_say(root):
    cohort = random_cohort(3, n=150, effect=2)
    con = warehouse(root, {"e": cohort})
    ranks = []
    for neighbours in naive.neighbours(*cohort.columns()):
        order = [name for _, name in neighbours["ANY"]]
        ranks.append([order.index(neighbours[kind][0][1]) + 1 for kind in ("SO", "OS")])
    so, os = np.array(ranks).T
    points(con, 3)
    (row,) = con.sql("FROM window_shortfall_of('points')").pl().rows(named=True)
    nearer = np.minimum(so, os)
    assert row == {
        "benchmark": "b", "encoder": "e", "k": 3, "n": 150,
        "first_so": np.median(so), "first_os": np.median(os), "first_typed": np.median(nearer),
        "so_within_k": np.mean(so <= 3), "os_within_k": np.mean(os <= 3),
        "typed_within_k": np.mean(nearer <= 3), "shortfall": np.median(nearer) / 3,
    }  # fmt: skip
    support = con.sql("SELECT support(n_so, n_os) FROM neighbourhoods_at(3)").fetchall()[0][0]
    assert row["typed_within_k"] == support


def test_windows_fall_short_where_nobody_has_a_match(root):
    """Class 1 is under centre 1 only and class 0 under centre 0, but for one: there is no SO."""
    cohort = random_cohort(0, n=60)
    label = np.where(cohort.confounder == "centre0", "class0", "class1")
    label[np.flatnonzero(cohort.confounder == "centre0")[0]] = "class2"
    con = warehouse(root, {"e": replace(cohort, label=label)})
    points(con, 3)
    (row,) = con.sql("FROM window_shortfall_of('points')").pl().rows(named=True)
    assert row["first_so"] is None
    assert row["so_within_k"] == 0
    assert row["typed_within_k"] == row["os_within_k"]
    asked = "SELECT count(*) FROM first_ranks WHERE first_so_rank IS NULL AND first_os_rank <= 3"
    assert row["os_within_k"] == con.sql(asked).fetchall()[0][0] / 60 > 0


def test_ranks_that_were_not_scored_are_null(root):
    tiles = random_cohort(3, n=60).frame()
    croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", samples=tiles)
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, k=11)
    (row,) = croma_sql.connect(root).sql("FROM window_shortfall").pl().rows(named=True)
    assert row["n"] == 60
    assert {
        value for name, value in row.items() if name not in ("benchmark", "encoder", "k", "n")
    } == {None}
