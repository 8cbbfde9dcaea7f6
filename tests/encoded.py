"""Warehouses of which centre encoding is measured."""

from cohorts import random_cohort

import croma_sql

SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"
QUICK = {"trials": 2, "folds": 3, "k_range": (2, 4)}


def built(root, frame, select=SELECT, encoder="e", **options):
    croma_sql.import_embeddings(
        root, frame, encoder=encoder, dataset="d", samples=frame.drop("embedding"), **options
    )
    croma_sql.add_benchmark(root, "b", select)
    return root


def tiles(seed=0, **options):
    return random_cohort(seed, **({"n": 120, "groups": 24, "d": 8} | options)).frame()


def measured(root, **options):
    (done,) = croma_sql.score_centre(root, **(QUICK | options))
    return done


def ask(root, query):
    with croma_sql.connect(root) as con:
        return con.sql(query).pl()


def contents(root):
    return {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def path_of(root, table):
    return root / f"scores/{table}/benchmark=b/encoder=e/{table}.parquet"


def columns(frame, *names):
    return [frame[name] for name in ("embedding", *names)]
