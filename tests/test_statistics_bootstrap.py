"""Intervals of statistics of margins, by resampling groups."""

import duckdb
import naive_bootstrap
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from croma.metrics.bootstrap import bootstrap_pooled_median
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import croma_sql

EVERY = ("croma", "pooled_median", "f0", "mean", "ltm05", "ltm10", "ltm33.3", "q0", "q25", "q97.5")
VALUES = st.one_of(st.none(), st.just(float("nan")), st.integers(-8, 8).map(lambda k: k / 8))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "level": st.sampled_from(["a", "b", None]),
            "subset": st.sampled_from(["u", "v", None]),
            "group": st.sampled_from(["g1", "g2", "g3", "g4", "g5", "g10"]),
            "value": VALUES,
        }
    ),
    min_size=1,
    max_size=40,
)
SCHEMA = {"level": pl.String, "subset": pl.String, "group": pl.String, "value": pl.Float64}


def random_frame(seed, n=600, encoders=2, groups=40):
    """Margins on a grid, so that there are ties and zeros; undefined ones; groups of any size."""
    rng = np.random.default_rng(seed)
    group = np.minimum(rng.geometric(3 / groups, n), groups)
    effect = rng.standard_normal(groups + 1) / 3
    frames = []
    for encoder in range(encoders):
        margin = np.tanh(0.1 + effect[group] + rng.standard_normal(n) / 3)
        margin = np.where(rng.random(n) < 0.5, np.round(margin, 1), margin)
        margin[rng.random(n) < 0.05] = np.nan
        frames.append(
            pl.DataFrame(
                {
                    "encoder": [f"e{encoder:02d}"] * n,
                    "sample_id": np.arange(n),
                    "subset": np.char.add("s", (np.arange(n) % 5).astype(str)),
                    "group_id": np.char.add("slide", group.astype(str)),
                    "margin": margin,
                }
            )
        )
    return pl.concat(frames).sample(fraction=1, shuffle=True, seed=seed)


@pytest.mark.parametrize("subset", [None, "subset"])
@settings(max_examples=40, deadline=None)
@given(rows=ROWS, seed=st.integers(0, 5))
def test_every_statistic_is_that_of_the_pooled_rows_of_each_draw(subset, rows, seed):
    frame = pl.DataFrame(rows, schema=SCHEMA)
    found = croma_sql.bootstrap(
        frame, by="level", value="value", group="group", subset=subset, statistics=EVERY,
        draws=20, seed=seed,
    )  # fmt: skip
    levels = {row["level"] for row in rows}
    expected = naive_bootstrap.drawn(
        EVERY, rows, levels, draws=20, seed=seed, subsets=subset is not None
    )
    assert {(row["level"], row["statistic"]) for row in found.iter_rows(named=True)} == set(
        expected
    )
    for row in found.iter_rows(named=True):
        own = [r for r in rows if r["level"] == row["level"]]
        known = [r for r in own if naive_bootstrap.defined(r["value"])]
        groups = {r["group"] for r in known}
        assert (row["n"], row["n_undefined"], row["n_groups"]) == (
            len(own),
            len(own) - len(known),
            len(groups),
        )
        estimate = naive_bootstrap.statistic(row["statistic"], own, subsets=subset is not None)
        enough = len(groups) >= naive_bootstrap.FEWEST_GROUPS
        drawn = expected[row["level"], row["statistic"]] if enough else []
        assert row["estimate"] == pytest.approx(estimate, abs=1e-12)
        assert (row["lo"], row["hi"]) == pytest.approx(naive_bootstrap.interval(drawn), abs=1e-12)
        assert row["draws"] == sum(value is not None for value in drawn)


