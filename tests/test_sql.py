"""What only SQL users see: the macros, their registration, and what they may be used in."""

import math
import threading

import duckdb
import naive
import numpy as np
import polars as pl
import pytest
from cohorts import random_cohort
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

import croma_sql

TILES = """
    CREATE TABLE tiles AS FROM (VALUES
        (1, [1.0, 0.0], 'a', 'x', 1), (2, [0.8, 0.6], 'a', 'y', 2),
        (3, [0.0, 1.0], 'b', 'x', 3), (4, [0.6, 0.8], 'b', 'y', 4)
    ) t(sample_id, embedding, label, confounder, group_id)
"""


@pytest.fixture
def tiles(con):
    con.execute(TILES)
    return con


def rows(relation):
    return sorted(relation.fetchall())


def test_margin_of_hand_derived_values(tiles):
    """Sample 1: SO is 2 at 1 - 0.8, OS is 3 at 1 - 0, so (1 - 0.2) / (1 + 0.2) = 2/3.

    Sample 2: SO is 1 at 0.2, OS is 4 at 1 - (0.48 + 0.48) = 0.04, so (0.04 - 0.2) / 0.24 = -2/3.
    """
    found = rows(
        tiles.sql("SELECT sample_id, d_so, d_os, margin FROM croma_margins('tiles', m := 1)")
    )
    expected = [
        (1, 0.2, 1.0, 2 / 3),
        (2, 0.2, 0.04, -2 / 3),
        (3, 0.2, 1.0, 2 / 3),
        (4, 0.2, 0.04, -2 / 3),
    ]
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-15)


def test_columns_keep_their_types(tiles):
    types = dict(
        tiles.execute(
            "SELECT column_name, column_type FROM (DESCRIBE FROM croma_margins('tiles'))"
        ).fetchall()
    )
    assert types == {
        "sample_id": "INTEGER", "label": "VARCHAR", "confounder": "VARCHAR", "group_id": "INTEGER",
        "d_so": "DOUBLE", "d_os": "DOUBLE", "margin": "DOUBLE", "undefined_reason": "VARCHAR",
        "scope": "VARCHAR",
    }  # fmt: skip


def test_any_relation_will_do(tiles, tmp_path):
    expected = rows(tiles.sql("FROM croma_margins('tiles', m := 1)"))
    path = str(tmp_path / "it's here.parquet")
    tiles.sql("FROM tiles").write_parquet(path)
    tiles.execute("CREATE VIEW a_view AS FROM tiles")
    tiles.execute("""CREATE TABLE "odd "" name" AS FROM tiles""")
    tiles.register("a_frame", tiles.sql("FROM tiles").pl())
    for relation in ("a_view", '"odd "" name"', "a_frame", path):
        found = tiles.sql("FROM croma_margins($r, m := 1)", params={"r": relation})
        assert rows(found) == expected
    assert rows(tiles.sql("WITH c AS (FROM tiles) FROM croma_margins('c', m := 1)")) == expected
    assert rows(tiles.sql("FROM croma_margins(tiles, m := 1)")) == expected


def test_columns_of_any_name(tiles):
    tiles.execute("""
        CREATE TABLE odd AS
        SELECT sample_id AS "tile id", embedding AS "vec'tor", label AS "Klasse ä",
            confounder AS "select", group_id AS "g""g"
        FROM tiles
    """)
    found = tiles.sql("""
        FROM croma_margins('odd', m := 1, sample_id := 'tile id', embedding := 'vec''tor',
                           label := 'Klasse ä', confounder := 'select', group_id := 'g"g')
    """)
    assert rows(found) == rows(tiles.sql("FROM croma_margins('tiles', m := 1)"))


def test_vectors_of_any_sql_type(tiles):
    expected = rows(tiles.sql("SELECT sample_id, margin FROM croma_margins('tiles', m := 1)"))
    for vector in (
        "embedding::DOUBLE[]",
        "embedding::DOUBLE[2]",
        "embedding::DECIMAL(3, 1)[]",
        "[10 * x FOR x IN embedding]::TINYINT[]",
        "[10 * x FOR x IN embedding]::BIGINT[]",
    ):
        tiles.execute(
            f"CREATE OR REPLACE VIEW v AS SELECT * REPLACE ({vector} AS embedding) FROM tiles"
        )
        found = rows(tiles.sql("SELECT sample_id, margin FROM croma_margins('v', m := 1)"))
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_by_scores_each_group_by_itself(con, monkeypatch):
    """Six encoders of one cohort, with ids that repeat, on four DuckDB threads and the pool."""
    monkeypatch.setattr("croma_sql.udfs.neighbours.search.WORTH_SPREADING", 0)
    cohorts = {f"encoder {seed}": random_cohort(seed, n=120) for seed in range(6)}
    con.execute("SET threads = 4")
    con.register(
        "tiles",
        pl.concat(
            cohort.frame().with_columns(encoder=pl.lit(name)) for name, cohort in cohorts.items()
        ),
    )
    found = con.sql("FROM croma_margins('tiles', by := 'encoder')").pl()
    assert len(found) == 720
    for name, cohort in cohorts.items():
        alone = croma_sql.margins(**cohort.arguments()).sort("sample_id")
        assert found.filter(scope=name).sort("sample_id")["margin"].equals(alone["margin"])


