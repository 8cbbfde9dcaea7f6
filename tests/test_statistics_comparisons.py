"""Differences between encoders or strata, and the stability of ranks, under the same draws."""

import naive_bootstrap
import numpy as np
import polars as pl
import pytest
from croma.metrics.bootstrap import paired_cluster_bootstrap_delta, paired_rank_stability
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from test_statistics_bootstrap import ROWS, SCHEMA, random_frame

import croma_sql

NAMES = ("croma", "f0", "ltm20")


def paired_cohort(seed, n=240, encoders=6, groups=25):
    """Several encoders on the same rows, none undefined: (frame, values, groups, subsets)."""
    rng = np.random.default_rng(seed)
    group, subset = rng.integers(groups, size=n).astype(str), rng.integers(4, size=n).astype(str)
    common = rng.standard_normal(groups)[group.astype(int)] / 3
    values = {
        f"e{e}": np.tanh(common + e / 50 + rng.standard_normal(n) / 3) for e in range(encoders)
    }
    frame = pl.concat(
        pl.DataFrame(
            {
                "encoder": [name] * n,
                "sample_id": np.arange(n),
                "subset": subset,
                "group_id": group,
                "margin": margin,
            }
        )
        for name, margin in values.items()
    )
    return frame, values, group, subset


@pytest.mark.parametrize("subset", [None, "subset"])
@settings(max_examples=40, deadline=None)
@given(rows=ROWS, seed=st.integers(0, 5))
def test_strata_are_compared_under_the_draws_of_all_rows(subset, rows, seed):
    """Strata have rows of their own; some lack a group, some are not in every draw."""
    frame = pl.DataFrame(rows, schema=SCHEMA)
    levels = {row["level"] for row in rows}
    estimates, draws = {}, {}
    drawn = naive_bootstrap.drawn(
        NAMES, rows, levels, draws=25, seed=seed, subsets=subset is not None
    )
    for level in levels:
        own = [r for r in rows if r["level"] == level and naive_bootstrap.defined(r["value"])]
        enough = len({r["group"] for r in own}) >= naive_bootstrap.FEWEST_GROUPS
        for name in NAMES:
            value = naive_bootstrap.statistic(name, own, subsets=subset is not None)
            estimates[level, name] = np.nan if value is None else value
            draws[level, name] = drawn[level, name] if enough else [None] * 25
    given = {
        "between": "level", "value": "value", "group": "group", "subset": subset,
        "statistics": NAMES, "draws": 25, "seed": seed,
    }  # fmt: skip
    if len(levels) == 1:
        with pytest.raises(croma_sql.StatisticsError, match="nothing to compare"):
            croma_sql.differences(frame, **given)
        return
    found = croma_sql.differences(frame, **given)
    for name in NAMES:
        expected = naive_bootstrap.differences(
            {level: estimates[level, name] for level in levels},
            {level: draws[level, name] for level in levels},
            lower_is_better=name == "f0",
        )
        columns = ["first", "second", "difference", "lo", "hi", "win_probability", "draws"]
        own = found.filter(statistic=name).select(columns).rows()
        assert [row[:2] for row in own] == [row[:2] for row in expected]
        for row, naive_row in zip(own, expected, strict=True):
            assert row[2:] == pytest.approx(naive_row[2:], abs=1e-12)


@pytest.mark.parametrize("subset", [None, "subset"])
def test_differences_of_paired_encoders_are_those_of_croma(subset):
    frame, values, group, subsets = paired_cohort(0)
    found = croma_sql.differences(frame, subset=subset, draws=200, seed=4)
    assert len(found) == 15
    for row in found.iter_rows(named=True):
        expected = paired_cluster_bootstrap_delta(
            values[row["second"]], values[row["first"]], group,
            subset_ids=subsets if subset else None, n_boot=200, seed=4,
        )  # fmt: skip
        assert (row["difference"], row["lo"], row["hi"]) == pytest.approx(
            (expected.point, expected.lo, expected.hi), abs=1e-12
        )


@pytest.mark.parametrize(("seed", "draws"), [(0, 200), (1, 200), (2, 7)])
def test_ranks_are_those_of_croma(seed, draws):
    """Of few draws, bounds of ranks lie between two ranks."""
    frame, values, group, _ = paired_cohort(seed)
    for value in values.values():
        value[:7] = np.nan  # undefined for all, as a sample without neighbours is
    frame = frame.with_columns(margin=pl.Series(np.concatenate(list(values.values()))))
    expected = paired_rank_stability(values, group, n_boot=draws, level=0.9, seed=seed)
    found = croma_sql.rank_stability(frame, draws=draws, level=0.9, seed=seed)
    assert found["rank"].to_list() == sorted(expected.point_rank.values())
    for row in found.iter_rows(named=True):
        name = row["encoder"]
        interval = expected.value_ci[name]
        assert row["rank"] == expected.point_rank[name]
        assert (row["rank_lo"], row["rank_hi"]) == (expected.rank_lo[name], expected.rank_hi[name])
        wins = [win for (one, _), win in expected.pairwise_win.items() if one == name]
        assert (row["estimate"], row["lo"], row["hi"], row["mean_rank"]) == pytest.approx(
            (interval.point, interval.lo, interval.hi, expected.mean_rank[name]), abs=1e-12
        )
        assert row["win_probability"] == pytest.approx(np.mean(wins), abs=1e-12)
    one_by_one = croma_sql.differences(frame, draws=draws, seed=seed)
    for first, second, win in one_by_one.select("first", "second", "win_probability").iter_rows():
        assert win == expected.pairwise_win[first, second]


