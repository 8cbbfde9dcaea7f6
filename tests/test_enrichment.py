"""Enrichment of the tail: counts, tests and intervals that know groups."""

import math
from dataclasses import replace

import duckdb
import naive_tails
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.api import GLM, add_constant
from statsmodels.genmod.cov_struct import Independence
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_estimating_equations import GEE
from statsmodels.stats.proportion import confint_proportions_2indep

import croma_sql
from croma_sql.statistics.attributes import read_attribute
from croma_sql.statistics.contrasts import Part, Sums
from croma_sql.statistics.odds import _fitted

EIGHT = pl.DataFrame(
    {
        "margin": [-0.2, -0.1, 0.3, 0.4, 0.1, 0.2, 0.5, -0.3],
        "scanner": [*"aaaabbbb"],
        "group_id": range(8),
    }
)


def rows_of(found):
    return {row["value"]: row for row in found.iter_rows(named=True)}


def random_frame(seed, groups=30, tiles=8, correlated=1.0):
    """Margins of slides, of zones within slides, and an attribute that goes with them a little."""
    rng = np.random.default_rng(seed)
    slide = rng.integers(groups, size=groups * tiles)
    zone = rng.integers(3, size=len(slide))
    margin = rng.standard_normal(len(slide)) + 0.3 * (zone == 1)
    margin += correlated * rng.standard_normal((groups, 3))[slide, zone]
    return pl.DataFrame({"margin": margin, "zone": zone, "group_id": slide})


# -- hand-derived


def test_odds_of_eight_rows():
    """a: 2 of 4 in the tail, b: 1 of 4, so (2 / 2) / (1 / 3) = 3.

    With 3 of 8 in the tail, a holds k of them in C(3, k) C(5, 4 - k) of 70 draws: 5, 30, 30, 5. Two
    or more have a chance of 1/2; twice that is 1.
    """
    found = rows_of(croma_sql.enrichment(EIGHT, "scanner", tails="nonpositive", min_size=1))
    a, b = found["a"], found["b"]
    assert [a[name] for name in ("n", "n_groups", "n_tail", "share")] == [4, 4, 2, 0.5]
    assert [b[name] for name in ("n", "n_groups", "n_tail", "share")] == [4, 4, 1, 0.25]
    assert (a["odds_ratio"], a["p"], a["q"]) == pytest.approx((3, 1, 1))
    assert b["odds_ratio"] == pytest.approx(1 / 3)
    assert a["lo"] < 3 < a["hi"]
    assert (b["lo"], b["hi"]) == pytest.approx((1 / a["hi"], 1 / a["lo"]))
    assert (a["tail"], a["threshold"], a["attribute"]) == ("nonpositive", 0.0, "scanner")


def test_half_a_row_is_added_where_a_count_is_zero():
    """3 of 3 against 0 of 5: (3.5 / 0.5) / (0.5 / 5.5) = 77, without an upper limit; p = 2 / 56."""
    frame = EIGHT.with_columns(tail=pl.col("margin") <= 0)
    found = rows_of(croma_sql.enrichment(frame, "tail", tails="nonpositive", min_size=1))
    assert found["true"]["odds_ratio"] == pytest.approx(77)
    assert found["true"]["p"] == pytest.approx(2 / 56)
    assert found["true"]["hi"] is None
    assert found["true"]["lo"] > 1
    assert (found["false"]["odds_ratio"], found["false"]["lo"]) == (pytest.approx(1 / 77), 0)


# -- against libraries and the naive version


@settings(max_examples=60, deadline=None)
@given(st.integers(5, 40), st.integers(5, 40), st.data())
def test_groups_of_one_row_give_the_usual_test_and_interval(n, rest, data):
    """Fisher's exact test, its smaller tail twice, and Miettinen and Nurminen's interval."""
    a, c = data.draw(st.integers(0, n)), data.draw(st.integers(0, rest))
    if a + c in (0, n + rest):
        return
    frame = pl.DataFrame(
        {
            "margin": [-1.0] * a + [1.0] * (n - a) + [-1.0] * c + [1.0] * (rest - c),
            "inside": [True] * n + [False] * rest,
            "group_id": range(n + rest),
        }
    )
    found = rows_of(croma_sql.enrichment(frame, "inside", tails="nonpositive", min_size=1))["true"]
    table = [[a, n - a], [c, rest - c]]
    tails = [stats.fisher_exact(table, alternative=side).pvalue for side in ("less", "greater")]
    assert found["p"] == pytest.approx(min(1, 2 * min(tails)))
    if 0 < a < n and 0 < c < rest:
        with np.errstate(all="ignore"):
            lo, hi = confint_proportions_2indep(
                a, n, c, rest, method="score", compare="odds-ratio", correction=False
            )
        assert (found["lo"], found["hi"]) == pytest.approx((lo, hi), rel=1e-4)
        assert found["odds_ratio"] == pytest.approx(a * (rest - c) / ((n - a) * c))


