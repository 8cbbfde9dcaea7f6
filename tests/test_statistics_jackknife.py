"""Intervals and differences from leaving out groups: by definition, and how often they hold."""

import naive_bootstrap
import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import norm, studentized_range, t
from test_statistics_bootstrap import random_frame

import croma_sql
from croma_sql.statistics.jackknife import Weights, degrees_of_freedom
from croma_sql.statistics.leaving_out import leave_out
from croma_sql.statistics.rows import read_rows
from croma_sql.statistics.studentised_range import critical, tail
from croma_sql.statistics.summaries import parse

EXACT = ("f0", "mean", "ltm05", "ltm10", "ltm33.3", "ltm100")
MEAN, SPREAD, ALIKE = 0.15, 0.4, 0.4  # of atanh(margin); intraclass correlation
TRUTH = {
    "croma": np.tanh(MEAN),
    "f0": norm.cdf(-MEAN / SPREAD),
    "ltm10": quad(lambda z: np.tanh(MEAN + SPREAD * z) * norm.pdf(z) / 0.10, -10, norm.ppf(0.10))[
        0
    ],
}


def unequal(seed, groups, encoders, cohorts):
    """Cohorts with groups of Pareto-distributed sizes, 10 to 1,000 rows; encoders are equal."""
    rng = np.random.default_rng(seed)
    parts = []
    for cohort in range(cohorts):
        n = np.minimum(1000, 10 * rng.random(groups) ** (-1 / 1.5)).astype(int)
        group = np.repeat(np.arange(groups), n)
        common = rng.standard_normal(groups)[group], rng.standard_normal(len(group))
        for encoder in range(encoders):
            own = rng.standard_normal(groups)[group], rng.standard_normal(len(group))
            of_group, of_row = ((a + b) / np.sqrt(2) for a, b in zip(common, own, strict=True))
            z = np.sqrt(ALIKE) * of_group + np.sqrt(1 - ALIKE) * of_row
            columns = {"group_id": group, "margin": np.tanh(MEAN + SPREAD * z)}
            parts.append(
                pl.DataFrame(columns).with_columns(
                    cohort=pl.lit(cohort), encoder=pl.lit(encoder), sample_id=pl.int_range(pl.len())
                )
            )
    return pl.concat(parts)


def test_what_is_left_out_is_left_out():
    frame = random_frame(7, n=300, encoders=1, groups=12).with_columns(
        pl.col("margin").fill_nan(None)
    )
    rows = read_rows(frame, by=[], value="margin", group="group_id", subset=None)
    (part,) = leave_out(rows, parse(EXACT, subsets=False))
    groups = frame["group_id"].unique().sort().to_list()
    known = frame.drop_nulls("margin")
    assert part.n.tolist() == [known.filter(group_id=name).height for name in groups]

    def naive(rest, name):
        rows = [{"value": value, "subset": None} for value in rest["margin"]]
        return naive_bootstrap.statistic(name, rows, subsets=False)

    for name, estimate, change in zip(EXACT, part.estimate, part.change, strict=True):
        assert estimate == pytest.approx(naive(known, name), abs=1e-12)
        without = [naive(known.filter(pl.col("group_id") != one), name) for one in groups]
        assert (estimate + change).tolist() == pytest.approx(without, abs=1e-12)


def test_a_mean_has_the_interval_of_its_definition():
    frame = random_frame(8, encoders=1, groups=15)
    known = frame.filter(pl.col("margin").is_not_nan())
    found = croma_sql.intervals(frame, statistics="mean").row(0, named=True)
    groups = known["group_id"].unique().to_list()
    mean = known["margin"].mean()
    change = np.array(
        [known.filter(pl.col("group_id") != one)["margin"].mean() - mean for one in groups]
    )
    n = known.group_by("group_id").len()["len"].to_numpy()
    df = degrees_of_freedom(Weights(n))
    error = np.sqrt((len(groups) - 1) / len(groups) * np.sum(change**2))
    lean = -np.sum(change**3) / error**3 * (2 * norm.ppf(0.975) ** 2 + 1) / 6
    reach = t.ppf(0.975, df)
    assert (found["lo"], found["hi"], found["df"]) == pytest.approx(
        (mean - error * (reach + max(-lean, 0)), mean + error * (reach + max(lean, 0)), df)
    )


