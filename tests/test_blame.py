"""Who supplies distractors, who is a hub, and how margins are distributed, against plain loops."""

import re
from collections import Counter

import naive
import numpy as np
import polars as pl
import pytest
from cohorts import random_cohort

import croma_sql

SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"
TWICE = """
    SELECT sample_id, label, confounder, group_id, subset
    FROM (SELECT *, unnest(['all', 'odd']) AS subset FROM samples)
    WHERE subset = 'all' OR right(sample_id, 1) IN ('1', '3', '5', '7', '9')
"""


@pytest.fixture
def cohort():
    return random_cohort(3, n=120, labels=3, confounders=2, groups=24)


def warehouse(root, cohort, select=SELECT):
    tiles = cohort.frame().with_columns(age=pl.Series(np.arange(len(cohort.ids)) % 7))
    croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", samples=tiles)
    croma_sql.add_benchmark(root, "b", select)
    croma_sql.score(root, on_undefined="null")
    return croma_sql.connect(root)


def naive_edges(cohort, m):
    """(type, anchor, neighbour, distance) by row."""
    place = {str(name): i for i, name in enumerate(cohort.ids)}
    return [
        (kind, i, place[name], distance)
        for i, neighbours in enumerate(naive.neighbours(*cohort.columns()))
        for kind in ("SO", "OS")
        for distance, name in neighbours[kind][:m]
    ]


@pytest.mark.parametrize("m", [1, 5])
def test_cells_that_supply_neighbours(root, cohort, m):
    cells = list(zip(cohort.label, cohort.confounder, strict=True))
    sizes, edges = Counter(cells), naive_edges(cohort, m)
    counts = Counter((kind, *cells[i], *cells[j]) for kind, i, j, _ in edges)
    of_cell = Counter((kind, *cells[i]) for kind, i, *_ in edges)
    found = warehouse(root, cohort).sql("FROM suppliers_at($m)", params={"m": m}).pl()
    assert len(found) == 6 * (1 + 2)  # each cell: SO from one other centre, OS from two labels
    for row in found.rows(named=True):
        cell = (row["label"], row["confounder"])
        other = (row["neighbour_label"], row["neighbour_confounder"])
        kind = row["type"]
        rivals = [
            c for c in sizes
            if (c[0] == cell[0]) == (kind == "SO") and (c[1] == cell[1]) == (kind == "OS")
        ]  # fmt: skip
        assert row["n"] == counts[kind, *cell, *other]
        assert row["share"] == pytest.approx(row["n"] / of_cell[kind, *cell])
        expected = sizes[other] / sum(sizes[c] for c in rivals)
        assert row["expected_share"] == pytest.approx(expected)
        assert row["lift"] == pytest.approx(row["share"] / expected)
        distances = [
            d for k, i, j, d in edges if k == kind and cells[i] == cell and cells[j] == other
        ]
        assert row["distance"] == pytest.approx(np.mean(distances), abs=1e-12)


def test_a_planted_distractor_is_found(root, cohort):
    """Tiles of class2 under centre0 are moved to where class0 under centre0 lies."""
    vectors = cohort.vectors.copy()
    moved = (cohort.label == "class2") & (cohort.confounder == "centre0")
    home = (cohort.label == "class0") & (cohort.confounder == "centre0")
    vectors[moved] += vectors[home].mean(axis=0) - vectors[moved].mean(axis=0)
    planted = type(cohort)(vectors, *cohort.columns()[1:])
    worst = warehouse(root, planted).sql("""
        SELECT label, confounder, neighbour_label FROM suppliers_at(5)
        WHERE type = 'OS' ORDER BY lift DESC LIMIT 2
    """)
    assert sorted(worst.fetchall()) == [
        ("class0", "centre0", "class2"),
        ("class2", "centre0", "class0"),
    ]


def test_hubs(root, cohort):
    edges = naive_edges(cohort, 5)
    times = {kind: Counter(j for k, _, j, _ in edges if k == kind) for kind in ("SO", "OS")}
    found = warehouse(root, cohort).sql("FROM hubs_at(5)").pl()
    place = {str(name): i for i, name in enumerate(cohort.ids)}
    assert len(found) == 120
    for row in found.rows(named=True):
        i = place[row["sample_id"]]
        assert (row["n_so"], row["n_os"]) == (times["SO"][i], times["OS"][i])
        assert row["os_lift"] == pytest.approx(times["OS"][i] / (times["OS"].total() / 120))
        assert row["age"] == i % 7
    assert found["so_lift"].mean() == pytest.approx(1)