@pytest.mark.parametrize("seed", range(4))
def test_clusters_agree_with_the_naive_version_and_with_gee(seed):
    """The test is the larger of statsmodels' robust score test and the model's; ends are exact."""
    frame = random_frame(seed, correlated=seed / 2)
    tail = frame["margin"] <= 0
    y, group, zone = tail.to_list(), frame["group_id"].to_list(), frame["zone"].to_numpy()
    found = rows_of(croma_sql.enrichment(frame, "zone", tails="nonpositive", level=0.9))
    for value in range(3):
        row, x = found[str(value)], (zone == value).astype(float)
        inside = {i for i in range(len(y)) if x[i]}
        assert row["p"] == pytest.approx(
            2 * stats.norm.sf(abs(naive_tails.score(y, inside, group)))
        )
        for end in (row["lo"], row["hi"]):
            at_end = naive_tails.score(y, inside, group, end)
            assert abs(at_end) == pytest.approx(stats.norm.ppf(0.95), rel=1e-4)
        options = {"groups": group, "family": Binomial(), "cov_struct": Independence()}
        null = GEE(np.array(y, float), np.ones((len(y), 1)), **options).fit()
        full = GEE(np.array(y, float), add_constant(x), **options)
        robust = full.compare_score_test(null)["p-value"]
        assert row["p"] >= robust * (1 - 1e-6)
        if seed == 3:  # so much correlation within zones of slides that the robust one is larger
            assert row["p"] == pytest.approx(robust)


def test_large_clustered_samples_agree_with_a_cluster_robust_regression():
    frame = random_frame(0, groups=400, tiles=20)
    y = (frame["margin"] <= 0).to_numpy().astype(float)
    found = rows_of(croma_sql.enrichment(frame, "zone", tails="nonpositive"))["1"]
    x = add_constant((frame["zone"] == 1).to_numpy().astype(float))
    groups = frame["group_id"].to_numpy()
    fit = GLM(y, x, family=Binomial()).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert found["odds_ratio"] == pytest.approx(math.exp(fit.params[1]), rel=1e-6)
    assert (found["lo"], found["hi"]) == pytest.approx(np.exp(fit.conf_int()[1]), rel=0.01)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 12), st.floats(0.5, 0.99))
def test_the_interval_holds_what_the_test_does_not_reject(seed, groups, tiles, level):
    frame = random_frame(seed, groups, tiles)
    found = croma_sql.enrichment(frame, "zone", min_size=1, level=level)
    shared = frame.filter(pl.len().over("group_id", "zone") > 1)["zone"].cast(str)
    tested = shared.unique() if shared.n_unique() > 1 else []  # others may have Fisher's test
    found = found.filter(pl.col("value").is_in(list(tested)))
    for row in found.drop_nulls("p").iter_rows(named=True):
        hi = math.inf if row["hi"] is None else row["hi"]
        assert row["lo"] <= row["odds_ratio"] <= hi
        if row["p"] > 1 - level + 1e-6:
            assert row["lo"] <= 1 <= hi
        if row["p"] < 1 - level - 1e-6 and min(row["n_groups"], groups) > 9:
            assert not row["lo"] <= 1 <= hi


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.001, 0.999), st.floats(-20, 20))
def test_fitted_probabilities_give_the_rows_and_the_ratio(n, rest, share, log_ratio):
    one = np.ones(1)
    own, whole = (Sums(size * one, *[one] * 5) for size in (n, n + rest))
    y = share * (n + rest)
    part = Part(own, replace(whole, y=y * one), one, one, one, one)
    inside, outside = (p.item() for p in _fitted(part, np.exp(log_ratio) * one))
    assert n * inside + rest * outside == pytest.approx(y)
    odds = [p / (1 - p) for p in (inside, outside) if 1e-9 < p < 1 - 1e-6]
    if len(odds) == 2:
        assert math.log(odds[0] / odds[1]) == pytest.approx(log_ratio, abs=1e-6)


# -- what counts as a value, a tail, a frame


AWKWARD = pl.DataFrame(
    {
        "margin": [-0.5, -0.4, 0.1, 0.2, None, math.nan],
        "site": ["St. Olav's", "Łódź \U0001f52c", "", None, None, ""],
        "flag": [True, False, None, True, False, None],
        "grade": [1, 2, 2, None, 3, 3],
        "dose": [0.1, math.nan, None, 0.1, 2.0, math.inf],
        "day": pl.Series(
            ["2024-01-02", None, "2024-01-02", "2023-12-31", None, None]
        ).str.to_date(),
        "kind": pl.Series(["x", "y", None, "x", "x", "y"], dtype=pl.Enum(["y", "x"])),
        "empty": [None] * 6,
        "group_id": [*"abcdef"],
    }
)


