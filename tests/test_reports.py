"""The tables of the command line: views and statistics side by side, every number in its place."""

import json
import re
from dataclasses import replace

import polars as pl
import pytest
from cohorts import random_cohort
from typer.testing import CliRunner

import croma_sql
from croma_sql import reports
from croma_sql.cli.app import app

SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"
PAIRED = """
    SELECT sample_id, label, confounder, group_id, unnest(['x', 'y']) AS subset FROM samples
"""
FEW = {"draws": 50}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Three encoders, of which c is a control, and a benchmark with and one without subsets."""
    folder = tmp_path_factory.mktemp("study") / "W"
    cohort = random_cohort(0, n=160, d=8, groups=32)
    tiles = cohort.frame().with_columns(
        pl.Series("zone", [None, "edge", "it's", "ä"] * 40),
        pl.Series("statistic", ["p", "q"] * 80),  # names of columns of results
        pl.Series("f0", [0, 1] * 80),
        pl.Series("is_control", [True, False] * 80),  # of control tissue, not of encoders
    )
    for name, effect in (("a 'x'", 0.8), ("b", 0.5), ("c", 1.5)):
        other = random_cohort(1, n=160, d=8, groups=32, effect=effect)
        one = replace(cohort, vectors=other.vectors + cohort.vectors / 4).frame()
        croma_sql.import_embeddings(folder, one, encoder=name, dataset="d", samples=tiles)
    croma_sql.import_encoders(
        folder, pl.DataFrame({"encoder": ["a 'x'", "c"], "is_control": [False, True]})
    )
    croma_sql.add_benchmark(folder, "all", SELECT)
    croma_sql.add_benchmark(folder, "paired", PAIRED)
    croma_sql.score(folder, k=11, on_undefined="null")
    return folder


def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


def as_json(*arguments):
    code, out, err = run(*arguments, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_summary_is_the_panel_with_intervals(root):
    con = croma_sql.connect(root)
    found = reports.summary(root, benchmark="all", intervals=True, **FEW)
    assert found["croma"].is_sorted(descending=True)
    view = con.sql("FROM encoder_summary WHERE benchmark = 'all'").pl()
    fixed = con.sql("FROM fixed_k_summary WHERE protocol = 'median_k'").pl()
    margins = con.sql("FROM margins WHERE benchmark = 'all'").pl()
    expected = croma_sql.bootstrap(margins, by="encoder", statistics="ltm10", **FEW)
    for row in found.rows(named=True):
        name = row["encoder"]
        of_view = view.row(by_predicate=pl.col("encoder") == name, named=True)
        assert of_view.items() <= row.items()
        of_fixed = fixed.row(
            by_predicate=(pl.col("encoder") == name) & (pl.col("benchmark") == "all"), named=True
        )
        for column in ("k", "ri", "mari", "bio_bacc", "conf_bacc", "support", "tau"):
            assert row[column] == of_fixed[column]
        interval = expected.row(by_predicate=pl.col("encoder") == name, named=True)
        assert (row["ltm10_lo"], row["ltm10_hi"]) == (interval["lo"], interval["hi"])
        assert row["is_control"] == (name == "c")
    assert len({row["k"] for row in found.rows(named=True)}) == 1


def test_headline_and_interval_of_a_paired_benchmark_are_of_the_subsets_medians(root):
    everything = reports.summary(root, intervals=True, **FEW)
    (row,) = reports.summary(
        root, benchmark="paired", encoder="b", intervals=True, **FEW
    ).rows(named=True)  # fmt: skip
    assert row in everything.rows(named=True)
    margins = reports.read_margins(root, benchmark="paired", encoder="b")
    medians = margins.group_by("subset").agg(pl.col("margin").median())
    assert row["croma"] == pytest.approx(medians["margin"].median(), abs=1e-15)
    expected = croma_sql.bootstrap(margins, subset="subset", statistics="croma", **FEW)
    assert (row["croma_lo"], row["croma_hi"]) == expected.select("lo", "hi").row(0)


def test_summary_at_another_m_and_protocol(root):
    own = reports.summary(root, benchmark="all", protocol="k_star", m=1)
    con = croma_sql.connect(root)
    stars = dict(
        con.sql("SELECT encoder, k_star FROM operating_points WHERE benchmark = 'all'").fetchall()
    )
    assert dict(own.select("encoder", "k").rows()) == stars
    at_1 = dict(
        con.sql(
            "SELECT encoder, croma FROM encoder_summary_at(1) WHERE benchmark = 'all'"
        ).fetchall()
    )
    assert dict(own.select("encoder", "croma").rows()) == at_1


def test_strata_are_groups_of_margins(root):
    found = reports.strata(root, ["confounder", "zone"], benchmark="all", encoder="b", **FEW)
    expected = (
        croma_sql.connect(root)
        .sql("""
        SELECT confounder, zone, count(*) AS n, count(DISTINCT group_id) AS n_groups,
            median(margin) AS croma, f0(margin) AS f0, ltm(margin, 0.1) AS ltm10
        FROM margins WHERE benchmark = 'all' AND encoder = 'b' GROUP BY ALL ORDER BY croma
    """)
        .pl()
    )
    columns = ["confounder", "zone", "n", "n_groups"]
    assert found.select(columns).rows() == expected.select(columns).rows()
    for name in ("croma", "f0", "ltm10"):
        assert found[name].to_list() == pytest.approx(expected[name].to_list(), abs=1e-15)
        assert (found[f"{name}_lo"] <= found[name]).all()
        assert (found[f"{name}_hi"] >= found[name]).all()
    assert None in found["zone"].to_list()


def test_attributes_may_go_by_names_of_results(root):
    found = reports.strata(root, "statistic", benchmark="all", encoder="b", **FEW)
    assert sorted(found["statistic"]) == ["p", "q"]
    with pytest.raises(croma_sql.StatisticsError, match="has a column 'f0' of its own"):
        reports.strata(root, ["zone", "f0"])


def test_compare_ranks_encoders_and_leaves_controls_out(root):
    found = reports.compare(root, benchmark="all", **FEW)
    of = {row["encoder"]: row for row in found.rows(named=True)}
    assert found["croma"].is_sorted(descending=True)
    assert of["c"]["rank"] is None
    assert of["c"]["on_frontier"] is False
    ranked = sorted(("a 'x'", "b"), key=lambda name: -of[name]["croma"])
    assert [of[name]["rank"] for name in ranked] == [1, 2]
    assert sum(of[name]["win_probability"] for name in ranked) == 1
    frontier = croma_sql.connect(root).sql(
        "SELECT encoder, on_frontier FROM encoder_ranking WHERE benchmark = 'all'"
    )
    assert {name: row["on_frontier"] for name, row in of.items()} == dict(frontier.fetchall())


def test_encoders_are_compared_on_the_samples_that_all_have(tmp_path):
    """One encoder lost 20 vectors, another was scored on rows that have changed since."""
    cohort = random_cohort(0, n=160, d=8, groups=32)
    tiles = cohort.frame()
    croma_sql.import_samples(tmp_path, tiles.drop("embedding"), dataset="d")
    croma_sql.import_embeddings(tmp_path, tiles, encoder="whole", dataset="d")
    broken = cohort.vectors.copy()
    broken[:20] = 0
    croma_sql.import_embeddings(
        tmp_path, replace(cohort, vectors=broken).frame(), encoder="less", dataset="d",
        on_bad_vectors="drop",
    )  # fmt: skip
    croma_sql.add_benchmark(tmp_path, "b", SELECT)
    croma_sql.score(tmp_path)
    found = reports.compare(tmp_path, **FEW)
    assert found.select("n", "n_left_out").unique().rows() == [(140, 20)]
    margins = reports.read_margins(tmp_path).filter(
        pl.col("sample_id").is_in(cohort.ids[20:].tolist())
    )
    medians = dict(margins.group_by("encoder").agg(pl.col("margin").median()).rows())
    assert dict(found.select("encoder", "croma").rows()) == pytest.approx(medians, abs=1e-15)
    assert (reports.compare_pairs(tmp_path, **FEW)["n_left_out"] == 20).all()
    assert re.search(r"whole +False +140 +20 ", run("compare", tmp_path, "--draws", "50")[1])


def test_a_benchmark_is_asked_for_without_the_others(tmp_path):
    """Another one that was not scored as deep, or not with k, is none of its business."""
    tiles = random_cohort(0, n=160, d=8, groups=32).frame()
    croma_sql.import_embeddings(tmp_path, tiles, encoder="e", dataset="d", samples=tiles)
    for name, depth in (("deep", 20), ("flat", 5)):
        croma_sql.add_benchmark(tmp_path, name, SELECT)
        croma_sql.score(tmp_path, benchmark=name, m=depth)
    for verb in ("summary", "compare", "strata"):
        assert run(verb, tmp_path, "--benchmark", "deep", "--m", "11")[0] == 0, verb
        assert "m is 11" in run(verb, tmp_path, "--m", "11")[2]


def test_metrics_correlate_over_encoders(root):
    panel = reports.summary(root)
    found = croma_sql.spearman(panel, ["ri", "mari", "croma", "ltm10"], by="benchmark")
    assert len(found) == 2 * 6
    (row,) = found.filter(benchmark="all", x="ri", y="croma").rows(named=True)
    ranks = (panel.filter(benchmark="all")[name].rank() for name in ("ri", "croma"))
    assert row["rho"] == pytest.approx(pl.select(pl.corr(*ranks)).item())


def test_pairs_and_overall(root):
    pairs = reports.compare_pairs(root, benchmark="all", **FEW)
    margins = reports.read_margins(root, benchmark="all")
    same = {"by": "benchmark", "paired_by": "sample_id"}
    assert pairs.equals(croma_sql.differences(margins, **same, **FEW))
    overall = reports.compare_overall(root)
    view = croma_sql.connect(root).sql("FROM encoder_mean_ranks").pl()
    assert overall.sort("encoder").equals(view.select(overall.columns).sort("encoder"))


def test_the_command_line_gives_the_same_rows(root):
    rows = as_json("summary", root, "--benchmark", "all", "--protocol", "k_star", "--m", "3")
    assert rows == reports.summary(root, benchmark="all", protocol="k_star", m=3).to_dicts()
    draws = ("--draws", "50", "--seed", "3")
    rows = as_json("compare", root, *draws)
    assert rows == reports.compare(root, draws=50, seed=3).to_dicts()
    rows = as_json("compare", root, "--pairs", *draws)
    assert rows == reports.compare_pairs(root, draws=50, seed=3).to_dicts()
    assert as_json("compare", root, "--overall") == reports.compare_overall(root).to_dicts()
    rows = as_json("strata", root, "--by", "zone", "--by", "label", *draws)
    assert rows == reports.strata(root, ["zone", "label"], draws=50, seed=3).to_dicts()
    margins = reports.read_margins(root, encoder="b")
    by = ["benchmark", "encoder"]
    rows = as_json("strata", root, "--encoder", "b", "--attribute", "zone", "--attribute", "label")
    assert rows == croma_sql.subgroups(margins, ["zone", "label"], by=by, top=5).to_dicts()
    rows = as_json("strata", root, "--encoder", "b", "--tail", "--attribute", "zone")
    assert rows == croma_sql.enrichment(margins, ["zone"], by=by).to_dicts()


def test_tables_read_well(root):
    code, out, err = run("summary", root, "--benchmark", "all", "--intervals", "--draws", "50")
    assert (code, err) == (0, "")
    header = out.split("\n")[1]
    assert header.split() == [
        "benchmark", "encoder", "is_control", "n", "croma", "f0", "ltm10", "k", "bio_bacc",
        "conf_bacc", "ri", "mari", "support",
    ]  # fmt: skip
    number = r"-?\d\.\d{4}"
    assert re.search(rf"all +b +False +160 +({number} \({number} to {number}\) +){{3}}\d", out)
    out = run("compare", root, "--benchmark", "all", "--draws", "50")[1]
    assert re.search(rf"all +c +True +160 +{number} \({number} to {number}\) +NULL", out)
    out = run("strata", root, "--encoder", "b", "--benchmark", "all")[1]
    assert re.search(r"all +b +1 +\S+ (=|IS|>|<)", out)


def test_a_tau_that_means_nothing_is_told_on_stderr(tmp_path):
    """No SO or OS among the nearest 2: RI has no value, and the table says why."""
    cohort = random_cohort(0, n=400, groups=40)
    corner = 2 * (cohort.label == "class1") + (cohort.confounder == "centre1")
    far = replace(cohort, vectors=50 * (corner[:, None] == range(16)) + cohort.vectors)
    tiles = far.frame()
    croma_sql.import_embeddings(tmp_path, tiles, encoder="e", dataset="d", samples=tiles)
    croma_sql.add_benchmark(tmp_path, "b", SELECT)
    croma_sql.score(tmp_path, k=2)
    code, out, err = run("summary", tmp_path)
    assert code == 0
    assert err == "MaRI of b / e: no SO or OS neighbour within k, so tau changes nothing\n"
    assert " ri " not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("summary", "{}", "--benchmark", "x"),
            "no benchmark 'x' is scored; there is 'all', 'paired'",
        ),
        (
            ("summary", "{}", "--encoder", "x"),
            "no encoder 'x' is scored; there is 'a 'x'', 'b', 'c'",
        ),
        (("summary", "{}", "--m", "21"), "m is 21, but benchmark"),
        (("strata", "{}", "--by", "zome"), "zome"),
        (("strata", "{}", "--attribute", "zome"), "zome"),
        (("compare", "{}", "--benchmark", "x"), "no benchmark 'x' is scored"),
    ],
)
def test_errors_are_a_sentence(root, arguments, message):
    code, out, err = run(*(argument.format(root) for argument in arguments))
    assert (code, out) == (1, "")
    assert err.startswith("croma-sql: ")
    assert err.count("\n") == 1
    assert message.replace("'a 'x''", "\"a 'x'\"") in err


def test_nothing_scored_is_said(tmp_path):
    croma_sql.create_warehouse(tmp_path)
    for verb in ("summary", "compare", "strata"):
        code, _, err = run(verb, tmp_path)
        assert code == 1
        assert "is scored yet; run croma-sql score" in err
    assert "is scored yet" in run("compare", tmp_path, "--overall")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--pairs", "--overall"),
        ("compare", "--overall", "--benchmark", "all"),
        ("strata", "--by", "zone", "--tail"),
        ("summary", "--format", "parquet"),
        ("summary", "--output", "table.txt"),
        ("summary", "--m", "0"),
    ],
)
def test_usage_errors(root, arguments):
    verb, *options = arguments
    assert run(verb, root, *options)[0] == 2
