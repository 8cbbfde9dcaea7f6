"""Encoders compared in SQL: frontiers, mean ranks, rank correlations, odds."""

import math

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import croma_sql

COLUMNS = {
    "benchmark": pl.String, "encoder": pl.String, "croma": pl.Float64, "ltm10": pl.Float64,
    "is_control": pl.Boolean,
}  # fmt: skip


@pytest.fixture(scope="module")
def con():
    with croma_sql.register(duckdb.connect()) as connection:
        yield connection


def results(*rows):
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def of_one(*rows):
    """One benchmark: encoder, croma, ltm10, and whether it is a control."""
    return results(*(("b", *row, *[False] * (4 - len(row))) for row in rows))


def frontier(con, frame):
    """By benchmark and encoder: both ranks, and whether it is on the frontier."""
    con.register("t", frame)
    found = con.sql("""
        SELECT benchmark, encoder, croma_rank, ltm10_rank, on_frontier FROM croma_frontier('t')
        ORDER BY benchmark, encoder
    """).fetchall()
    return {row[:2]: row[2:] for row in found}


def mean_ranks(con, frame):
    con.register("t", frame)
    found = con.sql("""
        SELECT encoder, n_benchmarks, croma_rank, ltm10_rank, mean_rank, on_frontier
        FROM croma_mean_ranks('t')
    """).fetchall()
    return {row[0]: row[1:] for row in found}


# The definitions, in loops


def is_placed(row):
    return not any(value is None or math.isnan(value) for value in row[2:4])


def naive_rank(value, values):
    return sum(x > value for x in values) + (1 + sum(x == value for x in values)) / 2


def naive_dominated(point, points):
    return any(all(a >= b for a, b in zip(other, point, strict=True)) and other != point
               for other in points)  # fmt: skip


def naive_frontier(rows):
    found = {}
    for benchmark, encoder, croma, ltm10, is_control in rows:
        rivals = [r[2:4] for r in rows if r[0] == benchmark and is_placed(r) and not r[4]]
        if is_control:
            found[benchmark, encoder] = (None, None, False)
        elif (croma, ltm10) not in rivals:
            found[benchmark, encoder] = (None, None, None)
        else:
            found[benchmark, encoder] = (
                naive_rank(croma, [x for x, _ in rivals]),
                naive_rank(ltm10, [y for _, y in rivals]),
                not naive_dominated((croma, ltm10), rivals),
            )
    return found


def naive_mean_ranks(rows):
    encoders = {row[1] for row in rows}
    controls = {row[1] for row in rows if row[4]}
    places = {e: {r[0] for r in rows if r[1] == e and is_placed(r)} for e in encoders}
    benchmarks = set().union(*(places[encoder] for encoder in encoders - controls))
    ranked = {e for e in encoders - controls if places[e] == benchmarks and benchmarks}
    ranks = naive_frontier([r for r in rows if r[1] in ranked])
    means = {
        e: tuple(math.fsum(ranks[b, e][i] for b in benchmarks) / len(benchmarks) for i in (0, 1))
        for e in ranked
    }
    minus = {e: (-x, -y) for e, (x, y) in means.items()}
    return {
        e: (
            len(places[e]),
            *means.get(e, (None, None)),
            sum(means[e]) / 2 if e in means else None,
            not naive_dominated(minus[e], minus.values())
            if e in means
            else False
            if e in controls
            else None,
        )
        for e in encoders
    }


# Frontier and ranks within a benchmark


def test_who_is_dominated_and_who_is_not(con):
    """b ties with c on one axis and is better on the other; d repeats a and so does not beat it.

    Of croma 0.4, 0.4, 0.3, 0.3, 0.1, the first two share the ranks 1 and 2.
    """
    frame = of_one(("a", 0.4, -0.3), ("b", 0.3, -0.1), ("c", 0.3, -0.2), ("d", 0.4, -0.3),
                   ("e", 0.1, -0.1))  # fmt: skip
    assert frontier(con, frame) == {
        ("b", "a"): (1.5, 4.5, True),
        ("b", "b"): (3.5, 1.5, True),
        ("b", "c"): (3.5, 3.0, False),
        ("b", "d"): (1.5, 4.5, True),
        ("b", "e"): (5.0, 1.5, False),
    }


def test_controls_are_shown_and_beat_nobody(con):
    frame = of_one(("best", 0.9, 0.1, True), ("a", 0.4, -0.3), ("b", 0.3, -0.4))
    assert frontier(con, frame) == {
        ("b", "a"): (1.0, 1.0, True),
        ("b", "b"): (2.0, 2.0, False),
        ("b", "best"): (None, None, False),
    }
    shown = con.sql("SELECT croma, ltm10 FROM croma_frontier('t') WHERE is_control").fetchall()
    assert shown == [(0.9, 0.1)]


