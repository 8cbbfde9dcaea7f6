"""How often 95 % intervals hold the truth where tiles of one slide resemble each other."""

import numpy as np
import polars as pl
from scipy.integrate import quad
from scipy.stats import norm

import croma_sql

COHORTS, TOGETHER = 500, 25
SLIDES, TILES = 400, 10
MEAN, SPREAD, ALIKE = 0.15, 0.4, 0.4  # of atanh(margin); intraclass correlation
LEAST, MOST = 0.92, 0.97

LOWEST = norm.ppf(0.10)
TRUTH = {
    "croma": np.tanh(MEAN),
    "f0": norm.cdf(-MEAN / SPREAD),
    "ltm10": quad(lambda z: np.tanh(MEAN + SPREAD * z) * norm.pdf(z) / 0.10, -10, LOWEST)[0],
}


def cohorts(seed, slides):
    """`TOGETHER` cohorts of slides whose tiles resemble each other."""
    rng = np.random.default_rng(seed)
    slide = rng.standard_normal((TOGETHER, slides, 1))
    tile = rng.standard_normal((TOGETHER, slides, TILES))
    margin = np.tanh(MEAN + SPREAD * (np.sqrt(ALIKE) * slide + np.sqrt(1 - ALIKE) * tile))
    cohort, group, _ = np.indices(margin.shape)
    _, tile_id = np.indices((TOGETHER, slides * TILES))
    columns = {"cohort": cohort, "group_id": group, "tile": tile_id, "margin": margin}
    return pl.DataFrame({name: column.ravel() for name, column in columns.items()})


def coverage(n_cohorts, group, slides=SLIDES):
    """Share of cohorts whose interval holds the truth, by statistic."""
    found = pl.concat(
        croma_sql.bootstrap(
            cohorts(seed, slides), by="cohort", group=group, draws=800, seed=1000 + seed
        )
        for seed in range(n_cohorts // TOGETHER)
    )
    truth = pl.col("statistic").replace_strict(TRUTH, return_dtype=pl.Float64)
    held = found.group_by("statistic").agg(share=truth.is_between("lo", "hi").mean())
    return dict(held.iter_rows())


def test_groups_make_the_interval_hold_what_it_says():
    held = coverage(COHORTS, "group_id")
    assert all(LEAST <= share <= MOST for share in held.values()), held
    assert held.keys() == TRUTH.keys()


def test_tiles_taken_as_independent_do_not():
    held = coverage(100, "tile")
    assert all(share < 0.80 for share in held.values()), held


def test_few_groups_hold_it_as_seldom_as_the_documentation_says():
    """With 10 tiles per slide here and 30 there."""
    held = coverage(1000, "group_id", slides=5)
    expected = {"croma": 0.84, "f0": 0.83, "ltm10": 0.64}
    for name, share in held.items():
        assert abs(share - expected[name]) < 0.05, held
