"""Cohorts with a planted effect of the centre, warehouses of them, and ComBat as published."""

import contextlib
import io
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
from neuroCombat import neuroCombat
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GroupKFold, cross_val_predict

import croma_sql
from croma_sql.warehouse.layout import embeddings_path

SELECT = """
    SELECT sample_id, class AS label, centre AS confounder, slide AS group_id
    FROM samples WHERE NOT elsewhere
"""


@dataclass(frozen=True)
class Planted:
    """Vectors of tiles; ``vectors`` = biology + noise + what the centre does."""

    vectors: np.ndarray
    biology: np.ndarray
    label: np.ndarray
    centre: np.ndarray
    slide: np.ndarray


def planted(seed=0, n=600, d=32, shift=2.0, interaction=0.0, scale=1.0, slides=30, unbalanced=0.0):
    """Two labels in each of 30 slides, three centres; the centre shifts, and more if asked.

    interaction : how much of the difference between tumour and normal, of 4, centre B hides
    scale : spread of centre C, of 1 elsewhere
    unbalanced : how much more tumour there is in centre A, 0 to 0.5
    """
    rng = np.random.default_rng(seed)
    slide = np.arange(n) % slides
    centre = slide % 3
    label = (rng.random(n) < 0.5 + unbalanced * (centre == 0)).astype(int)
    direction = rng.standard_normal((5, d))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    biology = 4.0 * direction[0] * (label - 0.5)[:, None] + 3.0 * direction[4]
    noise = 0.1 * rng.standard_normal((slides, d))[slide] + 0.4 * rng.standard_normal((n, d))
    biology = biology + noise * np.where(centre == 2, scale, 1.0)[:, None]
    effect = shift * direction[1:4][centre]
    effect = effect - interaction * direction[0] * ((label - 0.5) * (centre == 1))[:, None]
    names = np.array(["A", "B", "C"])[centre], np.array(["normal", "tumour"])[label]
    return Planted(biology + effect, biology, names[1], names[0], np.array(slide))


def published(vectors, confounder, label=None, age=None):
    """ComBat of neuroCombat: the harmonised vectors and its estimates."""
    columns = {"batch": confounder} | ({} if label is None else {"label": label})
    columns |= {} if age is None else {"age": age}
    with contextlib.redirect_stdout(io.StringIO()):
        found = neuroCombat(
            np.asarray(vectors, np.float64).T,
            pd.DataFrame(columns),
            "batch",
            categorical_cols=None if label is None else ["label"],
            continuous_cols=None if age is None else ["age"],
        )
    return found["data"].T, found["estimates"]


def probe(vectors, target, group):
    """Balanced accuracy of a linear probe in slides that it has not seen."""
    model = LogisticRegression(max_iter=1000)
    folds = GroupKFold(5)
    predicted = cross_val_predict(model, vectors, target, groups=group, cv=folds)
    return balanced_accuracy_score(target, predicted)


def tiles(n=2600, dtype=np.float16, **options):
    """Tiles in no order; every 97th is not in the benchmark."""
    cohort = planted(n=n, **options)
    order = np.random.default_rng(1).permutation(n)
    kind = {np.float16: pl.Float16, np.float32: pl.Float32, np.float64: pl.Float64}[dtype]
    vectors = cohort.vectors[order].astype(dtype)
    return pl.DataFrame(
        {
            "sample_id": [f"t{one:05d}" for one in order],
            "embedding": pl.Series(vectors, dtype=pl.Array(kind, vectors.shape[1])),
            "class": cohort.label[order],
            "centre": cohort.centre[order],
            "slide": [f"s{slide}" for slide in cohort.slide[order]],
            "age": (cohort.slide[order] * 7919 % 61 + 30).astype(np.int16),
            "elsewhere": order % 97 == 0,
        }
    )


def built(root, frame, datasets=1, select=SELECT, encoder="e"):
    for part in range(datasets):
        some = frame.gather_every(datasets, part)
        croma_sql.import_embeddings(
            root, some, encoder=encoder, dataset=f"d{part}", samples=some.drop("embedding"),
            on_bad_vectors="null",
        )  # fmt: skip
    croma_sql.add_benchmark(root, "b", select)
    return root


def read(root, encoder, dataset="d0"):
    return pl.read_parquet(embeddings_path(root, encoder, dataset), hive_partitioning=False)


def contents(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
