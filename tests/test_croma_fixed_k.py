"""RI, MaRI, tau, k*, accuracies, support and its causes agree with the package `croma` 1.0.1."""

import warnings
from dataclasses import replace

import numpy as np
import numpy.testing as npt
import pandas as pd
import polars as pl
import pytest
from cohorts import AWKWARD, Cohort, random_cohort
from croma.metrics.base import EVALUATION_DESIGN_ALL, EVALUATION_DESIGN_PAIRED_2X2
from croma.metrics.mari import MarginAwareRobustnessIndex
from croma.metrics.neighbors import _knn_balanced_accuracy_by_k
from croma.metrics.ri import RobustnessIndex
from fixed_k import KS, points, warehouse

CAUSES = {"ss_dominated": 1, "oo_dominated": 2, "mixed": 3}


def reference_inputs(cohort, subsets=None):
    vectors = cohort.vectors.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    manifest = pd.DataFrame(
        {
            "sample_id": cohort.ids, "image_path": cohort.ids, "label": cohort.label,
            "centre": cohort.confounder, "group_id": cohort.group,
            "row": np.arange(len(cohort.ids)),
        }
    ).sort_values("sample_id")  # fmt: skip
    if subsets is not None:
        manifest = manifest.merge(subsets, on="sample_id").sort_values(["subset", "sample_id"])
    return vectors[manifest["row"].to_numpy()], manifest.drop(columns="row").reset_index(drop=True)


def accuracies(vectors, manifest, target, grid):
    """Balanced accuracy by k: per subset, then averaged over those that are larger than k."""
    found = {}
    for _, rows in manifest.groupby(manifest.get("subset", pd.Series("", manifest.index))):
        ks = [k for k in grid if k < len(rows)]
        scores = _knn_balanced_accuracy_by_k(
            vectors[rows.index],
            pd.factorize(rows[target])[0],
            rows["group_id"].to_numpy(),
            ks,
            warn_context="",
        )
        for k in ks:
            found.setdefault(k, []).append(scores[k])
    return {k: np.mean(scores) for k, scores in found.items()}


def agree(con, cohort, subsets=None, ks=KS):
    """Compare every number with croma's, at the k it chooses, and the accuracies at every k."""
    vectors, manifest = reference_inputs(cohort, subsets)
    design = EVALUATION_DESIGN_ALL if subsets is None else EVALUATION_DESIGN_PAIRED_2X2
    con.execute("CREATE OR REPLACE TEMP TABLE grid AS FROM knn_accuracy_at($ks)", {"ks": ks})
    ours = {k: (bio, conf) for _, _, k, bio, conf in con.sql("FROM grid").fetchall()}
    bio, conf = (accuracies(vectors, manifest, target, ks) for target in ("label", "centre"))
    assert set(ours) == set(bio)
    for k in bio:
        assert ours[k] == pytest.approx((bio[k], conf[k]), abs=1e-12)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ri, mari = (
            metric.compute(
                vectors,
                manifest,
                confounder_column="centre",
                k_candidates=ks,
                evaluation_design=design,
            )
            for metric in (RobustnessIndex, MarginAwareRobustnessIndex)
        )
    k_star, median_k = con.sql(
        "SELECT k_star, median_k FROM operating_points_of('grid')"
    ).fetchall()[0]
    best = max(bio.values())
    assert k_star == median_k == min(k for k in bio if bio[k] > best - 1e-12)
    assert bio[ri.k] > best - 1e-12
    compare_at(con, ri, mari, [str(warning.message) for warning in caught])


def compare_at(con, ri, mari, caught):
    frame = con.sql("FROM neighbourhoods_at($k)", params={"k": ri.k}).pl()
    frame = frame.sort("subset", "sample_id")
    npt.assert_allclose(frame["ri"].to_numpy(), ri.sample_values_aligned, atol=1e-12, rtol=0)
    npt.assert_allclose(frame["mari"].to_numpy(), mari.sample_values_aligned, atol=1e-9, rtol=0)
    causes = [CAUSES.get(reason, 0) for reason in frame["unsupported_reason"]]
    assert causes == ri.sample_undefined_types.tolist()
    summary = con.sql(f"FROM {points(con, ri.k)}").pl().row(0, named=True)
    fallback = any("falling back to tau" in message for message in caught)
    assert fallback == (summary["tau_warning"] is not None)
    assert summary["n"] == len(frame)
    for name, expected in {
        "tau": mari.tau,
        "support": ri.support,
        "ss_dominated": ri.ss_dominated_undefined_frac,
        "oo_dominated": ri.oo_dominated_undefined_frac,
        "mixed": ri.mixed_undefined_frac,
    }.items():
        assert summary[name] == pytest.approx(expected, abs=1e-9), name
    if ri.support > 0:
        assert summary["ri"] == pytest.approx(ri.value, abs=1e-12)
        assert summary["mari"] == pytest.approx(mari.value, abs=1e-9)
    else:  # where croma says 0.5
        assert summary["ri"] is summary["mari"] is None


