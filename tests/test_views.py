"""The views of a warehouse: what they answer, whatever attributes and tables are called."""

import re
from importlib.resources import files

import numpy as np
import polars as pl
import pytest
from cohorts import random_cohort

import croma_sql
from croma_sql.session import VIEWS
from croma_sql.warehouse.data.samples import RESERVED

SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"
ODD_NAMES = [
    "UNI2-h", "a/b", "..", ".hidden", "it's \"quoted\"", "a%20b", "a+b", "007", "=", "*?[x]",
    "Прижизненный", "encoder=x", "back\\slash",
]  # fmt: skip


@pytest.fixture
def tiles():
    return random_cohort(0, n=90, groups=9).frame()


def built(root, tiles, **options):
    croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", samples=tiles, **options)
    croma_sql.add_benchmark(root, "b", SELECT)
    return root


def contents(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


ARGUMENTS = {
    "attributes_but": "([]::VARCHAR[])",
    "collapse_check_at": "(0.01)",
    "dominant_confounders": "(['b'])",
    "knn_accuracy_at": "([5])",
    "unit_attributes_but": "([]::VARCHAR[])",
}
ARGUMENTS_OF = {"_at": "(5)", "_of": "('points')"}
POINTS = "SELECT 'b' AS benchmark, 'e' AS encoder, 5 AS k, 0.5 AS bio_bacc"


def relations():
    """Every view and table macro of a warehouse, as it is asked: {name: text}."""
    names = [path.rpartition("/")[2] for path in VIEWS]
    return {name: name + ARGUMENTS.get(name, ARGUMENTS_OF.get(name[-3:], "")) for name in names}


def test_an_empty_warehouse_answers_with_no_rows(root):
    croma_sql.create_warehouse(root)
    none_yet = relations() | {"dominant_confounders": "dominant_confounders([]::VARCHAR[])"}
    with croma_sql.connect(root) as con:
        con.execute(f"CREATE TABLE points AS {POINTS} WHERE false")
        for relation in none_yet.values():
            assert con.sql(f"FROM {relation}").fetchall() == []
    assert croma_sql.check(root) == []
    assert croma_sql.info(root).datasets == []


def test_attributes_may_go_by_any_word_of_the_views(root, tiles):
    """An attribute called k, place or n is beside what a view says, never instead of it."""
    views = files("croma_sql.sql") / "views"
    words = set()
    for view in VIEWS:
        text = views.joinpath(f"{view}.sql").read_text(encoding="utf-8")
        words |= set(re.findall(r"[a-z]\w*", text.lower()))
    answers = []
    words -= {*tiles.columns, *RESERVED}
    for name, attributes in (("plain", []), ("hostile", sorted(words))):
        samples = tiles.drop("embedding").with_columns(
            *(pl.lit(f"of {word}").alias(word) for word in attributes)
        )
        croma_sql.import_embeddings(root / name, tiles, encoder="e", dataset="d", samples=samples)
        croma_sql.add_benchmark(root / name, "b", SELECT)
        croma_sql.score(root / name, k=5, first_ranks=True, on_undefined="null")
        croma_sql.score_centre(root / name, trials=2, folds=2, k_range=(2, 4))
        with croma_sql.connect(root / name) as con:
            con.execute(f"CREATE TABLE points AS {POINTS}")
            asked = relations().items()
            answers.append({view: con.sql(f"FROM {it}").pl() for view, it in asked})
    plain, hostile = answers
    for view, rows in plain.items():
        columns = [column for column in rows.columns if column != "dataset"]
        order = [column for column in columns if not rows[column].dtype.is_nested()]
        told = hostile[view].select(columns)
        assert told.sort(order).equals(rows.select(columns).sort(order)), view


def test_a_query_may_call_its_own_tables_by_the_names_of_views(root, tiles):
    """What a CTE or a temporary table is called changes nothing but what the query itself reads."""
    croma_sql.score(built(root, tiles), k=5, first_ranks=True, on_undefined="null")
    sources = [f"{edges}_files" for edges in ("typed_neighbour", "neighbour", "sample", "encoder")]
    names = [*(path.rpartition("/")[2] for path in VIEWS), *sources]
    ctes = ", ".join(f"{name} AS (SELECT 1 AS nonsense)" for name in names)
    with croma_sql.connect(root) as con:
        con.execute(f"CREATE TABLE points AS {POINTS}")
        for view, relation in relations().items():
            asked = relation if "(" in relation else f"main.{relation}"
            plain, within = (
                con.sql(f"{start} SELECT * FROM {asked}").pl() for start in ("", f"WITH {ctes}")
            )
            order = [column for column in plain.columns if not plain[column].dtype.is_nested()]
            assert within.sort(order).equals(plain.sort(order)), view


def test_views_are_there_on_cursors_and_read_only(root, tiles):
    croma_sql.score(built(root, tiles), on_undefined="null")
    before = contents(root)
    con = croma_sql.connect(root)
    assert con.cursor().sql("SELECT count(*) FROM margins").fetchall() == [(90,)]
    assert contents(root) == before


def test_summary_of_a_benchmark_with_subsets_weighs_each_the_same(root, tiles):
    """Two subsets of 90 and 60 rows: croma is the median of their medians, not the pooled one."""
    built(root, tiles)
    croma_sql.add_benchmark(
        root,
        "paired",
        f"SELECT *, 'all' AS subset FROM ({SELECT}) UNION ALL "
        f"SELECT *, 'few' FROM ({SELECT}) WHERE group_id < 'slide6'",
    )
    croma_sql.score(root, on_undefined="null")
    con = croma_sql.connect(root)
    medians = {}
    for subset, where in (("all", True), ("few", pl.col("group_id") < "slide6")):
        scope = tiles.filter(where)
        margins = croma_sql.margins(
            *(scope[c] for c in ("embedding", "label", "confounder", "group_id")),
            sample_id=scope["sample_id"],
        )
        stored = con.sql(
            "SELECT sample_id, margin FROM margins WHERE benchmark = 'paired' AND subset = $s",
            params={"s": subset},
        ).pl()
        assert stored.sort("sample_id").equals(
            margins.select("sample_id", "margin").sort("sample_id")
        )
        medians[subset] = margins["margin"].median()
    summary = con.sql("SELECT n, croma FROM encoder_summary WHERE benchmark = 'paired'").fetchall()
    assert summary[0] == (
        90 + tiles.filter(where).height,
        pytest.approx(np.mean(list(medians.values()))),
    )
