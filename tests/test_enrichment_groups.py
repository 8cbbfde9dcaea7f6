"""Enrichment counts groups as evidence, not rows: calibration, coverage, the planted subgroup."""

import math

import numpy as np
import polars as pl
import pytest
from planted import cohort, shuffled
from scipy import stats

import croma_sql


def rows_of(found):
    return {row["value"]: row for row in found.iter_rows(named=True)}


def test_two_rows_of_one_group_elsewhere_change_next_to_nothing():
    """8 of 20 in the tail against 192 of 1980: Fisher's test, with and without one pair of rows."""
    place = np.arange(2000)
    rare = (place < 8) | ((place >= 200) & (place < 212))
    frame = pl.DataFrame({"margin": np.where(place < 200, -0.5, 0.5), "rare": rare})
    alone = frame.with_columns(group_id=place)
    paired = frame.with_columns(group_id=np.minimum(place, 1998))
    twice = 2 * stats.fisher_exact([[8, 12], [192, 1788]], alternative="greater").pvalue
    for frame in (alone, paired):
        for row in croma_sql.enrichment(frame, "rare", tails="nonpositive").to_dicts():
            assert row["p"] == pytest.approx(twice, rel=0.02)
            assert row["hi"] < 1 or row["lo"] > 1


def test_single_rows_against_a_few_large_groups_are_no_exact_table():
    """Five slides of 40 tiles, whose shares differ: what they have in common is hardly known."""
    rng = np.random.default_rng(3)
    cohorts, slides = 200, 85
    size = np.where(np.arange(slides) < 80, 1, 40)
    group = np.repeat(np.arange(cohorts * slides), np.tile(size, cohorts))
    tail = rng.random(len(group)) < rng.beta(0.3, 3, cohorts * slides)[group]
    frame = pl.DataFrame(
        {
            "cohort": group // slides,
            "group_id": group,
            "margin": np.where(tail, -1.0, 1.0),
            "single": group % slides < 80,
        }
    )
    found = croma_sql.enrichment(frame, "single", by="cohort", tails="nonpositive")
    p = found.filter(value="true")["p"].drop_nulls()
    assert (p <= 0.05).mean() <= 0.07
    assert (p <= 0.01).mean() <= 0.02


def test_a_value_without_upper_limit_leaves_the_others_without_a_lower_one():
    """All tiles of 7 of 100 slides are in the tail, as are 3 % of the others."""
    slide = np.repeat(np.arange(100), 50)
    tail = (slide < 7) | (np.random.default_rng(0).random(5000) < 0.03)
    frame = pl.DataFrame({"margin": 1.0 - 2 * tail, "torn": slide < 7, "group_id": slide})
    found = rows_of(croma_sql.enrichment(frame, "torn", tails="nonpositive"))
    assert found["true"]["hi"] is None
    assert found["false"]["lo"] == 0
    assert found["true"]["lo"] == pytest.approx(1 / found["false"]["hi"])
    assert found["true"]["p"] == pytest.approx(0.0045, abs=2e-4)  # as the documentation says


def test_what_one_slide_does_proves_nothing():
    rng = np.random.default_rng(0)
    slide = np.repeat(np.arange(50), 40)
    frame = pl.DataFrame(
        {
            "margin": rng.standard_normal(2000) + 2 - 5 * (slide == 7),
            "block": np.where(slide == 7, "torn", "whole"),
            "group_id": slide,
        }
    )
    torn = rows_of(croma_sql.enrichment(frame, "block", tails="nonpositive"))["torn"]
    assert (torn["n"], torn["n_groups"]) == (40, 1)
    assert torn["share"] > 0.95
    assert torn["p"] > 0.3
    assert (torn["lo"], torn["hi"]) == (0, None)
    alone = frame.with_columns(group_id=pl.int_range(2000))
    assert rows_of(croma_sql.enrichment(alone, "block", tails="nonpositive"))["torn"]["p"] < 1e-30


def test_no_association_is_found_as_often_as_promised():
    """At 5 %, over 400 cohorts of 60 slides; taking rows as independent is far off."""
    rng = np.random.default_rng(1)
    cohorts, slides, tiles = 400, 60, 20
    slide = np.tile(np.repeat(np.arange(slides), tiles), cohorts)
    of = np.repeat(np.arange(cohorts), slides * tiles)
    margin = rng.standard_normal(len(of)) + rng.standard_normal((cohorts, slides))[of, slide] / 2
    mixed = rng.beta(1, 2, (cohorts, slides))[of, slide]
    frame = pl.DataFrame(
        {
            "cohort": of,
            "group_id": slide,
            "margin": margin,
            "of_slides": (rng.random((cohorts, slides)) < 0.3)[of, slide],
            "within_slides": rng.random(len(of)) < mixed,
        }
    )

    def rejected(given):
        found = croma_sql.enrichment(
            given, ["of_slides", "within_slides"], by="cohort", tails="worst_decile"
        ).filter(value="true")
        shares = found.group_by("attribute").agg((pl.col("p") < 0.05).mean()).rows()
        return dict(sorted(shares))

    aware = rejected(frame)
    naive = rejected(frame.with_columns(group_id=pl.int_range(pl.len()).over("cohort")))
    assert 0.01 < aware["of_slides"] < 0.06
    assert 0.02 < aware["within_slides"] < 0.07
    assert naive["of_slides"] > 0.15
    assert naive["within_slides"] > 0.07


def test_intervals_cover_the_truth():
    """Of an odds ratio of exp(1), over 300 cohorts of 80 slides with correlated rows."""
    rng = np.random.default_rng(2)
    cohorts, slides, tiles = 300, 80, 15
    of = np.repeat(np.arange(cohorts), slides * tiles)
    slide = np.tile(np.repeat(np.arange(slides), tiles), cohorts)
    inside = (rng.random((cohorts, slides)) < 0.4)[of, slide]
    latent = rng.standard_normal((cohorts, slides))[of, slide] * math.sqrt(0.2)
    latent += rng.standard_normal(len(of)) * math.sqrt(0.8)
    share = 1 / (1 + np.exp(2.0 - inside))  # odds of exp(-1) inside and exp(-2) outside
    frame = pl.DataFrame(
        {
            "cohort": of,
            "group_id": slide,
            "margin": latent - stats.norm.ppf(share),
            "inside": inside,
        }
    )
    found = croma_sql.enrichment(frame, "inside", by="cohort", tails="nonpositive").filter(
        value="true"
    )
    covered = (found["lo"] <= math.e) & (found["hi"].fill_null(math.inf) >= math.e)
    assert 0.92 <= covered.mean() <= 0.99


# -- the planted subgroup


def test_a_planted_subgroup_shows_and_shuffling_hides_it():
    frame = cohort(0)
    found = croma_sql.enrichment(frame, ["scanner", "zone", "centre", "age"])
    first = found.group_by("tail", maintain_order=True).first()
    assert set(first["value"]) <= {"warm soft", "border"}
    assert (first["q"] < 0.05).all()
    for whole_groups in (False, True):
        copies = shuffled(frame, 100, whole_groups)
        found = croma_sql.enrichment(copies, ["scanner", "zone", "centre", "age"], by="copy")
        reported = found.filter(pl.col("q") <= 0.05).group_by("tail").agg(pl.n_unique("copy"))
        assert all(copies <= 10 for _, copies in reported.rows())