def test_intervals_are_those_of_bootstrap():
    frame = random_frame(0, encoders=4)
    given = {"subset": "subset", "statistics": NAMES, "draws": 100}
    ranks = croma_sql.rank_stability(frame, **given)
    columns = ["encoder", "statistic", "estimate", "lo", "hi", "draws"]
    assert_frame_equal(
        ranks.select(columns),
        croma_sql.bootstrap(frame, by="encoder", **given).select(columns),
        check_row_order=False,
        check_exact=True,
    )


def test_every_benchmark_by_itself():
    frame = random_frame(1, encoders=3)
    both = pl.concat(
        frame.with_columns(margin=sign * pl.col("margin"), benchmark=pl.lit(name), other=pl.lit(1))
        for name, sign in (("b", 1), ("a", -1))
    )
    given = {"statistics": NAMES, "draws": 60}
    for function in (croma_sql.differences, croma_sql.rank_stability):
        found = function(both, by=["benchmark", "other"], **given)
        assert found["benchmark"].is_sorted()
        assert found.columns[:2] == ["benchmark", "other"]
        one = found.filter(benchmark="b").drop("benchmark", "other")
        assert_frame_equal(one, function(frame, **given), check_exact=True)


def test_controls_are_shown_and_not_ranked():
    frame, *_ = paired_cohort(3)
    is_control = pl.when(pl.col("encoder") == "e5").then(True)  # NULL for all others
    found = croma_sql.rank_stability(frame.with_columns(c=is_control), controls="c", draws=100)
    without = croma_sql.rank_stability(frame.filter(pl.col("encoder") != "e5"), draws=100)
    assert_frame_equal(found.filter(pl.col("encoder") != "e5"), without, check_exact=True)
    (control,) = found.filter(encoder="e5").rows(named=True)
    ranks = ("rank", "mean_rank", "rank_lo", "rank_hi", "best_probability", "win_probability")
    assert all(control[name] is None for name in ranks)
    everyone = croma_sql.rank_stability(frame, draws=100)
    shown = ["estimate", "lo", "hi", "draws"]
    assert_frame_equal(
        found.filter(encoder="e5").select(shown), everyone.filter(encoder="e5").select(shown)
    )
    assert found["encoder"].to_list() == everyone["encoder"].to_list()  # in its place by estimate
    mixed = frame.with_columns(c=(pl.col("encoder") == "e5") & (pl.col("sample_id") > 3))
    with pytest.raises(croma_sql.StatisticsError, match=r"'c' is true for some rows .* of 'e5'"):
        croma_sql.rank_stability(mixed, controls="c")
    with pytest.raises(croma_sql.StatisticsError, match=r"'sample_id' is of type Int64.*booleans"):
        croma_sql.rank_stability(frame, controls="sample_id")


def test_equal_encoders_share_a_rank_and_nobody_wins():
    frame, *_ = paired_cohort(4, encoders=2)
    margin = pl.when(pl.col("encoder") == "e0").then("margin")
    same = frame.with_columns(margin=margin.forward_fill().over("sample_id", order_by="encoder"))
    found = croma_sql.rank_stability(same, draws=50)
    columns = ["rank", "mean_rank", "rank_lo", "rank_hi", "best_probability", "win_probability"]
    assert found.select(columns).rows() == [(1, 1.0, 1, 1, 1.0, 0.0)] * 2
    assert croma_sql.differences(same, draws=50)["win_probability"].to_list() == [0.0]


def test_lower_f0_is_better():
    """Hand-derived: of five groups, b has a margin at 0 in none, a in one."""
    frame = pl.DataFrame(
        {
            "encoder": ["a"] * 5 + ["b"] * 5,
            "group_id": [1, 2, 3, 4, 5] * 2,
            "margin": [0.0] + [0.5] * 4 + [0.1] * 5,
        }
    )
    found = croma_sql.differences(frame, statistics=["f0", "croma"], draws=3000)
    f0, croma = found.rows(named=True)
    assert (f0["first"], f0["second"]) == ("b", "a")
    assert (croma["first"], croma["second"]) == ("a", "b")
    assert f0["difference"] == pytest.approx(-1 / 5)
    # group 1 is drawn Binomial(5, 1/5) times: never in 33 %, thrice or more in 5.8 %, four in 0.6 %
    assert f0["win_probability"] == pytest.approx(1 - 0.8**5, abs=0.03)
    assert (f0["lo"], f0["hi"]) == pytest.approx((-3 / 5, 0))
    # croma of a is 0.5 unless group 1 is drawn thrice or more
    assert croma["win_probability"] == pytest.approx(1 - 181 / 5**5, abs=0.015)