def test_thousands_of_scopes_on_many_threads(con):
    con.execute(TILES)
    con.execute("SET threads = 4")
    con.execute("CREATE TABLE many AS SELECT *, scope FROM tiles, range(3000) r(scope)")
    found = con.sql("""
        SELECT sample_id, count(*), count(DISTINCT margin), any_value(margin)
        FROM croma_margins('many', m := 1, by := 'scope') GROUP BY sample_id
    """)
    expected = rows(con.sql("SELECT sample_id, margin FROM croma_margins('tiles', m := 1)"))
    assert rows(found) == [(sample, 3000, 1, margin) for sample, margin in expected]


def test_two_python_threads_on_two_cursors(con, monkeypatch):
    """Each search spreads over the pool, one after the other, and BLAS is as it was."""
    monkeypatch.setattr("croma_sql.udfs.neighbours.search.WORTH_SPREADING", 0)
    before = threadpool_info()
    cohort = random_cohort(0, n=900, d=64)
    con.register("frame", cohort.frame())
    con.execute("CREATE TABLE tiles AS FROM frame")
    query = "SELECT sample_id, margin FROM croma_margins('tiles') ORDER BY sample_id"
    expected = con.execute(query).fetchall()
    results = {}

    def work(name, cursor):
        results[name] = [cursor.execute(query).fetchall() for _ in range(3)]

    workers = [threading.Thread(target=work, args=(name, con.cursor())) for name in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == {0: [expected] * 3, 1: [expected] * 3}
    assert threadpool_info() == before


def test_undefined_margins_are_null_with_a_reason(con):
    con.execute("""
        CREATE TABLE t AS FROM (VALUES
            ('s1', [1, 0], 'a', 'x', 'g1'), ('s2', [1, 0], 'a', 'y', 'g2'),
            ('s3', [1, 0], 'b', 'x', 'g3'), ('s4', [0, 1], 'b', 'z', 'g4'),
            ('s5', [0, 1], 'c', 'w', 'g5'), ('s6', NULL,   'a', 'x', 'g6')
        ) t(sample_id, embedding, label, confounder, group_id)
    """)
    found = con.sql("FROM croma_margins('t', m := 1, on_bad_vectors := 'null')").pl()
    assert found.sort("sample_id").select("margin", "undefined_reason").rows() == [
        (None, "zero_distance"),
        (None, "too_few_os"),
        (0.0 - 1.0, None),
        (None, "too_few_os"),
        (None, "too_few_so_and_os"),
        (None, "bad_vector"),
    ]
    dropped = con.sql("FROM croma_margins('t', m := 1, on_bad_vectors := 'drop')").pl()
    assert dropped["sample_id"].sort().to_list() == ["s1", "s2", "s3", "s4", "s5"]


margins = st.lists(
    st.one_of(st.none(), st.just(math.nan), st.floats(-1, 1), st.sampled_from([-0.5, 0.0, 0.5])),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(values=margins, alpha=st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.5, 1.0]))
def test_f0_and_ltm_are_those_of_the_reference_in_sql_and_polars(values, alpha):
    with croma_sql.register(duckdb.connect()) as con:
        found = con.execute(
            "SELECT f0(x), ltm(x, $alpha) FROM (SELECT unnest($values::DOUBLE[]) AS x)",
            {"values": values, "alpha": alpha},
        ).fetchall()[0]
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})
    expressions = frame.select(f0=pl.col("x").croma.f0(), ltm=pl.col("x").croma.ltm(alpha))
    expected = naive.f0(values), naive.ltm(values, alpha)
    assert found == pytest.approx(expected, abs=1e-15)
    assert expressions.row(0) == pytest.approx(expected, abs=1e-15)


