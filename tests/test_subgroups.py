"""The worst subgroups: found where planted, nowhere else, and as the naive version says."""

import math
from functools import cache
from itertools import product

import duckdb
import naive_tails
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import PLANTED, cohort, shuffled
from statsmodels.api import OLS, add_constant

import croma_sql
from croma_sql.statistics.contrasts import Common, Part, differences
from croma_sql.statistics.shrinkage import shrink
from croma_sql.statistics.slices import find_slices


def grid(seed, groups=25, tiles=16):
    """Four attributes of few values, of which two say nearly the same, and correlated margins."""
    rng = np.random.default_rng(seed)
    slide = rng.integers(groups, size=groups * tiles)
    n = len(slide)
    scanner, zone = slide % 3, rng.integers(3, size=n)
    return pl.DataFrame(
        {
            "scanner": pl.Series(["a", "b", None]).gather(scanner),
            "vendor": np.array(["ab", "ab", "c"])[scanner],
            "zone": zone,
            "pen": rng.random(n) < 0.3,
            "group_id": slide,
            "margin": rng.standard_normal(n)
            + rng.standard_normal(groups)[slide] / 2
            - 1.5 * ((scanner == 0) & (zone == 1)),
        }
    )


# -- against the naive version


@pytest.mark.parametrize("seed", range(3))
def test_everything_is_as_the_naive_version_says(seed):
    frame = grid(seed)
    names = ["scanner", "vendor", "zone", "pen"]
    found = croma_sql.subgroups(frame, names, min_size=10, min_groups=3, top=1000)
    margin = frame["margin"].to_list()
    attributes = {
        name: [None if v is None else str(v).lower() for v in frame[name]] for name in names
    }
    expected = naive_tails.subgroups(margin, frame["group_id"].to_list(), attributes, 10, 3)
    listed = {conditions: e for conditions, e in expected.items() if e["listed"]}
    shown = [tuple(zip(*row, strict=True)) for row in found.select("attributes", "values").rows()]
    assert set(shown) == set(listed)
    assert found["rank"].to_list() == list(range(1, len(found) + 1))
    assert found["score"].is_sorted(descending=True)
    for conditions, row in zip(shown, found.iter_rows(named=True), strict=True):
        e = listed[conditions]
        values = sorted(margin[i] for i in e["rows"])
        assert row["n"] == len(values)
        assert row["n_groups"] == len({frame["group_id"][i] for i in e["rows"]})
        assert row["mean"] == pytest.approx(sum(values) / len(values))
        assert row["croma"] == pytest.approx(
            (values[len(values) // 2] + values[~(len(values) // 2)]) / 2
        )
        assert row["f0"] == sum(value <= 0 for value in values) / len(values)
        assert row["deficit"] == pytest.approx(-e["d"])
        assert row["score"] == pytest.approx(e["score"], rel=1e-6, abs=1e-12)
        assert (row["p"], row["q"]) == pytest.approx((e["p"], e["q"]), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_robust_errors_are_those_of_a_cluster_robust_regression(seed):
    frame = grid(seed).sort("group_id")
    y, pen, group = (frame[name].to_numpy() for name in ("margin", "pen", "group_id"))
    starts = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(y))
    slices = find_slices(starts, y, [pen.astype(np.int32)], most=1, min_size=1, min_groups=1)
    part = Part.of(slices.own[1:], slices.cross[1:, 0], slices.own[0])
    robust = differences(part, Common(variance=0.0, alike=0.0, freedom=math.inf))
    fit = OLS(y, add_constant(pen.astype(float))).fit(
        cov_type="cluster", cov_kwds={"groups": group, "use_correction": False}
    )
    inside = [bool(code) for (code,) in slices.code[1:].tolist()].index(True)
    share, k = pen.mean(), robust.freedom[inside] + 1
    assert robust.mean[inside] == pytest.approx((1 - share) * fit.params[1])
    error = (1 - share) * fit.bse[1] * math.sqrt(k / (k - 1))
    assert math.sqrt(robust.variance[inside]) == pytest.approx(error)


def test_one_attribute_alone_is_a_group_by():
    frame = grid(7).with_columns(encoder=pl.lit("e"))
    found = croma_sql.subgroups(frame, "zone", by="encoder", max_attributes=1, min_size=1)
    means = (
        frame.group_by("zone").agg(pl.mean("margin")).filter(margin=pl.col("margin")).sort("margin")
    )
    below = means.filter(pl.col("margin") < frame["margin"].mean())
    assert found.sort("mean")["values"].list.first().to_list() == below["zone"].cast(str).to_list()


# -- the planted subgroup


@cache
def found_in_cohort(seed):
    return croma_sql.subgroups(cohort(seed))


@pytest.mark.parametrize("seed", range(10))
def test_a_planted_subgroup_comes_first(seed):
    """3 % of the tiles, by two of seven attributes, with correlated tiles and missing cells."""
    frame, found = cohort(seed), found_in_cohort(seed)
    first = found.row(0, named=True)
    assert first["subgroup"] == PLANTED
    assert 0.02 < first["n"] / len(frame) < 0.04
    assert first["q"] < 0.05
    assert first["deficit"] > first["score"] > 0.2


def test_refinements_that_add_nothing_are_rarely_listed():
    """Any in 1 % of cohorts is what is allowed; of ten, more than one would be unlikely."""
    within = [
        any({"scanner", "zone"} < set(names) for names in found_in_cohort(seed)["attributes"])
        for seed in range(10)
    ]
    assert sum(within) <= 1


@pytest.mark.parametrize("whole_groups", [False, True])
def test_nothing_is_found_in_shuffled_copies(whole_groups):
    """None of 100, where margins move among rows, or whole slides of margins among slides."""
    copies = shuffled(cohort(0), 100, whole_groups)
    found = croma_sql.subgroups(copies, by="copy")
    assert found.filter(pl.col("q") <= 0.05)["copy"].n_unique() <= 5
    if whole_groups:  # what it would be without groups
        naive = copies.filter(pl.col("copy") < 10).with_columns(group_id=pl.int_range(pl.len()))
        found = croma_sql.subgroups(naive.drop("sample_id"), by="copy")
        assert found.filter(pl.col("q") <= 0.05)["copy"].n_unique() == 10


def test_a_cell_of_few_slides_does_not_win():
    """Five slides that are lower by chance have a larger deficit, not a larger score."""
    frame = cohort(3)
    slides = np.random.default_rng(0).permutation(120)
    unlucky = frame["group_id"].is_in(slides[:3]) & (pl.int_range(len(frame), eager=True) % 4 == 0)
    batch = np.array(["rare", "common"])[
        (~frame["group_id"].is_in(slides[:6])).to_numpy().astype(int)
    ]
    frame = frame.with_columns(
        batch=pl.Series(batch), margin=frame["margin"] - 1.5 * unlucky.cast(pl.Float64)
    )
    found = croma_sql.subgroups(frame, top=1000)
    rare = found.filter(subgroup="batch = 'rare'").row(0, named=True)
    assert rare["n_groups"] == 6
    assert rare["rank"] > 1
    assert rare["q"] > 0.05
    assert rare["score"] < rare["deficit"] / 2
    alone = croma_sql.subgroups(frame.with_columns(group_id=pl.int_range(pl.len())), "batch")
    assert alone["p"][0] < 1e-6


@pytest.mark.parametrize(("slides", "affected"), [(40, 8), (200, 5)])
def test_what_befell_a_few_slides_of_many_is_a_discovery(slides, affected):
    """3.3 standard deviations of slides lower, among thousands of combinations."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        slide = np.repeat(np.arange(slides), 40)
        of_slides = {f"s{i}": rng.integers(3, size=slides)[slide] for i in range(3)}
        of_tiles = {f"t{i}": rng.integers(3, size=len(slide)) for i in range(4)}
        torn = (rng.permutation(slides) < affected)[slide]
        margin = 0.45 * rng.standard_normal(slides)[slide] + 0.9 * rng.standard_normal(len(slide))
        frame = pl.DataFrame(
            {
                "group_id": slide,
                "margin": margin - 1.5 * torn,
                "torn": torn,
                **of_slides,
                **of_tiles,
            }
        )
        found = croma_sql.subgroups(frame, top=10**5).filter(subgroup="torn = true")
        assert found["q"].item() < 0.05


@pytest.mark.parametrize("spread", [0, 40])
def test_chance_is_at_most_what_is_promised_where_groups_are_few(spread):
    """Values of 3 of 20 slides, and of tiles; slides of 15 tiles, or of very different numbers."""
    rng = np.random.default_rng(spread)
    cohorts, slides = 200, 20
    sizes = 15 + rng.integers(spread + 1, size=(cohorts, slides)) ** 2 // 8
    slide = np.repeat(np.arange(cohorts * slides), sizes.ravel())
    n = len(slide)
    frame = pl.DataFrame(
        {
            "cohort": slide // slides,
            "group_id": slide,
            "margin": (1 - rng.exponential(size=cohorts * slides))[slide] / 2
            + rng.standard_normal(n),
            "few": rng.permuted(np.arange(slides) < np.full((cohorts, 1), 3), axis=1).ravel()[
                slide
            ],
            "mixed": rng.random(n) < rng.beta(0.3, 0.3, cohorts * slides)[slide],
            "tiles": rng.random(n) < 0.1,
        }
    )
    found = croma_sql.subgroups(
        frame, by="cohort", max_attributes=1, min_size=1, min_groups=1, top=100
    ).filter(pl.col("values").list.first() == "true")
    for name in ("few", "mixed", "tiles"):
        p = found.filter(pl.col("attributes").list.first() == name)["p"]
        assert (p <= 0.05).sum() <= 0.06 * cohorts
        assert (p <= 0.01).sum() <= 0.02 * cohorts


# -- what is redundant


def test_what_covers_the_same_rows_is_named_once():
    frame = cohort(0).with_columns(
        maker=pl.when(scanner="warm soft").then(pl.lit("x")).otherwise(pl.lit("y")),
        label=pl.col("zone"),
        confounder=pl.col("scanner"),
    )
    found = croma_sql.subgroups(frame, top=1000)
    told = {name for names in found["attributes"] for name in names}
    assert told.isdisjoint({"label", "confounder"})  # zone and scanner say it
    assert found["subgroup"][0] == PLANTED
    first = croma_sql.subgroups(frame.select("maker", pl.exclude("maker")))
    assert first["subgroup"][0] == "maker = 'x' AND zone = 'border'"
    implied = [set(names) >= {"maker", "scanner"} for names in found["attributes"]]
    assert sum(implied) == 0


def test_three_conditions_are_found_where_three_matter():
    rng = np.random.default_rng(0)
    frame = cohort(1, slides=200, tiles=60, effect=0.0)
    planted = (frame["scanner"] == "cool") & (frame["zone"] == "fat") & (frame["stain"] == 1)
    frame = frame.with_columns(margin=frame["margin"] - 0.3 * planted.cast(pl.Float64))
    found = croma_sql.subgroups(frame.sample(fraction=1, shuffle=True, seed=int(rng.integers(9))))
    assert found["subgroup"][0] == "scanner = 'cool' AND stain = 1 AND zone = 'fat'"
    pairs = croma_sql.subgroups(frame, max_attributes=2)
    assert pairs["attributes"].list.len().max() == 2


# -- what is read and written


def test_by_default_what_describes_samples_is_an_attribute():
    frame = cohort(0, slides=40).with_columns(
        benchmark=pl.lit("b"), encoder=pl.lit("e"), subset=pl.lit(None), d_so=0.5, d_os=0.5,
        undefined_reason=pl.lit(None, pl.String), number=pl.int_range(pl.len()),
        embedding=pl.lit([1.0, 2.0]), matched=pl.lit('{"centre": "A"}'), dataset=pl.lit("d"),
    )  # fmt: skip
    given = croma_sql.subgroups(
        frame, ["scanner", "centre", "stain", "age", "zone", "tissue", "focus", "dataset"]
    )
    assert croma_sql.subgroups(frame).equals(given)


def test_levels_of_by_are_searched_within_and_other_frames_read_alike():
    parts = {"a": cohort(0, slides=30), None: cohort(1, slides=30), "it's": cohort(2, slides=30)}
    frame = pl.concat(part.with_columns(encoder=pl.lit(name)) for name, part in parts.items())
    names = ["scanner", "zone", "focus", "stain"]
    found = croma_sql.subgroups(frame, names, by="encoder", top=7)
    for name, part in parts.items():
        own = found.filter(pl.col("encoder").eq_missing(pl.lit(name))).drop("encoder")
        assert own.equals(croma_sql.subgroups(part, names, top=7))
    others = [frame.sample(fraction=1, shuffle=True, seed=0), frame.lazy(), frame.to_arrow()]
    for other in (*others, frame.to_pandas(), duckdb.sql("FROM frame")):
        assert croma_sql.subgroups(other, names, by="encoder", top=7).equals(found)


def test_sizes_and_groups_are_respected():
    frame = cohort(0)
    everything = croma_sql.subgroups(frame, top=10**6)
    assert everything["n"].min() >= len(frame) * 0.005
    assert everything["n_groups"].min() >= 5
    large = croma_sql.subgroups(frame, min_size=500, min_groups=60, top=10**6)
    assert large["n"].min() >= 500
    assert large["n_groups"].min() >= 60
    assert len(croma_sql.subgroups(frame, top=3)) == 3
    assert len(croma_sql.subgroups(frame, min_size=len(frame))) == 0


def test_one_slide_can_be_listed_but_proves_nothing():
    frame = cohort(0).with_columns(
        slide=pl.col("group_id").cast(str), margin=pl.col("margin") - (pl.col("group_id") == 7)
    )
    found = croma_sql.subgroups(frame, "slide", min_groups=1).row(0, named=True)
    assert (found["subgroup"], found["n_groups"]) == ("slide = '7'", 1)
    assert found["p"] == pytest.approx(0.5, abs=1e-4)


def test_where_there_is_nothing_to_compare_the_table_is_empty():
    frame = cohort(0, slides=20)
    columns = croma_sql.subgroups(frame).schema
    for empty in (
        frame.with_columns(margin=pl.lit(0.1)),
        frame.with_columns(margin=pl.lit(None, pl.Float64)),
        frame.clear(),
        frame.head(15),
    ):
        found = croma_sql.subgroups(empty, ["zone", "scanner"], by="zone")
        assert found.schema == {"zone": pl.String, **columns}
        assert len(found) == 0
    assert len(croma_sql.subgroups(frame.with_columns(one=pl.lit("x")), "one")) == 0
    one_group = croma_sql.subgroups(frame.with_columns(group_id=1), "zone", min_groups=1)
    assert (one_group["p"] > 0.49).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"attributes": ["zone", "stian"]},
            "no column 'stian'; it has 'sample_id', 'group_id', 's",
        ),
        ({"value": "croma"}, "no column 'croma'"),
        ({"value": "zone"}, "'zone' is of type String; expected numbers"),
        ({"group": "centre"}, "'centre' is NULL in .* rows .*every row belongs to a group"),
        ({"attributes": []}, "no attribute to tell rows apart by; name columns"),
        ({"max_attributes": 4}, "max_attributes is 4; .* at least 1 and at most 3"),
        ({"max_attributes": True}, "max_attributes is True"),
        ({"min_size": 0}, "min_size is 0"),
        ({"min_groups": 1.5}, "min_groups is 1.5"),
        ({"top": 0}, "top is 0"),
        ({"bins": -1}, "bins is -1"),
    ],
)
def test_mistakes_are_told(options, message):
    with pytest.raises(croma_sql.StatisticsError, match=message):
        croma_sql.subgroups(cohort(0, slides=20), **options)


def test_more_combinations_than_memory_holds_are_refused():
    values = np.random.default_rng(0).integers(3000, size=(3, 20_000))
    frame = pl.DataFrame({name: row.astype(str) for name, row in zip("abc", values, strict=True)})
    frame = frame.with_columns(
        margin=pl.int_range(pl.len()) / 20_000, group_id=pl.int_range(pl.len())
    )
    message = "2 attributes make .* of at least 1 rows.* raise min_size or min_groups, or leave out"
    with pytest.raises(croma_sql.StatisticsError, match=message):
        croma_sql.subgroups(frame, ["a", "b", "c"], min_size=1, min_groups=1)
    assert len(croma_sql.subgroups(frame, ["a", "b", "c"])) == 0


# -- shrinkage


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(-1, 1), st.sampled_from([1e-6, 0.01, 1.0])), min_size=1, max_size=30
    )
)
def test_shrinkage_pulls_towards_none_in_order(seen):
    difference, variance = map(np.array, zip(*seen, strict=True))
    shrunken = shrink(difference, variance)
    assert (np.abs(shrunken) <= np.abs(difference)).all()
    assert (np.sign(shrunken) * np.sign(difference) >= 0).all()
    for (i, a), (j, b) in product(enumerate(seen), repeat=2):
        if abs(a[0]) <= abs(b[0]) and a[1] == b[1]:
            assert abs(shrunken[i]) <= abs(shrunken[j]) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_shrinkage_keeps_needles_and_forgets_straw(seed):
    rng = np.random.default_rng(seed)
    variance = rng.uniform(0.001, 0.01, 2000)
    straw = np.sqrt(variance) * rng.standard_normal(2000)
    assert np.abs(shrink(straw, variance)).max() < 0.1 * np.abs(straw).max()
    needles = np.arange(0, 2000, 100)
    seen = straw + 0.5 * np.isin(np.arange(2000), needles)
    kept = shrink(seen, variance)
    assert (kept[needles] > 0.7 * seen[needles]).mean() > 0.9
    error = ((kept - seen + straw) ** 2).mean()
    assert error < 0.15 * (straw**2).mean()