@pytest.mark.parametrize("undefined", [None, math.nan])
def test_what_is_undefined_takes_no_part(con, undefined):
    frame = of_one(("a", 0.4, -0.3), ("half", 0.9, undefined), ("none", undefined, undefined))
    assert frontier(con, frame) == {
        ("b", "a"): (1.0, 1.0, True),
        ("b", "half"): (None, None, None),
        ("b", "none"): (None, None, None),
    }
    croma = con.sql("SELECT croma, ltm10 FROM croma_frontier('t') WHERE encoder = 'none'")
    assert croma.fetchall() == [(None, None)]


def test_one_encoder_only_controls_and_nobody(con):
    assert frontier(con, of_one(("a", -0.9, -1.0))) == {("b", "a"): (1.0, 1.0, True)}
    assert frontier(con, of_one(("c", 0.1, 0.0, True))) == {("b", "c"): (None, None, False)}
    assert mean_ranks(con, of_one(("c", 0.1, 0.0, True))) == {"c": (1, None, None, None, False)}
    assert frontier(con, of_one()) == mean_ranks(con, of_one()) == {}


values = st.one_of(st.sampled_from([None, math.nan, 0.0, -0.0, 0.5, -0.5, 0.25]), st.floats(-1, 1))
tables = st.lists(
    st.tuples(
        st.sampled_from(["one", "two", "it's", None]), st.sampled_from("abcdefgh"), values, values,
        st.sampled_from([False, False, False, True]),
    ),
    max_size=40,
    unique_by=lambda row: row[:2],
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(rows=tables)
def test_ranks_and_frontiers_are_those_of_the_reference(con, rows):
    assert frontier(con, results(*rows)) == naive_frontier(rows)


panels = st.lists(st.tuples(values, values), min_size=16, max_size=16)


@settings(max_examples=20, deadline=None)
@given(rows=tables, panel=panels)
def test_mean_ranks_are_those_of_the_reference(con, rows, panel):
    """Of any table, and of one in which both benchmarks have every encoder, so that some rank."""
    keys = [(benchmark, encoder) for benchmark in ("one", "two") for encoder in "abcdefgh"]
    whole = [(*key, *point, False) for key, point in zip(keys, panel, strict=True)]
    for table in (rows, whole):
        found, expected = mean_ranks(con, results(*table)), naive_mean_ranks(table)
        assert found.keys() == expected.keys()
        for encoder, row in found.items():
            assert row == pytest.approx(expected[encoder], abs=1e-12), encoder


def test_any_relation_and_columns_of_any_name(con, tmp_path):
    frame = results(("one", 'it\'s "a"', 0.4, -0.3, False), ("one", "b", 0.3, -0.4, False))
    expected = frontier(con, frame)
    odd = frame.rename({"encoder": "select", "croma": "median 'm'", "ltm10": "placed"})
    odd = odd.drop("is_control").with_columns(competes=1, results=2, croma=3)
    path = tmp_path / "it's.parquet"
    odd.write_parquet(path)
    con.register("results", odd)
    for name in ("results", str(path)):
        found = con.execute(
            """
            SELECT benchmark, encoder, croma_rank, ltm10_rank, on_frontier
            FROM croma_frontier($name, encoder := 'select', croma := 'median ''m''',
                                ltm10 := 'placed', is_control := NULL)
            """,
            {"name": name},
        ).fetchall()
        assert {row[:2]: row[2:] for row in found} == expected
    con.execute("CREATE VIEW ranked AS FROM croma_frontier('t')")
    for relation in ("ranked", "complete"):
        found = con.sql(f"""
            WITH complete AS (SELECT * EXCLUDE (benchmark) FROM ranked)
            SELECT encoder, mean_rank, n_benchmarks
            FROM croma_mean_ranks('{relation}', benchmark := NULL) ORDER BY mean_rank
        """).fetchall()
        assert found == [('it\'s "a"', 1.0, 1), ("b", 2.0, 1)]


def test_a_column_that_is_not_there(con):
    con.register("t", of_one(("a", 0.4, -0.3)).drop("is_control"))
    with pytest.raises(duckdb.BinderException, match=r'key "is_control" in struct(?s:.*)"croma"'):
        con.sql("FROM croma_frontier('t')")


def test_the_sort_order_of_the_session_changes_nothing():
    con = croma_sql.register(duckdb.connect())
    con.execute("SET default_order = 'desc'")
    con.execute("SET default_null_order = 'nulls_first'")
    frame = of_one(("a", 0.1, -0.1), ("b", None, None), ("c", 0.1, -0.2), ("d", 0.3, -0.3))
    assert frontier(con, frame) == naive_frontier(frame.rows())
    pairs = [(1.0, 2.0), (2.0, 1.0), (3.0, 5.0), (3.0, 5.0), (4.0, 7.0)]
    con.register("p", pl.DataFrame(pairs, schema=["x", "y"], orient="row"))
    ((found,),) = con.sql("SELECT spearman(x, y) FROM p").fetchall()
    assert found == pytest.approx(spearmanr(pairs).statistic, abs=1e-12)


# Over several benchmarks


def test_mean_ranks_over_two_benchmarks(con):
    """a is 1st and 3rd by croma, b 2nd and 1st, c 3rd and 2nd; d was scored on one only.

    By ltm10, a is 1st twice, b 2nd and 3rd, c 3rd and 2nd. So c is dominated by b, with which it
    ties on the tail, and d takes no rank from anybody.
    """
    frame = results(
        ("one", "a", 0.5, -0.1, False), ("one", "b", 0.4, -0.2, False),
        ("one", "c", 0.3, -0.3, False), ("one", "d", 0.9, 0.2, False),
        ("two", "a", 0.1, -0.1, False), ("two", "b", 0.3, -0.3, False),
        ("two", "c", 0.2, -0.2, False), ("two", "control", 0.9, 0.9, True),
    )  # fmt: skip
    assert mean_ranks(con, frame) == {
        "a": (2, 2.0, 1.0, 1.5, True),
        "b": (2, 1.5, 2.5, 2.0, True),
        "c": (2, 2.5, 2.5, 2.5, False),
        "d": (1, None, None, None, None),
        "control": (1, None, None, None, False),
    }


def test_an_encoder_that_stands_twice_in_a_benchmark(con):
    con.register("t", of_one(("it's", 0.4, -0.3), ("it's", 0.5, -0.3)))
    with pytest.raises(duckdb.Error, match='croma_mean_ranks: encoder "it\'s" stands in several'):
        con.sql("FROM croma_mean_ranks('t')").fetchall()


# Odds and boosts


def test_odds_are_the_ratio_of_distances(con):
    odds = con.sql("""
        SELECT croma_odds(croma_margin(d_so, d_os))
        FROM (VALUES (0.2, 0.2), (0.2, 0.4), (0.4, 0.1), (0.3, 0.0)) t(d_so, d_os)
    """).fetchall()
    assert [value for (value,) in odds] == pytest.approx([1.0, 2.0, 0.25, 0.0], abs=1e-12)
    for nothing in ("1", "NULL", "'nan'", "-1.1", "1.1"):
        assert con.sql(f"SELECT croma_odds({nothing}::DOUBLE)").fetchall() == [(None,)]


# Grisi et al. 2026, table 10: median on Tolkach-ESCA, on its TCGA extension, and the boost
PUBLISHED_BOOST = {
    "Midnight-12k": (0.60, 0.82, 2.50), "H0-mini": (0.38, 0.53, 1.47),
    "Virchow": (0.37, 0.52, 1.45), "Virchow2": (0.37, 0.51, 1.44), "Hibou-L": (0.12, 0.28, 1.41),
    "UNI2-h": (0.23, 0.38, 1.39), "GenBio-PathFM": (0.41, 0.53, 1.37), "GPFM": (0.24, 0.38, 1.37),
    "Prost40M": (0.14, 0.28, 1.36), "Phikon": (0.17, 0.31, 1.35),
    "H-optimus-0": (0.24, 0.37, 1.32), "MUSK": (0.30, 0.42, 1.32),
    "Phikon-v2": (0.13, 0.26, 1.31), "mSTAR": (0.20, 0.32, 1.28),
    "Prov-GigaPath": (0.13, 0.24, 1.26), "H-optimus-1": (0.27, 0.38, 1.26),
    "CONCH": (0.44, 0.52, 1.24), "CONCHv1.5": (0.41, 0.49, 1.22), "Hibou-B": (0.14, 0.23, 1.22),
    "UNI": (0.18, 0.25, 1.17), "DINOv2-B": (0.17, 0.27, 1.21),
}  # fmt: skip


def test_published_boosts(con):
    """As far as medians printed to two digits can tell."""
    bounds = []
    for shift in (-0.005, 0.005):
        rows = [
            (tcga, encoder, medians[tcga] + (shift if tcga else -shift))
            for encoder, medians in PUBLISHED_BOOST.items()
            for tcga in (False, True)
        ]
        con.register("t", pl.DataFrame(rows, schema=["tcga", "model", "croma"], orient="row"))
        found = con.sql("""
            SELECT encoder, boost
            FROM croma_boost('t', true, false, benchmark := 'tcga', encoder := 'model')
        """).fetchall()
        bounds.append(dict(found))
    least, most = bounds
    for encoder, (*_, boost) in PUBLISHED_BOOST.items():
        assert least[encoder] - 0.005 <= boost <= most[encoder] + 0.005
        assert most[encoder] - least[encoder] < 0.1 * boost


def test_boost_of_two_cohorts(con):
    """Medians 1/3 and 0 are odds of 2 and 1; -1/3 and -1/2 are 1/2 and 1/3."""
    con.register(
        "t",
        results(
            ("seen", "a", 1 / 3, None, None), ("new", "a", 0.0, None, None),
            ("seen", "b", -1 / 3, None, None), ("new", "b", -0.5, None, None),
            ("seen", "only seen", 0.5, None, None), ("new", "only new", 0.5, None, None),
            ("seen", "none", math.nan, None, None), ("new", "none", 0.1, None, None),
            ("seen", "lost", 0.1, None, None), ("new", "lost", -1.0, None, None),
            ("other", "elsewhere", 0.5, None, None), ("other", "a", 0.5, None, None),
        ),
    )  # fmt: skip
    found = {row[0]: row[1:] for row in con.sql("FROM croma_boost('t', 'seen', 'new')").fetchall()}
    assert found.pop("a") == pytest.approx((1 / 3, 0.0, 2.0))
    assert found.pop("b") == pytest.approx((-1 / 3, -0.5, 1.5))
    assert found == {
        "only seen": (0.5, None, None),
        "only new": (None, 0.5, None),
        "none": (None, 0.1, None),
        "lost": (0.1, -1.0, None),
        "elsewhere": (None, None, None),
    }


@pytest.mark.parametrize(
    ("exposed", "unexposed", "message"),
    [
        ("tcga", "new", "no row is of cohort 'tcga'; exposed is a value of column benchmark"),
        ("new", None, "croma_boost: no row is of cohort NULL; unexposed"),
        ("new", "twice", "croma_boost: encoder 'a' stands in several rows of one cohort"),
    ],
)
def test_boosts_that_cannot_be_told(con, exposed, unexposed, message):
    rows = [(cohort, "a", 0.1, None, None) for cohort in ("new", "twice", "twice")]
    con.register("t", results(*rows))
    with pytest.raises(duckdb.Error, match=message):
        con.execute("FROM croma_boost('t', $1, $2)", [exposed, unexposed]).fetchall()


# Rank correlation

pairs = st.lists(st.tuples(values, values), max_size=40)


@settings(max_examples=50, deadline=None)
@given(rows=pairs)
def test_spearman_is_that_of_scipy(con, rows):
    defined = [pair for pair in rows if is_placed((None, None, *pair))]
    con.register("t", pl.DataFrame(rows, schema={"x": pl.Float64, "y": pl.Float64}, orient="row"))
    ((found,),) = con.sql("SELECT spearman(x, y) FROM t").fetchall()
    if any(len(set(side)) < 2 for side in zip(*defined, strict=True)) or not defined:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(defined).statistic, abs=1e-12)