def test_f0_and_ltm_are_aggregates_in_every_sense(con):
    con.execute("""
        CREATE TABLE t AS FROM (VALUES
            ('a', 'x', -0.5), ('a', 'x', 0.5), ('a', 'y', 0.0), ('b', 'x', 0.25), ('b', 'y', NULL)
        ) t(label, centre, margin)
    """)
    cube = con.sql("""
        SELECT label, centre, f0(margin), ltm(margin, 0.5) FROM t GROUP BY CUBE (label, centre)
        HAVING count(margin) > 1 AND f0(margin) > 0 ORDER BY ltm(margin, 0.5), f0(margin)
    """)
    assert cube.fetchall() == [
        ("a", "x", 0.5, -0.5),  # of -0.5, 0.5, half the mass is at or below 0
        (None, None, 0.5, -0.25),  # of -0.5, 0, 0.25, 0.5 below 0.125
        ("a", None, 2 / 3, -0.25),  # of -0.5, 0, 0.5 at or below 0
        (None, "x", 1 / 3, -0.125),  # of -0.5, 0.25, 0.5 at or below 0.25
    ]
    having = con.sql("""
        SELECT label, ltm(margin, 0.05) AS tail FROM t GROUP BY ALL
        HAVING tail > -0.75 AND ltm(margin) < 0
        ORDER BY ltm(margin) DESC, rank() OVER (ORDER BY ltm(margin))
    """)
    assert having.fetchall() == [("a", -0.5)]
    over = con.sql("""
        SELECT DISTINCT label, f0(margin) OVER w, ltm(margin) OVER w
        FROM t WINDOW w AS (PARTITION BY label)
    """)
    assert rows(over) == [("a", 2 / 3, -0.5), ("b", 0.0, 0.25)]
    undefined = con.sql("SELECT f0(margin), ltm(margin) FROM t WHERE margin IS NULL GROUP BY label")
    assert rows(undefined) == [(None, None)]


@pytest.mark.parametrize("alpha", ["-0.1", "1.5", "NULL"])
def test_ltm_is_null_for_an_alpha_that_is_no_fraction(con, alpha):
    assert rows(con.sql(f"SELECT ltm(x, {alpha}) FROM (VALUES (0.5), (0.7)) t(x)")) == [(None,)]


def test_ltm_has_the_same_last_bit_in_every_run(con):
    con.execute("SET threads = 4")
    con.execute("CREATE TABLE t AS SELECT sin(i) AS x FROM range(300000) r(i)")
    runs = {con.execute("SELECT ltm(x), f0(x) FROM t").fetchall()[0] for _ in range(8)}
    assert len(runs) == 1


def test_register_any_number_of_times_and_from_cursors():
    con = duckdb.connect()
    for _ in range(3):
        assert croma_sql.register(con) is con
    croma_sql.register(con.cursor())
    con.execute(TILES)
    assert len(con.cursor().sql("FROM croma_margins('tiles', m := 1)").fetchall()) == 4


def test_a_stored_view_tells_the_cure_until_it_is_registered(tmp_path):
    path = str(tmp_path / "study.duckdb")
    with croma_sql.register(duckdb.connect(path)) as con:
        con.execute(TILES)
        con.execute("CREATE VIEW fragile AS FROM croma_margins('tiles', m := 1)")
        con.execute("CREATE VIEW tail AS SELECT f0(sample_id - 2), ltm(sample_id) FROM tiles")
        expected = rows(con.sql("FROM fragile"))
    for read_only in (False, True):
        with duckdb.connect(path, read_only=read_only) as con:
            with pytest.raises(
                duckdb.CatalogException, match=r"import croma_sql; croma_sql.register\(con\)"
            ):
                con.sql("FROM fragile")
            assert con.sql("FROM tail").fetchall() == [(0.5, 1.0)]  # plain SQL needs no kernel
            croma_sql.register(con)
            assert rows(con.sql("FROM fragile")) == expected


def test_an_exported_database_is_imported_without_the_functions(tmp_path):
    folder = tmp_path / "exported"
    with croma_sql.register(duckdb.connect()) as con:
        con.execute(TILES)
        expected = rows(con.sql("FROM croma_margins('tiles', m := 1)"))
        con.execute(f"EXPORT DATABASE '{folder}'")
    with duckdb.connect() as con:
        con.execute(f"IMPORT DATABASE '{folder}'")
        with pytest.raises(duckdb.CatalogException, match=r"croma_sql.register\(con\)"):
            con.sql("FROM croma_margins('tiles', m := 1)")
        croma_sql.register(con)
        assert rows(con.sql("FROM croma_margins('tiles', m := 1)")) == expected