def test_few_groups_are_compared_by_their_estimates_only():
    """Encoder c was scored on four of the groups that a and b have."""
    frame, *_ = paired_cohort(8, encoders=3)
    few = pl.col("group_id").is_in(["1", "2", "3", "4"])
    frame = frame.filter((pl.col("encoder") != "e2") | few)
    found = croma_sql.differences(frame, draws=50)
    told = ["difference", "lo", "hi", "win_probability"]
    for row in found.rows(named=True):
        known = "e2" not in (row["first"], row["second"])
        assert [row[name] is not None for name in told] == [True, known, known, known]
        assert row["draws"] == (50 if known else 0)
    ranks = croma_sql.rank_stability(frame, draws=50)
    alone = croma_sql.rank_stability(frame.filter(pl.col("encoder") != "e2"), draws=50)
    drawn = ["lo", "hi", "mean_rank", "rank_lo", "rank_hi", "best_probability", "win_probability"]
    assert sorted(ranks["rank"]) == [1, 2, 3]
    assert ranks.filter(encoder="e2").select(drawn).row(0) == (None,) * 7
    shown = ["encoder", *drawn]
    assert_frame_equal(
        ranks.filter(pl.col("encoder") != "e2").select(shown), alone.select(shown), check_exact=True
    )


def test_nan_is_null_between():
    frame, *_ = paired_cohort(9, encoders=3)
    dose = pl.col("encoder").replace_strict({"e0": 1.0, "e1": None, "e2": float("nan")})
    frame = frame.with_columns(dose=dose)
    joined = frame.with_columns(dose=pl.col("dose").fill_nan(None))
    for function in (croma_sql.differences, croma_sql.rank_stability):
        found = function(frame, between="dose", draws=20)
        assert_frame_equal(found, function(joined, between="dose", draws=20))
    same = {"between": "encoder", "paired_by": ["sample_id", "dose"], "draws": 20}
    by_unit = frame.with_columns(dose=dose.replace({1.0: None}))  # NULL, NULL, NaN: one unit
    assert (croma_sql.differences(by_unit, **same)["n_left_out"] == 0).all()


def test_paired_by_keeps_what_is_defined_everywhere():
    frame, *_ = paired_cohort(5, n=100, encoders=3)
    undefined = (
        ((pl.col("encoder") == "e0") & (pl.col("sample_id") < 4))
        | ((pl.col("encoder") == "e1") & (pl.col("sample_id").is_between(3, 9)))
        | ((pl.col("encoder") == "e2") & (pl.col("sample_id") == 50))
    )
    holes = frame.with_columns(margin=pl.when(~undefined).then("margin"))
    gone = holes.filter((pl.col("encoder") != "e2") | (pl.col("sample_id") != 99))
    complete = frame.with_columns(
        margin=pl.when(~pl.col("sample_id").is_in([*range(10), 50, 99])).then("margin")
    )
    for function in (croma_sql.differences, croma_sql.rank_stability):
        found = function(gone, paired_by="sample_id", statistics=NAMES, draws=50)
        assert found["n_left_out"].unique().to_list() == [12]
        expected = function(complete, statistics=NAMES, draws=50)
        assert expected["n_left_out"].unique().to_list() == [None]
        assert_frame_equal(found.drop("n_left_out"), expected.drop("n_left_out"), check_exact=True)


def test_units_in_several_subsets_take_both_columns():
    frame, *_ = paired_cohort(6, n=100, encoders=2)
    again = frame.with_columns(subset=pl.lit("another"), margin=-pl.col("margin"))
    twice = pl.concat([frame, again])
    with pytest.raises(
        croma_sql.StatisticsError,
        match=r"'sample_id' does not tell the rows of a level apart: \('e0', 0\).* add the columns",
    ):
        croma_sql.differences(twice, paired_by="sample_id")
    found = croma_sql.differences(
        twice, subset="subset", paired_by=["sample_id", "subset"], draws=50
    )
    assert found["n_left_out"].to_list() == [0]


def test_units_are_paired_within_each_level_of_by():
    """Two benchmarks share samples; one of them has another encoder."""
    frame, *_ = paired_cohort(7, n=60, encoders=3)
    one = frame.filter(pl.col("encoder") != "e2").with_columns(benchmark=pl.lit("one"))
    two = frame.with_columns(
        benchmark=pl.lit("two"), margin=pl.when(pl.col("sample_id") > 4).then("margin")
    )
    found = croma_sql.differences(
        pl.concat([one, two]), by="benchmark", paired_by="sample_id", draws=20
    )
    assert found.select("benchmark", "n_left_out").rows() == [("one", 0)] + [("two", 5)] * 3
