"""Agreement with the reference package, `croma` 1.0.1, per sample and in both designs."""

from dataclasses import replace

import duckdb
import numpy as np
import numpy.testing as npt
import pandas as pd
import pytest
from cohorts import AWKWARD, random_cohort
from croma.metrics.croma import CrossConfounderRobustnessMargin

import croma_sql


def unit_vectors(cohort):
    """`croma` works in the precision it is given, and divides by |z| + 1e-12."""
    vectors = cohort.vectors.astype(np.float64)
    vectors /= np.abs(vectors).max(axis=1, keepdims=True)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def manifest(cohort):
    return pd.DataFrame(
        {
            "sample_id": cohort.ids,
            "image_path": cohort.ids,
            "label": cohort.label,
            "centre": cohort.confounder,
            "group_id": cohort.group,
        }
    )


def reference(cohort, m):
    return CrossConfounderRobustnessMargin.compute(
        unit_vectors(cohort), manifest(cohort), confounder_column="centre", m=m
    )


def reference_where_it_answers(cohort, m):
    """`croma` refuses a cohort with a zero denominator as a whole: move equal vectors by 1e-12."""
    jitter = 1e-12 * np.random.default_rng(0).standard_normal(cohort.vectors.shape)
    return reference(replace(cohort, vectors=cohort.vectors + jitter), m).sample_values_aligned


def ours(cohort, m):
    return croma_sql.margins(**cohort.arguments(), m=m)["margin"].to_numpy()


EQUAL = ["duplicates", "tied at every depth"]


@pytest.mark.parametrize("m", [1, 5])
@pytest.mark.parametrize("name", sorted(set(AWKWARD) - {*EQUAL}))
def test_margins_agree(name, m):
    cohort = AWKWARD[name](5)
    npt.assert_allclose(
        ours(cohort, m), reference(cohort, m).sample_values_aligned, atol=1e-9, rtol=0
    )


@pytest.mark.parametrize("m", [5, 20])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", EQUAL)
def test_margins_agree_on_equal_vectors(name, seed, m):
    """`croma` may find 2e-16 where vectors are equal, so a mean of nothing else is left out."""
    cohort = AWKWARD[name](seed)
    frame = croma_sql.margins(**cohort.arguments(), m=m)
    far = (frame["d_so"] + frame["d_os"] > 1e-6).fill_null(False).to_numpy()
    assert far.mean() > 0.3
    expected = reference_where_it_answers(cohort, m)
    npt.assert_allclose(frame["margin"].to_numpy()[far], expected[far], atol=1e-9, rtol=0)


@pytest.mark.parametrize("seed", range(3))
def test_summaries_agree(seed):
    cohort = random_cohort(seed, n=301, effect=0.3)
    expected = reference(cohort, 5)
    con = croma_sql.register(duckdb.connect())
    con.register("tiles", cohort.frame())
    found = con.execute(
        "SELECT median(margin), f0(margin), ltm(margin, 0.10) FROM croma_margins('tiles')"
    ).fetchall()[0]
    npt.assert_allclose(found, [expected.value, expected.f0, expected.ltm_alpha], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_paired_design_agrees(root, seed):
    """Three labels under three confounders, of which one cell is empty: 5 of 9 quartets."""
    cohort = random_cohort(seed, n=400, labels=3, confounders=3, groups=45)
    filled = (cohort.label != "class2") | (cohort.confounder != "centre2")
    cohort = cohort.rows(np.flatnonzero(filled))
    frame = cohort.frame()
    croma_sql.import_embeddings(root, frame, encoder="e", dataset="d", samples=frame)
    croma_sql.add_benchmark(root, "paired", "FROM croma_quartets('samples')")
    croma_sql.score(root)
    con = croma_sql.connect(root)
    found = con.sql("SELECT subset, sample_id, margin FROM margins").pl()
    row = pd.Series(range(len(cohort.ids)), index=cohort.ids)
    at = row[found["sample_id"].to_list()].to_numpy()
    occurrences = manifest(cohort).iloc[at].assign(subset=found["subset"].to_list())
    expected = CrossConfounderRobustnessMargin.compute(
        unit_vectors(cohort)[at],
        occurrences.reset_index(drop=True),
        confounder_column="centre",
        evaluation_design="paired_2x2",
    )
    assert expected.n_pairs == 5
    theirs = expected.occurrence_source_indices
    npt.assert_allclose(found["margin"].to_numpy()[theirs], expected.sample_values, atol=1e-9)
    assert found["subset"].to_numpy()[theirs].tolist() == expected.occurrence_subsets.tolist()
    summary = con.sql("SELECT n, croma, pooled_median, f0, ltm10 FROM encoder_summary").fetchall()
    pooled = np.median(expected.sample_values)
    npt.assert_allclose(
        summary[0],
        [len(found), expected.value, pooled, expected.f0, expected.ltm_alpha],
        atol=1e-9,
    )
    assert abs(expected.value - pooled) > 1e-3