def test_register_again_after_a_rollback_and_in_another_database(tmp_path):
    con = duckdb.connect()
    con.execute("BEGIN")
    croma_sql.register(con)
    con.execute("ROLLBACK")
    croma_sql.register(con)
    con.execute(TILES)
    expected = rows(con.sql("FROM croma_margins('tiles', m := 1)"))
    con.execute(f"ATTACH '{tmp_path}/other.duckdb'")
    con.execute("USE other")
    croma_sql.register(con)
    con.execute("CREATE TABLE tiles AS FROM memory.tiles")
    assert rows(con.sql("FROM croma_margins('tiles', m := 1)")) == expected


def test_settings_of_the_session_change_nothing(tiles):
    """Sort order is a setting, and so is how large lists reach Python."""
    queries = (
        "SELECT ltm(x, 0.1) FROM (VALUES (1.0), (2.0), (10.0)) t(x)",
        "FROM croma_margins('tiles', m := 1)",
    )
    expected = [rows(tiles.sql(query)) for query in queries]
    tiles.execute("SET default_order = 'desc'")
    tiles.execute("SET arrow_large_buffer_size = true")
    assert [rows(tiles.sql(query)) for query in queries] == expected


def test_neighbours_join_ids_of_any_type(tiles):
    for kind in ("TIMESTAMP", "DOUBLE", "UUID", "DATE"):
        ids = {
            "TIMESTAMP": "'2026-01-01 00:00:00'::TIMESTAMP + sample_id * INTERVAL 1 SECOND",
            "DOUBLE": "sample_id::DOUBLE",
            "UUID": "uuid()",
            "DATE": "'2026-01-01'::DATE + sample_id",
        }[kind]
        tiles.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT * REPLACE ({ids} AS sample_id) FROM tiles"
        )
        joined = tiles.sql("""
            SELECT count(*) FROM croma_neighbours('t', m := 1) e
            JOIN t ON e.neighbour_id = t.sample_id::VARCHAR JOIN t s ON e.sample_id = s.sample_id
        """)
        assert joined.fetchall() == [(8,)]


def test_columns_may_go_by_any_name_of_ours(tiles):
    names = [
        "r",
        "row",
        "scope",
        "relation",
        "m",
        "found",
        "searched",
        "vectors",
        "neighbours",
        "rows",
    ]
    tiles.execute(
        f"CREATE TABLE t AS SELECT *, {', '.join(f'1 AS {name}' for name in names)} FROM tiles"
    )
    expected = rows(tiles.sql("FROM croma_margins('tiles', m := 1)"))
    assert rows(tiles.sql("FROM croma_margins('t', m := 1)")) == expected


def test_register_on_a_read_only_database_without_the_macros(tmp_path):
    path = str(tmp_path / "study.duckdb")
    with duckdb.connect(path) as con:
        con.execute(TILES)
    with croma_sql.register(duckdb.connect(path, read_only=True)) as con:
        assert len(con.sql("FROM croma_margins('tiles', m := 1)").fetchall()) == 4


def test_depths_may_differ_from_row_to_row(con):
    """In a LATERAL join or a correlated subquery, one call is asked for several depths."""
    con.register("tiles", random_cohort(0, n=60, groups=60).frame())
    margins = con.sql("""
        SELECT m, count(margin), avg(margin)
        FROM (VALUES (1), (2), (5), (20)) AS depths(m),
            LATERAL (FROM croma_margins('tiles', m := m))
        GROUP BY m ORDER BY m
    """).fetchall()
    for m, n, mean in margins:
        alone = con.sql(f"SELECT count(margin), avg(margin) FROM croma_margins('tiles', m := {m})")
        assert alone.fetchall() == [(n, pytest.approx(mean))]
    edges = con.sql("""
        SELECT k, count(*)
        FROM (VALUES (2), (7)) AS depths(k), LATERAL (FROM croma_nearest('tiles', k := k))
        GROUP BY k ORDER BY k
    """)
    assert edges.fetchall() == [(2, 120), (7, 420)]


def test_ragged_vectors_are_told_with_their_scope(con):
    con.sql("""
        CREATE TABLE ragged AS SELECT
            range AS sample_id, range % 2 AS label, range // 2 % 2 AS confounder, range AS group_id,
            range // 20 AS part,
            CASE WHEN range = 27 THEN [1.0, 2.0] ELSE [1.0, range + 1.0, 3.0] END AS embedding
        FROM range(60)
    """)
    with pytest.raises(duckdb.Error, match="scope '1': 'embedding' holds vectors of different"):
        con.sql("FROM croma_margins('ragged', m := 1, by := 'part')").fetchall()
