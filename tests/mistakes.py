"""What the tests of mistakes share: a small cohort, ways to spoil it, and what a message holds."""

import re

import polars as pl
import pytest
from cohorts import random_cohort

import croma_sql
from croma_sql import CromaSqlError

SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"


def tiles(n=40, **columns):
    frame = random_cohort(0, n=n, groups=8).frame().with_columns(sample_id=pl.Series(ids(n)))
    return frame.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def ids(n):
    return [f"s{i}" for i in range(n)]


def raises(*parts):
    """The message holds these parts, in this order."""
    return pytest.raises(CromaSqlError, match="(?s)" + ".*".join(re.escape(part) for part in parts))


def with_holes(value, rows=(3, 7)):
    frame = tiles()
    vectors = frame["embedding"].to_numpy().copy()
    vectors[list(rows)] = value
    return frame.with_columns(embedding=pl.Series(vectors, dtype=pl.Array(pl.Float64, 16)))


def margins_of(frame, **options):
    columns = ("embedding", "label", "confounder", "group_id")
    given = {"sample_id": frame["sample_id"]} | options
    return croma_sql.margins(*(frame[column] for column in columns), **given)


def import_tiles(root, frame=None, **options):
    frame = tiles() if frame is None else frame
    given = {"encoder": "e", "dataset": "d", "samples": frame} | options
    return croma_sql.import_embeddings(root, frame, **given)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-100])
