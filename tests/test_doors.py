"""One search, three doors and the warehouse: the same bytes out of each."""

import numpy as np
import polars as pl
import pytest
from cohorts import AWKWARD
from polars.testing import assert_frame_equal

import croma_sql

M = 5
COLUMNS = ["sample_id", "d_so", "d_os", "margin", "undefined_reason"]
EDGES = ["sample_id", "type", "rank", "neighbour_id", "distance"]


def from_parquet(cohort, con, tmp_path):
    path = tmp_path / "tiles.parquet"
    cohort.frame().write_parquet(path)
    return con.sql("FROM croma_margins($path, m := $m)", params={"path": str(path), "m": M}).pl()


def from_warehouse(cohort, tmp_path):
    root, tiles = tmp_path / "warehouse", cohort.frame()
    croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", samples=tiles)
    select = "SELECT sample_id, label, confounder, group_id FROM samples"
    croma_sql.add_benchmark(root, "b", select)
    croma_sql.score(root, k=30, on_undefined="null")
    return croma_sql.connect(root)


def margin_expression():
    return pl.col("embedding").croma.margin(
        "label", "confounder", "group_id", m=M, sample_id="sample_id"
    )


def in_order(frame, columns=COLUMNS):
    return frame.select(columns).sort(columns[:3])


@pytest.mark.parametrize("name", AWKWARD)
def test_margins_are_the_same_bytes(name, con, tmp_path):
    cohort = AWKWARD[name](7)
    expected = in_order(croma_sql.margins(**cohort.arguments(), m=M))
    shuffled = cohort.rows(np.random.default_rng(0).permutation(len(cohort.ids)))
    warehouse = from_warehouse(shuffled, tmp_path)
    assert_frame_equal(in_order(from_parquet(shuffled, con, tmp_path)), expected, check_exact=True)
    assert_frame_equal(in_order(warehouse.sql("FROM margins").pl()), expected, check_exact=True)
    polars = shuffled.frame().with_columns(margin=margin_expression()).sort("sample_id")
    assert polars["margin"].equals(expected.sort("sample_id")["margin"], check_dtypes=True)


@pytest.mark.parametrize("name", ["two by two", "duplicates", "unbalanced cells"])
def test_neighbours_are_the_same_bytes(name, con, tmp_path):
    cohort = AWKWARD[name](8)
    expected = in_order(croma_sql.typed_neighbours(**cohort.arguments(), m=20), EDGES)
    con.register("tiles", cohort.frame())
    sql = in_order(con.sql("FROM croma_neighbours('tiles', m := 20)").pl(), EDGES)
    assert_frame_equal(sql, expected, check_exact=True)
    warehouse = from_warehouse(cohort, tmp_path).sql("FROM typed_neighbours").pl()
    assert_frame_equal(in_order(warehouse, EDGES), expected, check_exact=True)
    expression = pl.col("embedding").croma.typed_neighbours(
        "label", "confounder", "group_id", m=20, sample_id="sample_id"
    )
    lists = cohort.frame().select("sample_id", expression).unnest("embedding")
    for kind in ("so", "os"):
        edges = (
            lists.select("sample_id", f"{kind}_id", f"{kind}_distance")
            .filter(pl.col(f"{kind}_id").list.len() > 0)
            .explode(f"{kind}_id", f"{kind}_distance")
        )
        of_type = expected.filter(type=kind.upper()).sort("sample_id", "rank")
        same_order = edges.sort("sample_id", maintain_order=True)
        assert same_order[f"{kind}_id"].to_list() == of_type["neighbour_id"].to_list()
        assert same_order[f"{kind}_distance"].equals(of_type["distance"])


@pytest.mark.parametrize("name", ["two by two", "duplicates", "unbalanced cells"])
def test_nearest_neighbours_are_the_same_bytes(name, con, tmp_path):
    cohort = AWKWARD[name](8)
    expected = in_order(croma_sql.neighbours(**cohort.arguments(), k=30), EDGES)
    con.register("tiles", cohort.frame())
    sql = in_order(con.sql("FROM croma_nearest('tiles', k := 30)").pl(), EDGES)
    assert_frame_equal(sql, expected, check_exact=True)
    warehouse = from_warehouse(cohort, tmp_path).sql("FROM neighbours").pl()
    assert_frame_equal(in_order(warehouse, EDGES), expected, check_exact=True)
    expression = pl.col("embedding").croma.neighbours(
        "label", "confounder", "group_id", k=30, sample_id="sample_id"
    )
    edges = cohort.frame().select("sample_id", expression).unnest("embedding")
    edges = edges.filter(pl.col("id").list.len() > 0).explode("id", "type", "distance")
    in_rank = expected.sort("sample_id", "rank")
    by_sample = edges.sort("sample_id", maintain_order=True)
    assert by_sample["id"].to_list() == in_rank["neighbour_id"].to_list()
    assert by_sample["type"].to_list() == in_rank["type"].to_list()
    assert by_sample["distance"].equals(in_rank["distance"])


def test_types_of_nearest_neighbours_are_those_of_their_labels_and_confounders(con):
    con.register("tiles", AWKWARD["many labels"](3).frame())
    wrong = con.sql("""
        FROM croma_nearest('tiles', k := 20) AS edge
        JOIN tiles AS anchor ON anchor.sample_id = edge.sample_id
        JOIN tiles AS other ON other.sample_id = edge.neighbour_id
        SELECT count(*), count(*) FILTER (
            type <> CASE WHEN anchor.label = other.label THEN 'S' ELSE 'O' END
                || CASE WHEN anchor.confounder = other.confounder THEN 'S' ELSE 'O' END
            OR anchor.group_id = other.group_id
        )
    """)
    assert wrong.fetchall() == [(600 * 20, 0)]


def test_every_m_of_the_warehouse_is_that_of_a_search_at_m(tmp_path):
    cohort = AWKWARD["two by two"](9)
    warehouse = from_warehouse(cohort, tmp_path)
    for m in (1, 2, 7, 8, 13, 20):
        expected = in_order(croma_sql.margins(**cohort.arguments(), m=m))
        found = in_order(warehouse.sql("FROM margins_at($m)", params={"m": m}).pl())
        assert_frame_equal(found, expected, check_exact=True)


def test_stored_precision_is_what_is_measured():
    """float16, float32 and float64 files of the same values give the same bytes."""
    cohort = AWKWARD["float16"](1)
    results = []
    for precision in (np.float16, np.float32, np.float64):
        vectors = cohort.vectors.astype(precision)
        frame = croma_sql.margins(**cohort.arguments() | {"embeddings": vectors})
        results.append(frame["margin"])
    assert results[0].equals(results[1])
    assert results[0].equals(results[2])
