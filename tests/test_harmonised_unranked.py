"""Harmonised encoders are shown beside those that they were made from, and ranked on request."""

import polars as pl
import pytest
from harmonising import built, tiles

import croma_sql
from croma_sql.cli import main


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Two encoders, the worse of which is harmonised and so the best; and one pooled from that."""
    root = tmp_path_factory.mktemp("harmonised") / "W"
    built(root, tiles(300), select=f"{SELECT} AND dataset = 'd0'")
    other = tiles(300, seed=3, shift=0.5)
    croma_sql.import_embeddings(root, other, encoder="f", dataset="d0", on_bad_vectors="null")
    croma_sql.harmonise(root, encoder="e", benchmark="b", keep=["label"])
    croma_sql.pool(root, encoder="e combat", to="e pooled", dataset="slides", by=["slide"])
    croma_sql.score(root, k=21, on_undefined="null")
    return root


SELECT = """
    SELECT sample_id, class AS label, centre AS confounder, slide AS group_id
    FROM samples WHERE NOT elsewhere
"""


def rows(root, query):
    with croma_sql.connect(root) as con:
        return con.sql(query).fetchall()


def test_encoders_that_harmonising_made_are_marked(scored):
    found = rows(scored, "SELECT encoder, is_harmonised FROM encoders ORDER BY ALL")
    assert found == [("e", False), ("e combat", True), ("e pooled", True), ("f", False)]
    for view in ("encoder_summary", "encoder_panel_at(5)", "encoder_ranking", "encoder_mean_ranks"):
        found = rows(scored, f"SELECT DISTINCT encoder FROM {view} WHERE is_harmonised")
        assert found == [("e combat",)]


def test_they_are_ranked_on_request_only(scored):
    query = "SELECT encoder, croma_rank, on_frontier FROM {} ORDER BY croma DESC"
    best, *others = rows(scored, query.format("encoder_ranking"))
    assert best == ("e combat", None, False)
    assert [rank for _, rank, _ in others] == [1, 2]
    best = rows(scored, query.format("encoder_ranking_at(5, include_harmonised := true)"))[0]
    assert best == ("e combat", 1, True)
    for include, first in ((False, "e combat"), (True, "e combat")):
        found = croma_sql.compare(scored, include_harmonised=include, draws=50)
        rank = found.filter(encoder=first)["rank"].item()
        assert rank == (1 if include else None)
        assert found.filter(pl.col("rank") == 1).height == 1
        overall = croma_sql.compare_overall(scored, include_harmonised=include)
        assert overall["mean_rank"].null_count() == (0 if include else 1)
        assert croma_sql.compare_pairs(scored, include_harmonised=include).height == (
            3 if include else 1
        )


def test_they_do_not_move_the_shared_k(scored):
    points = dict(rows(scored, "SELECT encoder, k_star FROM operating_points"))
    own = sorted(points[name] for name in ("e", "f"))[0]
    everybody = sorted(points.values())[1]
    found = croma_sql.summary(scored)
    assert set(found["k"]) == {own}
    found = croma_sql.summary(scored, include_harmonised=True)
    assert set(found["k"]) == {everybody}


def test_verbs_name_them(scored, capsys, monkeypatch):
    for verb, consequence in (
        ("summary", "do not count in the shared k"),
        ("compare", "are not ranked"),
    ):
        monkeypatch.setattr("sys.argv", ["croma-sql", verb, str(scored)])
        with pytest.raises(SystemExit):
            main()
        said = capsys.readouterr()
        assert "is_harmonised" in said.out
        assert said.err == (
            f"harmonised encoders are shown, but {consequence}: 'e combat'. "
            "--include-harmonised changes that\n"
        )
