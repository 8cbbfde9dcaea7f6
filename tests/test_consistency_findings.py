"""What the metrics find where it is known what was done to the vectors."""

import numpy as np
import polars as pl
import pytest
from acquired import rotated, scanned

import croma_sql


def consistent(vectors, **options):
    """Compare vectors (S, N, d), one sample each."""
    count, n, d = vectors.shape
    return croma_sql.consistency(
        vectors.reshape(-1, d),
        np.tile([f"p{p:03}" for p in range(n)], count),
        np.repeat([f"scanner {s}" for s in range(count)], n),
        permutations=0,
        **options,
    )


def by_pair(found):
    """Mean of every pairwise metric, higher is more consistent."""
    return (
        found.unit_pairs.group_by("acquisition_a", "acquisition_b")
        .agg(
            closeness=-pl.col("distance").mean(),
            mr_1nn=(pl.col("rank") == 1).mean(),
            top_3=(pl.col("rank") <= 3).mean(),
            profile_r=pl.col("profile_r").mean(),
        )
        .join(found.acquisition_pairs, on=["acquisition_a", "acquisition_b"])
        .drop("mantel_p", "permutations")
        .filter(pl.col("acquisition_a") < pl.col("acquisition_b"))
    )


def iok(found):
    """Mean IoK by K, from 1 to the depth."""
    n, depth = found.unit_neighbourhoods.select("n_units", "depth").row(0)
    places = found.unit_neighbourhoods["shared_at"].explode().to_numpy()
    return np.array([np.count_nonzero(places <= k) / k / n for k in range(1, depth + 1)])


def test_two_devices_of_one_model_are_the_most_consistent_pair():
    vectors = scanned(0, units=60, scanners=5, noise=0.8, offset=0.6)
    vectors[3] = vectors[1] + 0.05 * np.random.default_rng(1).standard_normal(vectors[1].shape)
    found = by_pair(consistent(vectors))
    assert len(found) == 10
    for metric in ("closeness", "mr_1nn", "top_3", "profile_r", "mantel_r"):
        best = found.sort(metric, descending=True)
        assert best.row(0)[:2] == ("scanner 1", "scanner 3"), metric
        assert best[metric][0] > best[metric][1], metric


def test_a_rotation_ruins_what_is_across_and_leaves_what_is_within():
    one = scanned(0, units=50, scanners=1, d=24)[0]
    before, after = consistent(np.stack([one] * 3)), consistent(rotated(1, np.stack([one] * 3)))
    assert by_pair(before)["closeness"].to_list() == [0, 0, 0]
    assert by_pair(before)["mr_1nn"].to_list() == [1, 1, 1]
    assert by_pair(after)["closeness"].max() < -0.8
    assert by_pair(after)["mr_1nn"].max() < 0.2
    for found in (before, after):
        assert by_pair(found)["mantel_r"].to_numpy() == pytest.approx(np.ones(3), abs=1e-9)
        assert by_pair(found)["profile_r"].to_numpy() == pytest.approx(np.ones(3), abs=1e-9)
        assert (iok(found) == 1).all()
    assert after.units["intra_distance"].to_numpy() == pytest.approx(
        before.units["intra_distance"].to_numpy(), abs=1e-9
    )
    own = [found.acquisitions["effective_rank"].to_numpy()[:3] for found in (before, after)]
    assert own[1] == pytest.approx(own[0], abs=1e-9)


def test_a_collapsed_encoder_is_near_itself_and_near_all_else():
    """All vectors within 1e-3: tiny distances, which are no smaller against each other."""
    healthy = scanned(0, units=40, noise=0.4, offset=0.3)
    collapsed = 1.0 + 1e-3 * scanned(1, units=40, noise=1.0, offset=1.0)
    d_cos, relative = {}, {}
    for name, vectors in (("healthy", healthy), ("collapsed", collapsed)):
        found = consistent(vectors)
        d_cos[name] = found.unit_pairs["distance"].mean()
        relative[name] = d_cos[name] / found.units["intra_distance"].mean()
    assert d_cos["collapsed"] < 1e-5 < d_cos["healthy"]
    assert relative["collapsed"] > 1 > relative["healthy"]
    assert consistent(collapsed).acquisitions["mean_distance"].max() < 1e-5


def test_vectors_on_a_line_have_a_low_effective_rank():
    along = np.random.default_rng(0).standard_normal((3, 40, 1))
    line = np.array([1.0, 0.0, 0.0, 0.0]) + 1e-4 * along * np.array([0.0, 1.0, 0.5, -1.0])
    assert consistent(line).acquisitions["effective_rank"].max() < 1.01
    assert consistent(scanned(0, d=4)).acquisitions["effective_rank"].min() > 3


def test_identical_scanners_are_perfectly_consistent():
    found = consistent(np.stack([scanned(0, scanners=1)[0]] * 4))
    assert found.unit_pairs["distance"].max() == 0
    assert found.unit_pairs["rank"].max() == 1
    assert (found.unit_pairs["nearest_unit"] == found.unit_pairs["unit"]).all()
    assert (iok(found) == 1).all()


def test_every_neighbourhood_is_shared_in_the_end():
    shares = iok(consistent(scanned(0, noise=3.0)))
    assert shares[-1] == 1
    assert shares[0] < 0.5