def test_spearman_is_an_aggregate_in_every_sense(con):
    """Of a, 1 2 3 against 2 1 3: 1 - 6 * 2 / (3 * 8) = 0.5."""
    con.execute("""
        CREATE OR REPLACE TABLE groups AS FROM (VALUES
            ('a', 1, 2), ('a', 2, 1), ('a', 3, 5), ('a', NULL, 9), ('b', 3, 5), ('b', 2, 7),
            ('c', 1, 1)
        ) t(g, x, y)
    """)
    assert con.sql("""
        SELECT g, spearman(x, y) FROM groups GROUP BY CUBE (g) HAVING spearman(x, y) IS NOT NULL
        ORDER BY spearman(x, y) DESC
    """).fetchall() == [
        (None, pytest.approx(spearmanr([1, 2, 3, 3, 2, 1], [2, 1, 5, 5, 7, 1]).statistic)),
        ("a", 0.5),
        ("b", -1.0),
    ]
    over = con.sql("SELECT DISTINCT g, spearman(x, y) OVER (PARTITION BY g) FROM groups ORDER BY g")
    assert over.fetchall() == [("a", 0.5), ("b", -1.0), ("c", None)]


def test_spearman_of_many_ties(con):
    con.execute("CREATE TABLE many AS SELECT hash(i) % 50 AS x, hash(i, 1) % 7 + x // 9 AS y "
                "FROM range(20000) r(i)")  # fmt: skip
    pairs = con.sql("FROM many").pl().to_numpy().astype(float)
    ((found,),) = con.sql("SELECT spearman(x, y) FROM many").fetchall()
    assert found == pytest.approx(spearmanr(pairs).statistic, abs=1e-12)
