"""Units under several scanners, of encoders that are good, or collapsed in one way or another."""

import numpy as np
import polars as pl

import croma_sql

SCANNERS = ["AT2", "GT450", "HXR1", "HXR2"]
SELECT = "SELECT sample_id, patient AS unit, scanner AS acquisition FROM samples"


def vectors(seed, n=40, d=48, noise=0.4, scanners=4):
    """(scanners, units, d): biology of length 1, and noise of a length from each scanner."""
    rng = np.random.default_rng(seed)
    biology = rng.standard_normal((n, d)) / np.sqrt(d)
    return biology + noise * rng.standard_normal((scanners, n, d)) / np.sqrt(d)


def offset(seed, length, d=48):
    """An offset common to all vectors."""
    at = np.random.default_rng(1000 + seed).standard_normal(d)
    return length * at / np.linalg.norm(at)


def good(seed, **shape):
    return vectors(seed, **shape)


def in_a_cone(seed, **shape):
    """As good, but all vectors point nearly one way."""
    return vectors(seed, noise=0.2, **shape) + offset(seed, 4.2)


def compact(seed, **shape):
    """As a ResNet of natural images: hardly any biology, in a cone, so that nothing moves far."""
    return vectors(seed, noise=2.2, **shape) + offset(seed, 7.0)


def noisy(seed, **shape):
    """As compact, without the cone: units move far."""
    return vectors(seed, noise=2.2, **shape)


def collapsed(seed, **shape):
    """All vectors within 1e-3 of each other, with nothing of the unit left in them."""
    vectors_of_nobody = np.random.default_rng(seed).standard_normal(vectors(seed, **shape).shape)
    return offset(seed, 1.0) + 1e-3 * vectors_of_nobody / np.sqrt(48)


def collapsed_but_apart(seed, **shape):
    """All vectors within 1e-3 of each other, in the pattern of a good encoder."""
    return offset(seed, 1.0) + 1e-3 * vectors(seed, **shape)


def collapsed_but_for_three(seed, **shape):
    """As collapsed, but three units lie far from the others and from each other."""
    found = collapsed(seed, **shape)
    found[:, :3] = vectors(seed, **shape)[:, :3]
    return found


def on_a_line(seed, n=40, scanners=4):
    """One number per unit, the same under every scanner but for a little."""
    rng = np.random.default_rng(seed)
    where = rng.uniform(-1, 1, n) + 0.001 * rng.standard_normal((scanners, n))
    return offset(seed, 1.0) + where[..., None] * offset(seed + 1, 1.0)


def tiles(found, attributes=None, per_unit=1, seed=0):
    """Frame of samples; the mean vector of each unit's tiles is its vector."""
    rng = np.random.default_rng(seed)
    scanners, n, d = found.shape
    around = rng.standard_normal((scanners, n, per_unit, d)) / 10
    around -= around.mean(axis=2, keepdims=True)
    each = (found[:, :, None] + around).reshape(-1, d) if per_unit > 1 else found.reshape(-1, d)
    scanner = np.repeat(np.arange(scanners), n * per_unit)
    patient = np.tile(np.repeat(np.arange(n), per_unit), scanners)
    return pl.DataFrame(
        {
            "sample_id": [f"tile {i:06d}" for i in range(len(each))],
            "patient": [f"p{p:03d}" for p in patient],
            "scanner": [SCANNERS[s] for s in scanner],
            "embedding": pl.Series(each, dtype=pl.Array(pl.Float64, d)),
            **{
                name: pl.Series(values).gather(patient)
                for name, values in (attributes or {}).items()
            },
        }
    )


def warehouse(root, encoders, attributes=None, per_unit=1, permutations=19):
    """Compare the units of encoders {name: (scanners, units, d)}; give a connection."""
    for name, found in encoders.items():
        frame = tiles(found, attributes, per_unit)
        samples = frame.drop("embedding")
        croma_sql.import_embeddings(root, frame, encoder=name, dataset="d", samples=samples)
    croma_sql.add_benchmark(root, "scanners", SELECT)
    croma_sql.score_consistency(root, permutations=permutations)
    return croma_sql.connect(root)