def test_degrees_of_freedom_are_those_of_the_matrix():
    rng = np.random.default_rng(0)

    def matrix(n):
        w = n / n.sum()
        m = np.diag(w / (1 - w)) - np.outer(w / (1 - w), w)
        return m @ m.T

    for _ in range(5):
        n, other = rng.geometric(0.05, 9), rng.geometric(0.05, 9) * (rng.random(9) < 0.7)
        for a, both in ((matrix(n), (n,)), (matrix(n) + matrix(other), (n, other))):
            expected = np.trace(a) ** 2 / np.sum(a * a)
            assert degrees_of_freedom(*map(Weights, both)) == pytest.approx(expected, rel=1e-10)


def test_the_studentised_range_is_that_of_scipy():
    for df, n in ((1.2, 4), (8.3, 26)):
        assert critical(0.95, n, df) == pytest.approx(studentized_range.ppf(0.95, n, df), rel=1e-6)
        q = np.array([0.5, 4.0, 30.0])
        assert tail(q, n, df) == pytest.approx(studentized_range.sf(q, n, df), abs=1e-7)
    assert critical(0.95, 2, 7.0) == pytest.approx(np.sqrt(2) * t.ppf(0.975, 7), rel=1e-9)


def level(name, groups, margins):
    return pl.DataFrame({"level": name, "group_id": groups, "margin": margins})


def test_where_there_is_no_interval_it_is_said_why():
    many, varied = list(range(6)), [0.1, 0.3, 0.2, 0.5, 0.4, 0.6]
    frame = pl.concat(
        [
            level("few", many[:4], varied[:4]),
            level("most", many + [0] * 300, [*varied, *[0.1] * 300]),
            level("alike", many, [0.25] * 6),
            level("one", many, [-0.1, *varied[1:]]),
            level("usual", many, [-0.1, -0.2, *varied[2:]]),
            level("nothing", many, [None] * 6),
        ]
    )
    found = croma_sql.intervals(frame, by="level", statistics=["mean", "f0", "q0"])
    told = {row[:2]: row[2] for row in found.select("level", "statistic", "interval_reason").rows()}
    assert [told[name, "mean"] for name in ("few", "most", "alike", "usual", "nothing")] == [
        "too few groups", "one group has most rows", "groups do not differ", None, "too few groups",
    ]  # fmt: skip
    assert told["one", "f0"] == "one group alone is on one side of 0"
    assert told["usual", "f0"] is None
    assert told["usual", "q0"] == "an extreme has none"
    has_none = found["interval_reason"].is_not_null()
    assert (found["lo"].is_null() == has_none).all()
    assert (found["hi"].is_null() == has_none).all()
    zero = croma_sql.intervals(level("x", many, varied), statistics="f0")
    assert zero["interval_reason"].to_list() == ["groups do not differ"]
    one = frame.filter(level="usual").with_columns(s=pl.Series(["u", *"vvvvv"]))
    found = croma_sql.intervals(one, subset="s", statistics="croma")
    assert found["interval_reason"].to_list() == ["a subset has one group"]


@pytest.mark.parametrize("groups", [6, 20])
def test_intervals_of_unequal_groups_hold_the_truth(groups):
    """Percentile intervals of drawn groups held it in 60 to 93 % of such cohorts.

    Of 250 cohorts, 90 % or more: one in a hundred falls below where 94 % hold it, and all at 80 %.
    """
    found = croma_sql.intervals(unequal(groups, groups, 1, 250), by="cohort")
    truth = pl.col("statistic").replace_strict(TRUTH, return_dtype=pl.Float64)
    known = found.filter(pl.col("interval_reason").is_null())
    assert len(known) > 0.8 * len(found)
    held = known.group_by("statistic").agg(share=truth.is_between("lo", "hi").mean())
    assert all(share >= 0.90 for _, share in held.iter_rows()), held


def test_equal_encoders_are_seldom_told_apart():
    """Any of 6 pairs: 28 to 54 % of cohorts with percentile intervals of drawn groups."""
    frame = unequal(1, 10, 4, 60)
    given = {"by": "cohort", "paired_by": "sample_id", "statistics": ["croma", "f0", "ltm10"]}
    found = croma_sql.differences(frame, **given)
    assert found["n_pairs"].unique().to_list() == [6]
    excluded = (pl.col("lo") > 0) | (pl.col("hi") < 0)
    low = (pl.col("p_adjusted") < 0.05).fill_null(False)
    assert found.select((excluded.fill_null(False) == low).all()).item()
    any_pair = found.group_by("cohort", "statistic").agg(excluded.any().alias("any"))
    shares = any_pair.group_by("statistic").agg(pl.col("any").mean())
    assert all(share <= 0.12 for _, share in shares.iter_rows()), shares
