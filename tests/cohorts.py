"""Cohorts for tests: what a real one looks like, and every way in which one can be awkward."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl


@dataclass(frozen=True)
class Cohort:
    vectors: np.ndarray
    label: np.ndarray
    confounder: np.ndarray
    group: np.ndarray
    ids: np.ndarray

    def rows(self, order):
        return Cohort(*(column[order] for column in self.columns()))

    def columns(self):
        return self.vectors, self.label, self.confounder, self.group, self.ids

    def frame(self):
        return pl.DataFrame(
            {
                "sample_id": self.ids,
                "embedding": pl.Series(
                    self.vectors, dtype=pl.Array(_polars_type(self.vectors), self.vectors.shape[1])
                ),
                "label": self.label,
                "confounder": self.confounder,
                "group_id": self.group,
            }
        )

    def arguments(self):
        return {
            "embeddings": self.vectors,
            "label": self.label,
            "confounder": self.confounder,
            "group": self.group,
            "sample_id": self.ids,
        }


def random_cohort(
    seed, n=200, d=16, labels=2, confounders=2, groups=20, dtype=np.float64, effect=1.0
):
    """Vectors with a label and a confounder direction; a group lies in one confounder."""
    rng = np.random.default_rng(seed)
    label, group = rng.integers(labels, size=n), rng.integers(groups, size=n)
    confounder = group % confounders
    vectors = rng.standard_normal((n, d)) + rng.standard_normal(d)
    vectors += effect * rng.standard_normal((labels, d))[label]
    vectors += effect * rng.standard_normal((confounders, d))[confounder]
    ids = np.array([f"s{i:05d}" for i in rng.permutation(n)])
    named = (
        np.char.add(prefix, code.astype(str))
        for prefix, code in (("class", label), ("centre", confounder), ("slide", group))
    )
    return Cohort(vectors.astype(dtype), *named, ids)


PLANTED = {  # effects of scanner and centre, as multiples of that of the label
    "scanner most": (1.4, 0.5),
    "both": (1.2, 1.2),
    "centre most": (0.5, 1.4),
    "neither": (0.0, 0.0),
}


def planted(seed, d=32):
    """Samples, and vectors per encoder of `PLANTED`.

    Two centres share two scanners, 3 slides to 2. Three more centres have a scanner of their own,
    but for a few tiles on the next one's: there, scanner and centre are nearly the same thing.
    """
    rng = np.random.default_rng(seed)
    shared = [
        (centre, scanner) for centre in (0, 1) for scanner in (centre,) * 9 + (1 - centre,) * 6
    ]
    own = [(centre, centre) for centre in (2, 3, 4) for _ in range(20)]
    few = [(2, 3), (3, 4), (4, 2)]
    tiles_of = [10] * len(shared + own) + [4] * len(few)
    slide = np.repeat(np.arange(len(tiles_of)), tiles_of)
    centre, scanner = np.array(shared + own + few)[slide].T
    tumour = rng.integers(2, size=len(slide))
    samples = pl.DataFrame(
        {
            "sample_id": [f"t{i:03d}" for i in rng.permutation(len(slide))],
            "class": np.where(tumour, "tumour", "normal"),
            "scanner": np.char.add("scanner", scanner.astype(str)),
            "centre": np.char.add("centre", centre.astype(str)),
            "slide": slide,
        }
    )
    directions = 4.5 * np.linalg.qr(rng.standard_normal((d, d)))[0]
    vectors = {}
    for encoder, (of_scanner, of_centre) in PLANTED.items():
        vectors[encoder] = rng.standard_normal((len(slide), d)) + directions[tumour]
        vectors[encoder] += (
            of_scanner * directions[2 + scanner] + of_centre * directions[7 + centre]
        )
        vectors[encoder] += 0.3 * rng.standard_normal((len(tiles_of), d))[slide]
    return samples, vectors


def _one_sample_groups(seed):
    cohort = random_cohort(seed, n=150, groups=150)
    return replace(cohort, group=cohort.ids)


def _unbalanced_cells(seed):
    cohort = random_cohort(seed, n=400, groups=40)
    rng = np.random.default_rng(seed)
    rare = (cohort.label == "class1") & (cohort.confounder == "centre1")
    return cohort.rows(np.flatnonzero(~rare | (rng.random(400) < 0.3)))


def _duplicates(seed):
    """Integer vectors, so that distances are exact and ties are ties; few distinct ones."""
    cohort = random_cohort(seed, n=240, groups=24)
    rng = np.random.default_rng(seed)
    return replace(cohort, vectors=rng.integers(-2, 3, (240, 3)) * 1.0 + [5.0, 0.0, 0.0])


def _tied_at_every_depth(seed):
    """Integer vectors of one length: whole blocks of candidates at each of a few distances."""
    cohort = random_cohort(seed, n=300, groups=60)
    rng = np.random.default_rng(seed)
    return replace(cohort, vectors=rng.choice([-1.0, 1.0], (300, 8)))


def _last_bit(seed):
    """Copies of few vectors that differ in the last bit of one float32, in every cell."""
    cohort = random_cohort(seed, n=240, d=24, groups=24, dtype=np.float32)
    rng = np.random.default_rng(seed)
    vectors = cohort.vectors[rng.integers(12, size=240)]
    at = np.arange(240), rng.integers(24, size=240)
    vectors[at] = np.nextafter(vectors[at], np.float32(np.inf))
    return replace(cohort, vectors=vectors)


def _of_any_length(seed):
    """float32 between the smallest denormals and 1e30, from row to row."""
    cohort = random_cohort(seed)
    length = 10.0 ** np.random.default_rng(seed).choice([-40, -38, -30, 0, 30], 200)
    return replace(cohort, vectors=(cohort.vectors * length[:, None]).astype(np.float32))


def _near_collapsed(seed):
    """One direction, with distances around 1e-4."""
    cohort = random_cohort(seed, n=200, d=64)
    return replace(cohort, vectors=10.0 + 0.1 * cohort.vectors)


def _outlier(seed):
    """One vector far from all the others loosens every error bound."""
    cohort = _near_collapsed(seed)
    vectors = cohort.vectors.copy()
    vectors[0] *= -1
    return replace(cohort, vectors=vectors)


AWKWARD = {
    "two by two": random_cohort,
    "many labels": lambda seed: random_cohort(seed, 600, labels=12, confounders=7, groups=60),
    "one-sample groups": _one_sample_groups,
    "unbalanced cells": _unbalanced_cells,
    "duplicates": _duplicates,
    "tied at every depth": _tied_at_every_depth,
    "last bit": _last_bit,
    "of any length": _of_any_length,
    "near-collapsed": _near_collapsed,
    "outlier": _outlier,
    "wide": lambda seed: random_cohort(seed, n=120, d=4608, groups=12),
    "float16": lambda seed: random_cohort(seed, dtype=np.float16),
    "float32": lambda seed: random_cohort(seed, dtype=np.float32),
    "tiny": lambda seed: replace(
        random_cohort(seed),
        vectors=random_cohort(seed).vectors.astype(np.float32) * np.float32(1e-30),
    ),
    "huge product": lambda seed: replace(
        random_cohort(seed), vectors=random_cohort(seed).vectors * 1e100
    ),
    "tiny product": lambda seed: replace(
        random_cohort(seed), vectors=random_cohort(seed).vectors * 1e-80
    ),
    "huge": lambda seed: replace(random_cohort(seed), vectors=random_cohort(seed).vectors * 1e200),
}


def _polars_type(vectors):
    return {"float16": pl.Float16, "float32": pl.Float32, "float64": pl.Float64}[vectors.dtype.name]
