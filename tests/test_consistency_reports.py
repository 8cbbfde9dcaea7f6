"""Reports of consistency."""

import polars as pl
import pytest
import scanned
from scipy.stats import spearmanr

import croma_sql

METRICS = ["d_cos", "mr_1nn", "iok_10", "profile_r"]
ENCODERS = {
    "good": scanned.good(0, noise=0.9),
    "fair": scanned.good(1, noise=1.2),
    "a ResNet": scanned.compact(3),
    "collapsed": scanned.collapsed(5),
    "control": scanned.good(6, noise=0.2),
}
SLIDES = [f"slide {i // 2}" for i in range(40)]
STAIN = ["old"] * 12 + ["new"] * 25 + [None] * 3


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("reports") / "W"
    scanned.warehouse(root, ENCODERS, {"slide": SLIDES, "stain": STAIN}).close()
    controls = pl.DataFrame({"encoder": ["control"], "is_control": [True]})
    croma_sql.import_encoders(root, controls)
    return root


@pytest.fixture(scope="module")
def units(root):
    with croma_sql.connect(root) as con:
        return con.sql("FROM unit_consistency ORDER BY encoder, unit").pl()


def test_the_summary_has_what_is_flagged_last(root):
    found = croma_sql.consistency_summary(root)
    assert found["encoder"].to_list()[:3] == ["control", "good", "fair"]
    assert found["mr_1nn"][:3].is_sorted(descending=True)
    assert set(found["encoder"][3:]) == {"a ResNet", "collapsed"}
    reasons = dict(found.select("encoder", "collapse_reason").rows())
    assert (reasons["a ResNet"], reasons["collapsed"]) == ("compact", "no_spread")
    alone = croma_sql.consistency_summary(root, encoder="a ResNet")
    assert alone.rows() == found.filter(encoder="a ResNet").rows()  # compared with the others


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"benchmark": "no"}, "no acquisitions are compared of benchmark 'no'; they are of 'sc"),
        ({"encoder": "no"}, "no acquisitions are compared of encoder 'no'; they are of 'a Res"),
    ],
)
def test_names_that_are_not_there(root, names, message):
    with pytest.raises(croma_sql.StatisticsError, match=message):
        croma_sql.consistency_summary(root, **names)
    with pytest.raises(croma_sql.StatisticsError, match=message):
        croma_sql.consistency_strata(root, "stain", **names)


def test_nothing_is_compared_yet(tmp_path):
    croma_sql.create_warehouse(tmp_path / "W")
    for report in (
        croma_sql.consistency_summary,
        croma_sql.compare_consistency,
        croma_sql.compare_consistency_pairs,
        croma_sql.consistency_agreement,
    ):
        with pytest.raises(croma_sql.StatisticsError, match="run croma-sql consistency"):
            report(tmp_path / "W")


def test_ranks_are_of_means_and_the_lowest_distance_is_the_best(root, units):
    found = croma_sql.compare_consistency(root, draws=50)
    assert found["metric"].unique(maintain_order=True).to_list() == METRICS
    for metric in METRICS:
        of_one = found.filter(metric=metric)
        means = dict(units.group_by("encoder").agg(pl.col(metric).mean()).rows())
        for row in of_one.rows(named=True):
            assert row["value"] == pytest.approx(means[row["encoder"]], abs=1e-12)
            assert row["value_lo"] <= row["value"] <= row["value_hi"]
            assert (row["n"], row["n_left_out"]) == (40, 0)
        assert of_one["value"].is_sorted(descending=metric != "d_cos")
        is_ranked = ~pl.col("is_control")
        if metric == "d_cos":  # which says nothing of these
            is_ranked &= ~pl.col("encoder").is_in(["a ResNet", "collapsed"])
        ranks = of_one.filter(is_ranked)["rank"].to_list()
        assert ranks == list(range(1, len(ranks) + 1))
        assert of_one.filter(~is_ranked)["rank"].null_count() == 5 - len(ranks)
    by_distance = found.filter(metric="d_cos")
    assert by_distance["encoder"][0] == "collapsed"  # which is why there is a check
    assert by_distance["best_probability"].to_list() == [None, None, None, 1, 0]


def test_intervals_are_those_of_the_bootstrap_of_units(root, units):
    found = croma_sql.compare_consistency(root, draws=200, seed=3)
    for metric in METRICS:
        expected = croma_sql.bootstrap(
            units, by="encoder", value=metric, group="unit", statistics="mean", draws=200, seed=3
        )
        one = found.filter(metric=metric).sort("encoder").select("value", "value_lo", "value_hi")
        for ours, theirs in zip(one.rows(), expected.sort("encoder").rows(), strict=True):
            assert ours == pytest.approx(theirs[2:5], abs=1e-12)


