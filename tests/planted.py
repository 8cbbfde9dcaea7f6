"""Cohorts of margins with a fragile subgroup that two attributes define, and shuffled copies."""

import numpy as np
import polars as pl

PLANTED = "scanner = 'warm soft' AND zone = 'border'"


def cohort(seed, slides=120, tiles=40, effect=0.35):
    """Tiles of slides that resemble each other; 3 % of them are fragile, and only these.

    Attributes of slides (scanner, centre, stain, age), of tiles (zone, tissue, focus), with missing
    cells; a quarter of the variance lies between slides.
    """
    rng = np.random.default_rng(seed)
    slide = np.repeat(np.arange(slides), tiles)
    n = len(slide)
    scanner = rng.permutation(np.arange(slides) % 5)[slide]
    zone = rng.choice(4, n, p=[0.15, 0.35, 0.3, 0.2])
    margin = 0.3 + 0.125 * rng.standard_normal(slides)[slide] + 0.217 * rng.standard_normal(n)
    margin -= effect * ((scanner == 0) & (zone == 0))
    return pl.DataFrame(
        {
            "sample_id": [f"tile {i}" for i in range(n)],
            "group_id": slide,
            "scanner": np.array(["warm soft", "cool", "neutral", "old", "new"])[scanner],
            "centre": pl.Series(["Oslo", "Łódź", "Sant Pau", None]).gather(
                rng.integers(4, size=slides)[slide]
            ),
            "stain": rng.integers(3, size=slides)[slide],
            "age": rng.integers(30, 90, size=slides)[slide],
            "zone": np.array(["border", "inside", "fat", "stroma"])[zone],
            "tissue": rng.beta(4, 1, n),
            "focus": pl.Series([True, False, None]).gather(rng.choice(3, n, p=[0.6, 0.3, 0.1])),
            "margin": np.tanh(margin),
        }
    )


def shuffled(frame, copies, whole_groups, seed=0):
    """Copies with the margins of other rows, or of other whole groups (of as many rows)."""
    rng = np.random.default_rng(seed)
    margin = frame["margin"].to_numpy().reshape(frame["group_id"].n_unique(), -1)
    moved = [
        rng.permuted(margin[rng.permutation(len(margin))], axis=1).ravel()
        if whole_groups
        else rng.permutation(margin.ravel())
        for _ in range(copies)
    ]
    return pl.concat([frame] * copies).with_columns(
        margin=pl.Series(np.concatenate(moved)),
        copy=pl.Series(np.repeat(np.arange(copies), len(frame))),
    )
