"""Encoders are compared on equal terms: as many units, and no praise for a collapse."""

import re

import numpy as np
import polars as pl
import pytest
import scanned
from scipy.stats import spearmanr

import croma_sql

GOOD = {f"e{i}": scanned.good(i, noise=0.6 + 0.1 * i) for i in range(5)}
COLLAPSED = {"low": scanned.collapsed(7), "few": scanned.collapsed_but_for_three(8)}
COMPARE = (croma_sql.compare_consistency, croma_sql.compare_consistency_pairs)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("fairness") / "W"
    scanned.warehouse(root, GOOD | COLLAPSED, permutations=0).close()
    return root


def without_units(found, there):
    """Vectors of the first units only."""
    found = found.copy()
    found[:, there:] = np.nan
    return scanned.tiles(found)


@pytest.mark.parametrize("compare", COMPARE)
def test_encoders_with_different_numbers_of_units_are_not_compared(tmp_path, compare):
    """Who is one of twelve is found again more often than who is one of forty."""
    scanned.warehouse(tmp_path, {"b": GOOD["e4"], "a": GOOD["e3"]}, permutations=0).close()
    croma_sql.import_embeddings(
        tmp_path, without_units(GOOD["e4"], 12), encoder="c", dataset="d", on_bad_vectors="null"
    )
    croma_sql.score_consistency(tmp_path, incomplete="drop", permutations=0)
    rate = dict(croma_sql.consistency_summary(tmp_path).select("encoder", "mr_1nn").rows())
    assert rate["c"] > rate["b"]  # the same vectors
    told = (
        "encoders of benchmark 'scanners' have different numbers of units: 40 under 'a', 'b'; 12 "
        "under 'c'. How often a unit is found again, and keeps its neighbours, depends on how many "
        "there are to choose from: leave the units that one of them lacks out in the benchmark's "
        "WHERE"
    )
    with pytest.raises(croma_sql.StatisticsError, match=re.escape(told)):
        compare(tmp_path, draws=10)
    croma_sql.add_benchmark(tmp_path, "scanners", f"{scanned.SELECT} WHERE patient < 'p012'")
    croma_sql.score_consistency(tmp_path, permutations=0)
    alike = compare(tmp_path, draws=10).filter(metric="mr_1nn")
    assert alike["n_left_out"].to_list() == [0, 0, 0]


def test_a_collapsed_encoder_is_not_praised_for_its_distances(root):
    found = croma_sql.compare_consistency(root, draws=20)
    reasons = dict(found.select("encoder", "collapse_reason").unique().rows())
    assert reasons == dict.fromkeys(GOOD) | dict.fromkeys(COLLAPSED, "no_spread")
    ranks = ["rank", "rank_lo", "rank_hi", "best_probability", "win_probability"]
    for (metric,), of_one in found.group_by("metric"):
        flagged = of_one.filter(pl.col("collapse_reason").is_not_null())
        ranked = of_one.filter(pl.col("rank").is_not_null())
        assert len(flagged) == 2
        assert len(ranked) == (5 if metric == "d_cos" else 7), metric
        assert ranked["rank"].min() == 1
        if metric == "d_cos":
            assert flagged["value"].max() < ranked["value"].min()
            assert flagged.select(ranks).null_count().sum_horizontal().item() == 2 * len(ranks)


def test_differences_from_a_collapsed_encoder_are_marked(root):
    found = croma_sql.compare_consistency_pairs(root, draws=20)
    for side in ("first", "second"):
        is_flagged = pl.col(side).is_in(list(COLLAPSED))
        marked = found.select((pl.col(f"{side}_collapse_reason") == "no_spread").fill_null(False))
        assert marked.to_series().to_list() == found.select(is_flagged).to_series().to_list()
        assert 0 < marked.to_series().sum() < len(found)


def test_agreement_leaves_distances_of_the_collapsed_out(root):
    alone = croma_sql.consistency_summary(root).filter(pl.col("collapse_reason").is_null())
    found = croma_sql.consistency_agreement(root, draws=20).filter(x="d_cos")
    with croma_sql.connect(root) as con:
        view = con.sql("FROM consistency_agreement WHERE metric_a = 'd_cos'").pl()
    assert len(found) == len(view) == 4
    for y, rho, n in found.select("y", "rho", "n").rows():
        expected = spearmanr(-alone["d_cos"], alone[y]).statistic
        in_view = view.filter(metric_b=y).select("spearman", "n").row(0)
        for one in ((rho, n), in_view):
            assert one == (pytest.approx(expected, abs=1e-12), 5)