def test_estimates_of_26_encoders_are_those_of_sql(con):
    frame = random_frame(0, encoders=26)
    con.register("margins", frame)
    found = croma_sql.bootstrap(
        frame, by="encoder", subset="subset", draws=1,
        statistics=("croma", "pooled_median", "f0", "ltm05", "ltm10", "ltm20", "mean", "q97.5"),
    ).pivot("statistic", index="encoder", values="estimate")  # fmt: skip
    expected = con.sql("""
        WITH defined AS (SELECT * REPLACE (nullif(margin, 'nan') AS margin) FROM margins),
        subsets AS (SELECT encoder, median(margin) AS croma FROM defined GROUP BY encoder, subset)
        SELECT encoder, headline AS croma, pooled_median, f0, ltm05, ltm10, ltm20, mean, "q97.5"
        FROM (SELECT encoder, median(croma) AS headline FROM subsets GROUP BY ALL) JOIN (
            SELECT encoder, median(margin) AS pooled_median, f0(margin) AS f0,
                ltm(margin, 0.05) AS ltm05, ltm(margin) AS ltm10, ltm(margin, 0.20) AS ltm20,
                avg(margin) AS mean, quantile_cont(margin, 0.975::DOUBLE) AS "q97.5"
            FROM defined GROUP BY ALL
        ) USING (encoder) ORDER BY encoder
    """).pl()
    assert len(found) == 26
    rounded = ["mean", "q97.5"]  # added up in no order; interpolated with one rounding less
    assert_frame_equal(found.drop(rounded), expected.drop(rounded), check_exact=True)
    assert_frame_equal(found.select(rounded), expected.select(rounded), rel_tol=1e-14)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_medians_have_the_intervals_of_croma(level):
    frame = random_frame(1, encoders=1)
    found = croma_sql.bootstrap(frame, statistics="croma", draws=300, level=level, seed=5)
    expected = bootstrap_pooled_median(
        frame["margin"].to_numpy(), frame["group_id"].to_numpy(), n_boot=300, level=level, seed=5
    )
    assert found.select("estimate", "lo", "hi").row(0) == pytest.approx(
        (expected.point, expected.lo, expected.hi), abs=1e-12
    )


def test_singletons_make_it_the_iid_bootstrap():
    """Here of more picks than are held at once."""
    values = np.random.default_rng(2).standard_normal(6000)
    frame = pl.DataFrame({"margin": values, "group_id": np.arange(6000)})
    found = croma_sql.bootstrap(frame, statistics=("mean", "q25"), draws=700, seed=3)
    rng = np.random.default_rng(3)
    drawn = values[rng.integers(0, 6000, (700, 6000))]
    expected = np.percentile(
        [drawn.mean(axis=1), np.percentile(drawn, 25, axis=1)], [2.5, 97.5], axis=1
    )
    np.testing.assert_allclose(found.select("lo", "hi"), expected.T, rtol=0, atol=1e-12)


def test_levels_share_their_draws():
    frame = random_frame(3, encoders=1).drop("encoder")
    alone = croma_sql.bootstrap(frame, draws=50)
    twice = pl.concat(frame.with_columns(encoder=pl.lit(name)) for name in "ab")
    by_encoder = croma_sql.bootstrap(twice, by="encoder", draws=50)
    for name in "ab":
        own = by_encoder.filter(encoder=name).drop("encoder")
        assert_frame_equal(own, alone, check_exact=True)


def test_threads_and_order_of_rows_do_not_matter():
    frame = random_frame(4)
    given = {"by": "encoder", "subset": "subset", "statistics": EVERY, "draws": 200}
    found = croma_sql.bootstrap(frame, threads=1, **given)
    for threads in (2, 3):
        again = frame.sample(fraction=1, shuffle=True, seed=threads)
        assert_frame_equal(
            croma_sql.bootstrap(again, threads=threads, **given), found, check_exact=True
        )
    other = croma_sql.bootstrap(frame, seed=1, **given)
    assert not other["lo"].equals(found["lo"])


def test_a_draw_without_any_row_of_a_level_is_not_counted():
    frame = pl.DataFrame(
        {
            "centre": ["x"] * 5 + ["y"] * 20,
            "group_id": range(25),
            "margin": [0.25] * 4 + [0.75] + [0.5] * 4 + [None] * 16,
        }
    )
    found = croma_sql.bootstrap(frame, by="centre", statistics="q50", draws=4000)
    picks = np.random.default_rng(0).integers(0, 25, (4000, 25))
    has_x = (picks < 5).any(axis=1)
    assert 3950 < has_x.sum() < 4000
    assert found.rows() == [
        ("x", "q50", 0.25, 0.25, 0.75, 5, 0, 5, has_x.sum()),
        ("y", "q50", 0.5, None, None, 20, 16, 4, 0),
    ]


def of_groups(n, level, first=0):
    """Margins of n groups of 30 rows."""
    group = first + np.repeat(np.arange(n), 30)
    margin = np.random.default_rng(n).standard_normal(len(group))
    return pl.DataFrame({"level": level, "group_id": group, "margin": margin})


