"""Tiles of slides to be pooled, and what comes of that."""

import numpy as np
import polars as pl

import croma_sql
from croma_sql.warehouse.layout import samples_path

HOWS = ("mean", "max", "mean-normalised")
KINDS = {np.float16: pl.Float16, np.float32: pl.Float32, np.float64: pl.Float64}


def tiles(n=1200, d=24, slides=17, dtype=np.float16, seed=0):
    """Tiles of slides, each seen by two scanners, in no order."""
    rng = np.random.default_rng(seed)
    slide, scanner = rng.integers(slides, size=n), rng.integers(2, size=n)
    vectors = rng.standard_normal((n, d)) + 0.3 * slide[:, None] * rng.standard_normal(d)
    vectors *= 10.0 ** rng.integers(-2, 3, (n, 1))
    return pl.DataFrame(
        {
            "sample_id": [f"t{i:05d}" for i in rng.permutation(n)],
            "slide_id": [f"{one:03d}" for one in slide],
            "scanner": np.where(scanner, "GT450", "AT2"),
            "patient": [f"p{one // 2}" for one in slide],
            "age": slide // 2 + 40,
            "x": rng.integers(0, 100_000, n),
            "embedding": pl.Series(vectors.astype(dtype), dtype=pl.Array(KINDS[dtype], d)),
        }
    )


def built(root, frame, encoder="e", dataset="d", **options):
    croma_sql.import_embeddings(
        root, frame, encoder=encoder, dataset=dataset, samples=frame.drop("embedding"), **options
    )
    return root


def pooled(root, **options):
    asked = {"encoder": "e", "to": "e mean", "dataset": "slides"} | options
    return croma_sql.pool(root, **asked)


def naive(frame, by, how):
    """Ids and vectors of groups, each by itself, in extended precision."""
    found = {}
    for values, some in frame.drop_nulls("embedding").group_by(by):
        vectors = some["embedding"].to_numpy().astype(np.longdouble)
        if how == "mean-normalised":
            vectors /= np.sqrt((vectors**2).sum(axis=1))[:, None]
        found[":".join(values)] = vectors.max(axis=0) if how == "max" else vectors.mean(axis=0)
    return dict(sorted(found.items()))


def samples(root, dataset="slides"):
    return pl.read_parquet(samples_path(root, dataset))