def equal_copies(seed):
    """Ten vectors, eight copies of each: within k = 7 every distance is 0, and exactly."""
    cohort = random_cohort(seed, n=80)
    return replace(cohort, group=cohort.ids, vectors=np.repeat(np.eye(16)[:10], 8, axis=0))


def untyped(seed):
    """Label and confounder together make four far clusters: no SO or OS among the nearest 34."""
    cohort = random_cohort(seed, n=400, groups=40)
    corner = 2 * (cohort.label == "class1") + (cohort.confounder == "centre1")
    return replace(cohort, vectors=np.eye(16)[corner] * 50 + cohort.vectors)


DESIGNS = {
    "random": lambda: random_cohort(0, n=300, groups=30),
    "weak": lambda: random_cohort(1, n=300, groups=30, effect=0.2),
    "several labels": lambda: random_cohort(2, n=400, labels=5, confounders=3, groups=40),
    "one sample per group": lambda: AWKWARD["one-sample groups"](3),
    "unbalanced": lambda: AWKWARD["unbalanced cells"](4),
    "k above the scope": lambda: random_cohort(5, n=20, groups=10),
    "few candidates": lambda: random_cohort(6, n=60, groups=3),
    "untyped": lambda: untyped(7),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_agrees_with_croma(root, name):
    cohort = DESIGNS[name]()
    agree(warehouse(root, {"e": cohort}), cohort)


def test_agrees_with_croma_where_the_median_distance_is_0(root):
    cohort = equal_copies(8)
    con = warehouse(root, {"e": cohort})
    agree(con, cohort, ks=[7])
    (warning,) = con.sql(f"SELECT tau_warning FROM {points(con, 7)}").fetchall()[0]
    assert warning == "the median distance of SO and OS neighbours is 0, so MaRI is close to RI"


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_croma_on_paired_subsets(root, seed):
    """Label pairs under two confounders; in the last, k = 34 is above the size of the subsets."""
    cohort = random_cohort(seed, n=(240, 240, 48)[seed], labels=3, confounders=2, groups=24)
    con = warehouse(root, {"e": cohort}, "FROM croma_label_pairs('samples')")
    subsets = con.sql("SELECT sample_id, subset FROM margins").pl().to_pandas()
    assert subsets["subset"].nunique() == 3
    agree(con, cohort, subsets)


def real(shared, name, confounder, group="group_id"):
    tiles = pl.read_parquet(shared / f"{name}.parquet")
    columns = ("label", confounder, group, "sample_id")
    texts = (tiles[column].cast(pl.String).to_numpy() for column in columns)
    return Cohort(tiles["embedding"].to_numpy(), *texts)


@pytest.mark.parametrize(
    "name",
    [
        ("fsdd_speech/mfcc_t8", "speaker"),
        ("hne_multiscanner/efficientnet_lite0", "scanner", "location_id"),
        ("pbmc_3tech_pca30/pbmc_3tech_pca30", "technology"),
    ],
    ids=lambda name: name[0],
)
def test_agrees_with_croma_on_real_data(root, shared, name):
    cohort = real(shared, *name)
    agree(warehouse(root, {"e": cohort}), cohort)


def test_agrees_with_croma_on_quartets_of_real_data(root, shared):
    cohort = real(shared, "pbmc_3tech_pca30/pbmc_3tech_pca30", "technology")
    con = warehouse(root, {"e": cohort}, "FROM croma_quartets('samples')")
    subsets = con.sql("SELECT sample_id, subset FROM margins").pl().to_pandas()
    assert subsets["subset"].nunique() > 5
    agree(con, cohort, subsets)
