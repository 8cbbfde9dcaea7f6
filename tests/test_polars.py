"""What only Polars users see: engines, contexts, types."""

import datetime

import numpy as np
import polars as pl
import pytest
from cohorts import random_cohort
from polars.testing import assert_series_equal

import croma_sql

MARGIN = pl.col("embedding").croma.margin("label", "confounder", "group_id", sample_id="sample_id")
ENGINES = ["in-memory", "streaming"]


@pytest.fixture
def encoders():
    """Two encoders of one cohort in one shuffled frame, and their margins one by one."""
    cohorts = {name: random_cohort(seed, n=150) for seed, name in enumerate("ab")}
    frame = pl.concat(c.frame().with_columns(encoder=pl.lit(name)) for name, c in cohorts.items())
    alone = pl.concat(
        croma_sql.margins(**c.arguments()).with_columns(encoder=pl.lit(name))
        for name, c in cohorts.items()
    ).select("encoder", "sample_id", "margin")
    return frame.sample(fraction=1, shuffle=True, seed=0), alone.sort("encoder", "sample_id")


@pytest.mark.parametrize("engine", ENGINES)
def test_over_and_agg_score_each_group_by_itself(encoders, engine):
    frame, alone = encoders
    lazy = frame.lazy()
    over = lazy.with_columns(margin=MARGIN.over("encoder")).sort("encoder", "sample_id")
    assert_series_equal(over.collect(engine=engine)["margin"], alone["margin"], check_exact=True)
    agg = lazy.group_by("encoder").agg("sample_id", margin=MARGIN).explode("sample_id", "margin")
    found = agg.sort("encoder", "sample_id").collect(engine=engine)
    assert_series_equal(found["margin"], alone["margin"], check_exact=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_later_filter_does_not_shrink_the_cohort(encoders, engine):
    frame, alone = encoders
    one = frame.filter(encoder="a").lazy().with_columns(margin=MARGIN)
    found = one.filter(pl.col("sample_id") < "s00020").sort("sample_id").collect(engine=engine)
    expected = alone.filter(pl.col("sample_id") < "s00020", encoder="a")
    assert_series_equal(found["margin"], expected["margin"], check_exact=True)


def test_tails_are_the_same_bits_in_select_and_group_by():
    x = np.sin(np.arange(200_000.0))
    frame = pl.DataFrame({"x": x, "one": 1})
    tail = pl.col("x").croma.ltm(0.1)
    (selected,), (grouped,) = frame.select(tail)["x"], frame.group_by("one").agg(tail)["x"]
    import duckdb

    with croma_sql.register(duckdb.connect()) as con:
        con.register("t", frame)
        assert con.sql("SELECT ltm(x, 0.1) FROM t").fetchall() == [(selected,)]
    assert selected == grouped


def test_schema_is_known_before_the_search(encoders):
    lazy = encoders[0].lazy()
    assert lazy.select(MARGIN).collect_schema() == {"embedding": pl.Float64}
    lists = pl.col("embedding").croma.typed_neighbours("label", "confounder", "group_id")
    assert lazy.select(lists).collect_schema()["embedding"] == pl.Struct(
        {
            "so_id": pl.List(pl.Int64),
            "so_distance": pl.List(pl.Float64),
            "os_id": pl.List(pl.Int64),
            "os_distance": pl.List(pl.Float64),
        }
    )
    assert (
        lazy.filter(encoder="a").select(lists).collect().schema
        == lazy.select(lists).collect_schema()
    )


@pytest.mark.parametrize(
    "dtype",
    [pl.Categorical, pl.Enum(["class0", "class1"]), pl.Int8, pl.Boolean, pl.Date, pl.Float64],
)
def test_labels_of_any_type(dtype):
    frame = random_cohort(0).frame()
    expected = frame.select(MARGIN)
    if dtype not in (pl.Categorical, pl.Enum(["class0", "class1"])):
        values = {"class0": 0, "class1": 1}
        label = pl.col("label").replace_strict(values)
        if dtype == pl.Date:
            label = pl.lit(datetime.date(2026, 1, 1)) + pl.duration(days=label)
        frame = frame.with_columns(label=label)
    frame = frame.with_columns(pl.col("label").cast(dtype))
    assert frame.select(MARGIN).equals(expected)
    arrays = croma_sql.margins(
        *(frame[c] for c in ("embedding", "label", "confounder", "group_id")),
        sample_id=frame["sample_id"],
    )
    assert arrays["margin"].equals(expected["embedding"])
    assert arrays["sample_id"].equals(frame["sample_id"])


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s,
        lambda s: s.cast(pl.List(pl.Float64)),
        lambda s: s.append(s.clear()),
        lambda s: pl.concat([s[:1], s[1:]], rechunk=False),
    ],
)
def test_vectors_in_any_column(make):
    frame = random_cohort(0).frame()
    expected = frame.select(MARGIN)
    assert frame.with_columns(make(frame["embedding"].clone())).select(MARGIN).equals(expected)
    longer = pl.concat([frame.head(3), frame])
    assert longer.slice(3).select(MARGIN).equals(expected)


def test_an_empty_frame_has_no_margins():
    empty = random_cohort(0).frame().clear()
    assert empty.select(MARGIN)["embedding"].to_list() == []
    assert empty.select(pl.col("group_id").cast(pl.Float64).croma.ltm()).item() is None
    columns = ("embedding", "label", "confounder", "group_id")
    assert croma_sql.margins(*(empty[c] for c in columns)).is_empty()
    assert croma_sql.typed_neighbours(*(empty[c] for c in columns)).is_empty()


def test_iterators_are_read_once():
    cohort = random_cohort(0)
    columns = ("label", "confounder", "group")
    iterators = {name: iter(getattr(cohort, name).tolist()) for name in columns}
    found = croma_sql.margins(cohort.vectors, **iterators)
    assert found["label"].to_list() == cohort.label.tolist()


def test_masked_values_are_missing():
    cohort = random_cohort(0)
    masked = np.ma.masked_array(cohort.vectors, mask=False)
    masked[3, 2] = np.ma.masked
    found = croma_sql.margins(**cohort.arguments() | {"embeddings": masked}, on_bad_vectors="null")
    assert found.filter(undefined_reason="bad_vector")["sample_id"].to_list() == [cohort.ids[3]]


def test_neighbours_have_ids_of_the_type_that_was_given():
    cohort = random_cohort(0)
    given = cohort.arguments() | {"sample_id": np.arange(200) * 10}
    edges = croma_sql.typed_neighbours(**given, m=3)
    assert edges.schema["neighbour_id"] == edges.schema["sample_id"] == pl.Int64
    assert edges.join(croma_sql.margins(**given), on="sample_id", how="semi").equals(edges)