def test_subsets_are_scopes_of_their_own(root, cohort):
    """What a subset supplies is added to what others do; a hub is one of its subset."""
    con = warehouse(root, cohort, TWICE)
    odd = cohort.rows(np.flatnonzero([int(name[-1]) % 2 for name in cohort.ids]))
    whole, part = naive_edges(cohort, 5), naive_edges(odd, 5)
    assert con.sql("SELECT sum(n) FROM suppliers_at(5)").fetchall() == [(len(whole) + len(part),)]
    times = Counter(str(odd.ids[j]) for kind, _, j, _ in part if kind == "OS")
    found = con.sql("SELECT sample_id, n_os FROM hubs_at(5) WHERE subset = 'odd'").fetchall()
    assert dict(found) == {str(name): times[str(name)] for name in odd.ids}


def test_an_m_that_was_not_scored_is_refused(root, cohort):
    con = warehouse(root, cohort)
    for asked in (
        "SELECT sum(n) FROM suppliers_at(21)",
        "SELECT sum(n_os) FROM hubs_at(21)",
        "SELECT max(density) FROM margin_histogram_at(21)",
        "SELECT f0 FROM encoder_summary_at(21)",
    ):
        with pytest.raises(Exception, match=r"m can be a whole number up to 20, or score again"):
            con.sql(asked).fetchall()


def test_histogram(root, cohort):
    con = warehouse(root, cohort)
    margins = con.sql("SELECT margin FROM margins_at(3)").pl()["margin"].drop_nulls().to_numpy()
    found = con.sql("FROM margin_histogram_at(3, bins := 16) ORDER BY bin").pl()
    counts, edges = np.histogram(margins, bins=16, range=(-1, 1))
    density, _ = np.histogram(margins, bins=16, range=(-1, 1), density=True)
    assert found["n"].to_list() == counts.tolist()
    assert found["lo"].to_list() == edges[:-1].tolist()
    assert found["hi"].to_list() == edges[1:].tolist()
    assert found["density"].to_list() == pytest.approx(density.tolist())
    assert found["at_most"].to_list() == pytest.approx((counts.cumsum() / len(margins)).tolist())


def test_bins_hold_their_lower_edge(con):
    values = [-1.0, -0.5, 0.499, 0.5, 1.0, None, np.nan, 1.1]
    asked = "SELECT list(croma_bin(x, 4)) FROM (SELECT unnest($values::DOUBLE[]) AS x)"
    found = con.sql(asked, params={"values": values}).fetchall()
    assert found == [([0, 1, 2, 3, 3, None, None, None],)]


@pytest.mark.parametrize("bins", [1, 7, 200, 1000])
def test_every_bin_holds_its_lower_edge(con, bins):
    off = "SELECT count(*) FROM range($bins) t(i) WHERE croma_bin(2 * i / $bins - 1, $bins) <> i"
    assert con.sql(off, params={"bins": bins}).fetchall() == [(0,)]


@pytest.mark.parametrize("bins", [0, -3, 2.5])
def test_bins_that_make_no_sense(root, cohort, bins):
    expected = f"bins is {bins}; it is a whole number of at least 1"
    con = warehouse(root, cohort)
    for asked in ("SELECT croma_bin(0.5, $bins)", "FROM margin_histogram_at(5, bins := $bins)"):
        with pytest.raises(Exception, match=re.escape(expected)):
            con.sql(asked, params={"bins": bins}).fetchall()


def test_summaries_at_any_m(root, cohort):
    con = warehouse(root, cohort)
    for m in (1, 20):
        asked = "SELECT n, n_undefined, croma, f0, ltm10 FROM encoder_summary_at($m)"
        rows = [naive.margin(row, m)[2] for row in naive.neighbours(*cohort.columns())]
        defined = [x for x in rows if x is not None]
        expected = (
            120,
            120 - len(defined),
            np.median(defined),
            naive.f0(rows),
            naive.ltm(rows, 0.1),
        )
        assert con.sql(asked, params={"m": m}).fetchall()[0] == pytest.approx(expected, abs=1e-12)