@pytest.mark.parametrize(
    ("attribute", "counts"),
    [
        ("site", {"St. Olav's": (1, 0), "Łódź \U0001f52c": (1, 0), "": (1, 1), None: (1, 1)}),
        ("flag", {"true": (2, 0), "false": (1, 1), None: (1, 1)}),
        ("grade", {"1": (1, 0), "2": (2, 0), None: (1, 0)}),
        ("dose", {"0.1": (2, 0), None: (2, 0)}),
        ("day", {"2024-01-02": (2, 0), "2023-12-31": (1, 0), None: (1, 2)}),
        ("kind", {"x": (2, 1), "y": (1, 1), None: (1, 0)}),
        ("empty", {None: (4, 2)}),
    ],
)
def test_values_are_text_and_null_is_one_of_them(attribute, counts):
    found = croma_sql.enrichment(AWKWARD, attribute, tails="nonpositive", min_size=1)
    assert found.schema["value"] == pl.String
    assert {row["value"]: (row["n"], row["n_undefined"]) for row in found.to_dicts()} == counts


def test_many_numbers_are_binned_at_quantiles():
    rng = np.random.default_rng(0)
    age = rng.integers(20, 90, 1000)
    area = rng.random(1000).astype(np.float32)
    when = pl.Series(age * 86_400_000_000 + 1_700_000_000_000_000).cast(pl.Datetime("us"))
    frame = pl.DataFrame(
        {
            "margin": rng.random(1000),
            "age": age,
            "area": area,
            "when": when,
            "group_id": range(1000),
        }
    )
    found = croma_sql.enrichment(frame, ["age", "area", "when"], bins=4, tails=0.5)
    for name in ("age", "area", "when"):
        bins = found.filter(attribute=name)
        assert bins["n"].sum() == 1000
        assert len(bins) == 4
        assert bins["n"].min() > 200
    values = found.filter(attribute="age")["value"].to_list()
    first = next(value for value in values if value.startswith("<= "))
    limit = int(first.removeprefix("<= "))
    assert found.filter(value=first)["n"].item() == (age <= limit).sum()
    most_are_whole = frame.with_columns(pl.when(pl.col("area") < 0.3).then("area").otherwise(1.0))
    whole = croma_sql.enrichment(most_are_whole, "area", bins=4, tails=0.5)
    last = whole.filter(pl.col("value").str.starts_with("> "))
    assert last["n"].to_list() == [(area >= 0.3).sum()]  # those of 1.0, and nobody else
    assert whole["n"].sum() == 1000
    few = croma_sql.enrichment(frame, "age", bins=40, tails=0.5, min_size=1)
    assert set(few["value"]) == {str(value) for value in set(age)}


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(["float32", "float64", "uint16", "int64"]),
    st.lists(st.integers(0, 40), min_size=12, max_size=200),
    st.integers(2, 6),
    st.integers(0, 10**6),
)
def test_bins_are_those_of_the_exact_quantiles(dtype, places, bins, seed):
    """However many digits their limits are written with; values lie close and far apart."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-6, 4, size=41) if dtype.startswith("float") else 1600
    distinct = np.unique((1000.03 + np.cumsum(scale * rng.random(41))).astype(dtype))
    x = distinct[np.minimum(places, len(distinct) - 1)]
    read = read_attribute(pl.Series("x", x), bins)
    there = np.unique(x)
    if len(there) <= 2 * bins:
        assert read.values == [str(v) for v in pl.Series(there).cast(pl.String)]
        return
    ordered = np.sort(x)
    limits = {min(ordered[math.ceil(len(x) * k / bins) - 1], there[-2]) for k in range(1, bins)}
    expected = [sum(value > limit for limit in limits) for value in x]
    assert read.code.tolist() == expected
    assert len(read.values) == len(limits) + 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1, 1, width=16), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_the_tail_is_that_of_ltm(margins, alpha):
    """The mean of the margins at or below the threshold is ltm(margin, alpha)."""
    frame = pl.DataFrame({"margin": margins, "all": 1, "group_id": range(len(margins))})
    row = croma_sql.enrichment(frame, "all", tails=alpha, min_size=1).row(0, named=True)
    ltm = frame.select(pl.col("margin").croma.ltm(alpha)).item()
    tail = [margin for margin in margins if margin <= row["threshold"]]
    assert row["n_tail"] == len(tail)
    assert ltm == pytest.approx(sum(sorted(tail)) / len(tail), abs=1e-12)


def test_tails_are_named_after_what_was_asked():
    found = croma_sql.enrichment(
        EIGHT, "scanner", tails=["worst_decile", 0.25, "nonpositive"], min_size=1
    )
    assert found["tail"].unique(maintain_order=True).to_list() == [
        "worst_decile", "worst_0.25", "nonpositive",
    ]  # fmt: skip
    assert found["threshold"].unique(maintain_order=True).to_list() == [-0.3, -0.2, 0.0]


def test_a_fraction_may_be_of_numpy():
    found = croma_sql.enrichment(EIGHT, "scanner", tails=np.float32(0.25), min_size=1)
    assert found["tail"].unique().to_list() == ["worst_0.25"]


def test_where_nothing_is_compared_there_is_null():
    columns = ["odds_ratio", "lo", "hi", "p", "q"]
    one_value = croma_sql.enrichment(EIGHT.with_columns(one=pl.lit("x")), "one", min_size=1)
    assert one_value["n"].to_list() == [8, 8]
    assert one_value["share"].to_list() == [3 / 8, 1 / 8]
    above = EIGHT.with_columns(margin=pl.col("margin") + 1)
    empty_tail = croma_sql.enrichment(above, "scanner", tails="nonpositive", min_size=1)
    assert empty_tail["n_tail"].to_list() == [0, 0]
    for found in (one_value, empty_tail):
        assert found.select(columns).null_count().row(0) == (len(found),) * 5
    nothing = croma_sql.enrichment(EIGHT.with_columns(margin=pl.lit(None)), "scanner", min_size=1)
    assert nothing.schema == one_value.schema
    assert len(nothing) == 0
    assert len(croma_sql.enrichment(EIGHT, "scanner", min_size=5)) == 0


def test_levels_of_by_are_compared_within_and_other_frames_read_alike():
    frame = pl.concat(
        random_frame(seed).with_columns(encoder=pl.lit(name), m=pl.lit(seed))
        for seed, name in enumerate(["a", None, "it's"])
    )
    found = croma_sql.enrichment(frame, "zone", by=["encoder", "m"])
    for encoder, seed in (("a", 0), (None, 1), ("it's", 2)):
        own = croma_sql.enrichment(random_frame(seed), "zone")
        part = found.filter(pl.col("encoder").eq_missing(encoder), pl.col("m") == seed)
        assert part.drop("encoder", "m").equals(own)
    shuffled_rows = frame.sample(fraction=1, shuffle=True, seed=0)
    assert croma_sql.enrichment(shuffled_rows, "zone", by=["encoder", "m"]).equals(found)
    for other in (frame.lazy(), frame.to_arrow(), frame.to_pandas(), duckdb.sql("FROM frame")):
        assert croma_sql.enrichment(other, "zone", by=["encoder", "m"]).equals(found)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"attributes": ["scanner", "stain"]}, "no column 'stain'; it has 'margin', 'scanner'"),
        ({"group_id": [None, *"bcdefgh"]}, {}, "'group_id' is NULL in 1 of 8 rows"),
        ({"margin": [*"abcdefgh"]}, {}, "'margin' is of type String; expected numbers"),
        ({"scanner": [[1]] * 8}, {}, "'scanner' is of type List.*an attribute is text"),
        ({}, {"tails": "worst"}, "tail 'worst' is not known.*'nonpositive', 'worst_decile'"),
        ({}, {"tails": [1.0]}, "tail 1.0 is not known"),
        ({}, {"tails": 0}, "tail 0 is not known"),
        ({}, {"tails": None}, "tail None is not known"),
        ({}, {"tails": [0.1, 0.10000001]}, "two tails are called 'worst_0.1'"),
        ({}, {"attributes": []}, "no attribute to tell rows apart by; name columns"),
        ({}, {"bins": 1}, "bins is 1; it is a whole number of at least 2"),
        ({}, {"min_size": 2.5}, "min_size is 2.5"),
        ({}, {"level": 95}, "level is 95; it lies between 0 and 1, as 0.95 does"),
        ({"tail": "x"}, {"by": "tail"}, "'tail' has the name of a column of the result"),
    ],
)
def test_mistakes_are_told(change, options, message):
    columns = {name: pl.Series(value) for name, value in change.items() if value != "x"}
    frame = EIGHT.with_columns(**columns, **{n: pl.lit(v) for n, v in change.items() if v == "x"})
    with pytest.raises(croma_sql.StatisticsError, match=message):
        croma_sql.enrichment(frame, **{"attributes": "scanner", **options})