def test_differences_have_the_sign_of_the_metric(root, units):
    found = croma_sql.compare_consistency_pairs(root, draws=200)
    means = {
        metric: dict(units.group_by("encoder").agg(pl.col(metric).mean()).rows())
        for metric in METRICS
    }
    assert len(found) == 4 * 10
    for row in found.rows(named=True):
        mean = means[row["metric"]]
        difference = mean[row["first"]] - mean[row["second"]]
        assert row["difference"] == pytest.approx(difference, abs=1e-12)
        assert difference < 0 if row["metric"] == "d_cos" else difference >= 0
        assert row["lo"] <= row["difference"] <= row["hi"]
    good = found.filter(metric="d_cos", first="good", second="fair").row(0, named=True)
    assert good["hi"] < 0
    assert good["win_probability"] == 1


def test_units_of_one_slide_are_drawn_together(root):
    """Two units per slide, so that half as many draws are independent."""
    by_unit, by_slide = (
        croma_sql.compare_consistency(root, group=group, draws=300).filter(metric="d_cos")
        for group in ("unit", "slide")
    )
    assert by_unit["value"].to_list() == pytest.approx(by_slide["value"].to_list(), abs=1e-12)
    assert (by_unit["value_lo"] != by_slide["value_lo"]).all()
    with pytest.raises(croma_sql.StatisticsError, match="'stain' is NULL in 15 of 200 rows"):
        croma_sql.compare_consistency(root, group="stain")
    with pytest.raises(croma_sql.StatisticsError, match="no column 'age'"):
        croma_sql.compare_consistency(root, group="age")


def test_strata_are_of_their_units(root, units):
    found = croma_sql.consistency_strata(root, "stain", draws=50)
    expected = (
        units.group_by("encoder", "stain")
        .agg(pl.len().alias("n"), *(pl.col(metric).mean() for metric in METRICS))
        .sort("encoder", "stain")
    )
    told = found.select("encoder", "stain", "n", *METRICS).sort("encoder", "stain")
    assert told.drop(METRICS).rows() == expected.drop(METRICS).rows()
    assert told.select(METRICS).to_numpy() == pytest.approx(expected.select(METRICS).to_numpy())
    few = found.filter(pl.col("stain").is_null())
    assert few["d_cos_lo"].null_count() == len(few) == 5  # three units make no interval
    for _, of_one in found.group_by("encoder"):
        assert of_one["mr_1nn"].is_sorted()


def test_strata_refuse_a_name_that_is_theirs(root):
    with pytest.raises(croma_sql.StatisticsError, match="has a column 'd_cos_lo' of its own"):
        croma_sql.consistency_strata(root, "d_cos_lo")


def test_agreement_is_that_of_rankings_without_controls(root):
    """The view and the function, and scipy."""
    summary = croma_sql.consistency_summary(root).filter(pl.col("encoder") != "control")
    assert summary["collapse_reason"].to_list() == [None, None, "compact", "no_spread"]
    better = summary.with_columns(
        pl.when(pl.col("collapse_reason").is_null()).then(-pl.col("d_cos"))
    )
    found = croma_sql.consistency_agreement(root, draws=50)
    with croma_sql.connect(root) as con:
        view = {
            frozenset(row[:2]): row[2:]
            for row in con.sql(
                "SELECT metric_a, metric_b, spearman, n FROM consistency_agreement"
            ).fetchall()
        }
    assert len(found) == len(view) == 10
    for x, y, rho, n in found.select("x", "y", "rho", "n").rows():
        both = better.drop_nulls([x, y])
        expected = pytest.approx(spearmanr(both[x], both[y]).statistic, abs=1e-12)
        assert view[frozenset((x, y))] == (expected, len(both))
        assert rho == (expected if n > 2 else None)
        assert n == len(both) == (2 if x == "d_cos" else 4)


def test_a_metric_without_values_has_no_rows(tmp_path):
    """Ten units have no ten neighbours."""
    found = {name: vectors[:, :8] for name, vectors in ENCODERS.items()}
    scanned.warehouse(tmp_path, found, permutations=0).close()
    compared = croma_sql.compare_consistency(tmp_path, draws=10)
    assert set(compared["metric"]) == {"d_cos", "mr_1nn", "profile_r"}
    assert croma_sql.consistency_strata(tmp_path, [], draws=10)["iok_10"].null_count() == 5


def test_benchmarks_do_not_depend_on_each_other(root, tmp_path):
    half = {name: ENCODERS[name] for name in ("good", "fair")}
    scanned.warehouse(tmp_path, half, permutations=0).close()
    alone = croma_sql.compare_consistency(tmp_path, draws=50)
    few = "WHERE patient < 'p020'"
    croma_sql.add_benchmark(tmp_path, "another", f"{scanned.SELECT} {few}")
    croma_sql.score_consistency(tmp_path, permutations=0)
    both = croma_sql.compare_consistency(tmp_path, draws=50)
    assert both.filter(benchmark="scanners").equals(alone)
    assert set(both.filter(benchmark="another")["n"]) == {20}
