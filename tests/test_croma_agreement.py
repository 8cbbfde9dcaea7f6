"""Per-sample agreement with the reference package, `croma` 1.0.1."""

from dataclasses import replace

import duckdb
import numpy as np
import numpy.testing as npt
import pandas as pd
import pytest
from cohorts import AWKWARD, random_cohort
from croma.metrics.croma import CrossConfounderRobustnessMargin

import croma_sql


def reference(cohort, m):
    """`croma` on float64, since it works in the precision it is given.

    It divides by |z| + 1e-12, so it is given vectors of unit length."""
    vectors = cohort.vectors.astype(np.float64)
    vectors /= np.abs(vectors).max(axis=1, keepdims=True)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    manifest = pd.DataFrame(
        {
            "sample_id": cohort.ids,
            "image_path": cohort.ids,
            "label": cohort.label,
            "centre": cohort.confounder,
            "group_id": cohort.group,
        }
    )
    return CrossConfounderRobustnessMargin.compute(
        vectors, manifest, confounder_column="centre", m=m
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
