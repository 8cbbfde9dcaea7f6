"""Units under several acquisitions for tests: how scanners may change what an encoder sees."""

import numpy as np
import polars as pl


def scanned(seed, *, units=40, scanners=3, d=16, noise=0.5, offset=0.5, spread=1.0):
    """Vectors (S, N, d) of units, moved by their scanner and by chance."""
    rng = np.random.default_rng(seed)
    base = spread * rng.standard_normal((units, d))
    moved = base + offset * rng.standard_normal((scanners, 1, d))
    return moved + noise * rng.standard_normal((scanners, units, d))


def rotated(seed, vectors):
    """Turn the space of each scanner but the first."""
    rng = np.random.default_rng(seed)
    d = vectors.shape[2]
    turns = [np.eye(d), *(np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in vectors[1:])]
    return np.stack([one @ turn for one, turn in zip(vectors, turns, strict=True)])


def samples(seed, *, units=12, scanners=3, d=8, most=4, dtype=np.float32):
    """A frame of samples, some of each unit under each scanner, in any order."""
    rng = np.random.default_rng(seed)
    means = scanned(seed, units=units, scanners=scanners, d=d)
    cells = [
        (s, p)
        for s in range(scanners)
        for p in range(units)
        for _ in range(rng.integers(1, most + 1))
    ]
    vectors = np.stack([means[cell] for cell in cells])
    vectors += 0.3 * rng.standard_normal(vectors.shape)
    inner = pl.Float64 if dtype == np.float64 else pl.Float32
    frame = pl.DataFrame(
        {
            "unit": [f"p{p}" for _, p in cells],
            "acquisition": [f"scanner {s}" for s, _ in cells],
            "embedding": pl.Series(vectors.astype(dtype), dtype=pl.Array(inner, d)),
        }
    )
    return frame.sample(fraction=1.0, shuffle=True, seed=seed)
