"""A warehouse of units under scanners for tests, compared or to be."""

import numpy as np
import polars as pl

import croma_sql

SELECT = "SELECT sample_id, patient AS unit, scanner AS acquisition FROM samples"
FEW = {"permutations": 9}


def tiles(units=7, scanners=("AT2", "GT450", "P1000"), each=3, d=5, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    rows = [(f"u{u}", s, t) for u in range(units) for s in scanners for t in range(each)]
    frame = pl.DataFrame(rows, schema=["patient", "scanner", "tile"], orient="row")
    vectors = rng.normal(size=(len(rows), d)).astype(dtype)
    return frame.select(
        pl.format("{}/{}/{}", "patient", "scanner", "tile").alias("sample_id"),
        "patient",
        "scanner",
        "tile",
        embedding=pl.Series(vectors.tolist()) if dtype == np.float16 else vectors,
    )


def add_vectors(root, frame, encoder="e", dataset="d", **options):
    """float16 goes through Arrow: Polars has none."""
    vectors = np.stack(frame["embedding"].to_numpy())
    croma_sql.import_embeddings(
        root, vectors, encoder=encoder, dataset=dataset, ids=frame["sample_id"],
        samples=frame.drop("embedding"), **options,
    )  # fmt: skip


def built(root, frame=None, **options):
    add_vectors(root, tiles() if frame is None else frame, **options)
    croma_sql.add_benchmark(root, "b", SELECT)
    return root


def score(root, **options):
    (done,) = croma_sql.score_consistency(root, **(FEW | options))
    return done


def with_vectors(frame, rows, value):
    vectors = np.stack(frame["embedding"].to_numpy()).copy()
    vectors[rows] = value
    return frame.with_columns(embedding=vectors)


def contents(root):
    return {path: path.read_bytes() for path in (root / "scores").rglob("*") if path.is_file()}


def path_of(root, table, benchmark="b", encoder="e"):
    return root / f"scores/{table}/benchmark={benchmark}/encoder={encoder}/{table}.parquet"


def rows_of(frame, unit, scanner):
    is_there = (frame["patient"] == unit) & (frame["scanner"] == scanner)
    return is_there.arg_true().to_list()