@pytest.mark.parametrize("others", [0, 98])
def test_few_groups_have_no_interval(others):
    """Two groups were given intervals that held the truth in half of all cohorts."""
    rest = of_groups(others, "rest", first=10)
    for n, has_one in ((2, False), (3, False), (4, False), (5, True)):
        frame = pl.concat([of_groups(n, "few"), rest])
        found = croma_sql.bootstrap(frame, by="level", draws=100)
        few, many = found.filter(level="few"), found.filter(level="rest")
        assert few["estimate"].null_count() == 0
        assert (few["n_groups"] == n).all()
        for column in ("lo", "hi"):
            assert few[column].is_not_null().to_list() == [has_one] * 3
            assert many[column].null_count() == 0
        assert (few["draws"] > 0).to_list() == [has_one] * 3


def test_nan_is_null_among_levels():
    """Each was a level of its own."""
    dose = [1.0, None, float("nan"), 1.0, None, float("nan")]
    frame = {"dose": dose, "group_id": range(6), "margin": [1, 2, 3, 1, 2, 3]}
    found = croma_sql.bootstrap(frame, by="dose", statistics="mean", draws=10)
    assert found.select("dose", "estimate", "n").rows() == [(1.0, 1.0, 2), (None, 2.5, 4)]
    subsets = croma_sql.bootstrap(frame, subset="dose", statistics="croma", draws=10)
    assert subsets["estimate"].to_list() == [1.75]  # of 1 and 2.5


def test_a_level_without_a_defined_margin_is_listed():
    frame = {"centre": ["x", "y"], "group_id": [1, 2], "margin": [0.5, None]}
    found = croma_sql.bootstrap(frame, by="centre", statistics="croma", draws=10)
    assert found.select("centre", "estimate", "n", "n_undefined").rows() == [
        ("x", 0.5, 1, 0),
        ("y", None, 1, 1),
    ]


def test_nothing_defined_is_null():
    frame = pl.DataFrame({"group_id": ["a", "b"], "margin": [None, float("nan")]})
    found = croma_sql.bootstrap(frame, draws=10)
    assert found.select("estimate", "lo", "hi", "n", "n_undefined", "n_groups", "draws").rows() == [
        (None, None, None, 2, 2, 0, 0)
    ] * len(found)


def test_no_rows():
    frame = pl.DataFrame(schema={"encoder": pl.String, "group_id": pl.String, "margin": pl.Float64})
    assert croma_sql.bootstrap(frame, by="encoder", draws=10).is_empty()
    assert croma_sql.bootstrap(frame, draws=10)["n"].to_list() == [0, 0, 0]
    assert croma_sql.rank_stability(frame, draws=10).is_empty()


def test_any_frame_will_do():
    """No other column of a lazy frame or a relation is computed."""
    frame = random_frame(5).with_columns(pl.col("margin").fill_nan(None))
    frame = frame.rename({"group_id": 'the "group"', "margin": "m; --"})
    names = {"by": "encoder", "group": 'the "group"', "value": "m; --", "draws": 20}
    expected = croma_sql.bootstrap(frame, **names)
    con = duckdb.connect()
    relation = con.sql("SELECT *, error('computed') AS other FROM frame")
    broken = pl.lit(1).map_batches(lambda _: 1 / 0, return_dtype=pl.Int64)
    for other in (
        frame.lazy().with_columns(other=broken),
        frame.to_pandas(),
        frame.to_arrow(),
        pa.table(frame),
        frame.to_dict(),
        relation,
        frame.with_columns(pl.col('the "group"').cast(pl.Categorical)),
        frame.with_columns(pl.col("m; --").cast(pl.Decimal(30, 20))),
    ):
        assert_frame_equal(croma_sql.bootstrap(other, **names), expected)


def messy_pandas(frame):
    pandas = frame.to_pandas()
    pandas["mixed"] = np.array([1, "x"] * (len(frame) // 2), dtype=object)
    pandas.insert(0, "twice", 1)
    pandas.insert(0, "twice", 2, allow_duplicates=True)
    return pandas


def messy_arrow(frame):
    table = frame.to_arrow()
    for _ in range(2):
        table = table.append_column("twice", [[1] * len(frame)])
    return table


@pytest.mark.parametrize(
    "messy",
    [
        messy_pandas,
        messy_arrow,
        lambda frame: messy_arrow(frame).combine_chunks().to_batches()[0],
        lambda frame: frame.to_dict() | {"mixed": [1, "x"], "short": [1]},
        lambda frame: duckdb.sql("SELECT *, 1 AS twice, 2 AS Twice FROM frame"),
    ],
)
def test_columns_that_nobody_asks_for_may_hold_anything(messy):
    frame = random_frame(6)
    given = {"by": "encoder", "draws": 10}
    assert_frame_equal(
        croma_sql.bootstrap(messy(frame), **given), croma_sql.bootstrap(frame, **given)
    )
