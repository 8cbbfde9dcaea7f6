"""Centre encoding of a warehouse: what is kept, what is made again, and what the views tell."""

import os
import pathlib
import pty
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from cohorts import random_cohort
from mistakes import cut_short, raises
from sklearn.metrics import balanced_accuracy_score

import croma_sql
from croma_sql.warehouse.score_schemas import CENTRE, SCHEMAS

COMMAND = pathlib.Path(sys.executable).with_name("croma-sql")
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


# What it is


def test_files_hold_what_the_python_doors_give(root):
    """To the last bit, for any number of threads."""
    frame = tiles(labels=3)
    done = measured(built(root, frame), threads=1)
    assert (done.outcome, done.n, done.left_out, done.not_probed) == ("measured", 120, 0, ())
    frame, ids = frame.sort("sample_id"), frame["sample_id"].sort()
    files = {table: pl.read_parquet(path_of(root, table)) for table in CENTRE}
    for table, file in files.items():
        schema = {field.name: str(field.type) for field in SCHEMAS[table]}
        assert list(file.columns) == list(schema)
    for target in ("label", "confounder"):
        found = croma_sql.silhouettes(*columns(frame, target), sample_id=ids)["silhouette"]
        assert files["silhouettes"][f"{target}_silhouette"].equals(found)
    clusters = croma_sql.clustering(
        *columns(frame, "label", "confounder"), sample_id=ids, trials=2, k_range=(2, 4)
    )
    assert files["clusterings"].equals(clusters.clusterings)
    assert files["cluster_counts"].equals(clusters.cluster_counts)
    assert done.n_quartets == clusters.clusterings["quartet"].n_unique() == 3
    probes = croma_sql.probes(
        *columns(frame, "label", "confounder", "group_id"), sample_id=ids, folds=3
    )
    assert files["probe_predictions"].drop("subset").equals(probes)


def test_views_are_what_the_files_come_to(root):
    frame = tiles()
    measured(built(root, frame))
    told = ask(root, "FROM centre_encoding").row(0, named=True)
    silhouettes = ask(root, "FROM silhouettes")
    assert told["fm_si"] == pytest.approx(silhouettes["confounder_silhouette"].mean(), abs=1e-15)
    assert told["label_silhouette"] == pytest.approx(silhouettes["label_silhouette"].mean())
    clusterings = ask(root, "FROM clusterings")
    scores = ask(root, "FROM clustering_scores")
    assert scores["clustering_score"][0] == pytest.approx(clusterings["clustering_score"].mean())
    assert scores["clustering_score_sd"][0] == pytest.approx(
        clusterings["clustering_score"].std(), abs=1e-15
    )
    assert told["clustering_score"] == scores["clustering_score"][0]
    counts = ask(root, "FROM cluster_counts ORDER BY k")
    chosen = counts.filter("is_chosen")
    assert (
        chosen["k"].to_list()
        == scores["k"].to_list()
        == [counts["k"][counts["silhouette"].arg_max()]]
    )
    for (target, probe), some in ask(root, "FROM probe_predictions").group_by("target", "probe"):
        accuracy = ask(
            root, f"FROM probe_accuracy WHERE target = '{target}' AND probe = '{probe}'"
        ).row(0, named=True)
        expected = balanced_accuracy_score(some["truth"], some["predicted"])
        assert accuracy["balanced_accuracy"] == pytest.approx(expected, abs=1e-15)
        assert accuracy["accuracy"] == pytest.approx((some["truth"] == some["predicted"]).mean())
        assert (accuracy["n"], accuracy["n_classes"], accuracy["chance"]) == (120, 2, 0.5)
        assert told[f"{probe}_{target}_bacc"] == accuracy["balanced_accuracy"]
        assert told[f"{target}_chance"] == 0.5


def test_attributes_stand_beside(root):
    frame = tiles().with_columns(scanner=pl.Series(["p", "q"] * 60))
    measured(built(root, frame))
    by_scanner = ask(root, """
        SELECT scanner, avg(confounder_silhouette), count(*) FROM silhouettes GROUP BY scanner
    """)  # fmt: skip
    assert dict(by_scanner.select("scanner", "count_star()").rows()) == {"p": 60, "q": 60}
    accuracies = ask(root, """
        SELECT scanner, target, croma_balanced_accuracy(truth, predicted) AS bacc
        FROM probe_predictions WHERE probe = 'knn' GROUP BY ALL
    """)  # fmt: skip
    assert len(accuracies) == 4
    assert accuracies["bacc"].is_between(0, 1).all()


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Encoders of one cohort: without a trace of the centre, with a strong one, and collapsed."""
    root = tmp_path_factory.mktemp("planted") / "W"
    rng = np.random.default_rng(0)
    slide = np.repeat(np.arange(40), 6)
    centre, label = slide % 2, rng.integers(2, size=240)
    directions = 4 * np.linalg.qr(rng.standard_normal((16, 16)))[0]
    biology = rng.standard_normal((240, 16)) + (2 * label - 1)[:, None] * directions[0]
    shift = (2 * centre - 1)[:, None] * directions[1]
    vectors = {
        "robust": biology,
        "centre": rng.standard_normal((240, 16)) + 2 * shift,
        "collapsed": 1 + 1e-9 * (biology + 2 * shift),
    }
    for encoder, some in vectors.items():
        frame = pl.DataFrame(
            {
                "sample_id": [f"s{i:03d}" for i in range(240)],
                "embedding": pl.Series(some, dtype=pl.Array(pl.Float64, 16)),
                "label": label,
                "confounder": centre,
                "group_id": slide,
            }
        )
        built(root, frame, encoder=encoder)
    croma_sql.score_centre(root, trials=3, folds=4, k_range=(2, 6))
    return root


def test_planted_encodings_are_told_apart(planted):
    told = {
        row["encoder"]: row for row in ask(planted, "FROM centre_encoding").iter_rows(named=True)
    }
    robust, centre, collapsed = (told[name] for name in ("robust", "centre", "collapsed"))
    assert abs(robust["fm_si"]) < 0.02
    assert robust["label_silhouette"] > 0.5
    assert robust["clustering_score"] > 0.95
    assert centre["fm_si"] > 0.5
    assert abs(centre["label_silhouette"]) < 0.02
    assert centre["clustering_score"] < -0.95
    for probe in ("knn", "linear"):
        assert abs(robust[f"{probe}_confounder_bacc"] - 0.5) < 0.12
        assert robust[f"{probe}_label_bacc"] > 0.99
        assert centre[f"{probe}_confounder_bacc"] > 0.99
        assert collapsed[f"{probe}_confounder_bacc"] > 0.99
    assert collapsed["fm_si"] > 0.4


def test_an_encoder_of_one_vector_encodes_nothing(root):
    frame = tiles().with_columns(
        embedding=pl.Series([[1.0, 2.0]] * 120, dtype=pl.Array(pl.Float64, 2))
    )
    done = measured(built(root, frame))
    assert done.n_quartets == 1
    told = ask(root, "FROM centre_encoding").row(0, named=True)
    assert (told["fm_si"], told["label_silhouette"], told["clustering_score"]) == (0.0, 0.0, None)
    assert told["knn_confounder_bacc"] == told["linear_confounder_bacc"] == 0.5
    assert ask(root, "SELECT k, trials FROM clustering_scores").rows() == [(None, 0)]


# Which rows are measured together


def test_subsets_of_two_by_two_are_the_quartets(root):
    frame = tiles(labels=3, confounders=3, n=240)
    select = "FROM croma_quartets('samples')"
    measured(built(root, frame, select), trials=1)
    subsets = ask(root, "SELECT DISTINCT subset FROM silhouettes")["subset"].sort()
    assert len(subsets) == 9
    assert ask(root, "SELECT quartet FROM clustering_scores ORDER BY 1")["quartet"].equals(
        subsets.rename("quartet")
    )
    one = subsets[4]
    with croma_sql.connect(root) as con:
        con.register("tiles", frame)
        rows, kept = (
            con.sql(f"FROM {relation} WHERE subset = $s ORDER BY sample_id", params={"s": one}).pl()
            for relation in ("croma_quartets('tiles')", "silhouettes")
        )
    some = frame.filter(pl.col("sample_id").is_in(rows["sample_id"].to_list())).sort("sample_id")
    found = croma_sql.silhouettes(*columns(some, "confounder"), sample_id=some["sample_id"])
    assert kept["confounder_silhouette"].equals(found["silhouette"].rename("confounder_silhouette"))
    told = ask(root, """
        SELECT fm_si, mean_of_means, label_chance
        FROM centre_encoding, (SELECT avg(m) AS mean_of_means FROM (
            SELECT avg(confounder_silhouette) AS m FROM silhouettes GROUP BY subset
        ))
    """).row(0)  # fmt: skip
    assert told == (pytest.approx(told[1], abs=1e-15), told[1], 0.5)


def test_of_other_subsets_all_quartets_are_clustered(root):
    """Each once, though the samples of the two subsets overlap."""
    frame = tiles(labels=3, n=180)
    select = f"""
        SELECT *, 'all' AS subset FROM ({SELECT}) UNION ALL
        SELECT *, 'few' FROM ({SELECT}) WHERE group_id <> 'slide7'
    """
    measured(built(root, frame, select), trials=1)
    expected = croma_sql.clustering(
        *columns(frame, "label", "confounder"),
        sample_id=frame["sample_id"],
        trials=1,
        k_range=(2, 4),
    )
    assert pl.read_parquet(path_of(root, "clusterings")).equals(expected.clusterings)
    assert ask(root, "SELECT n_classes, round(chance, 9) FROM probe_accuracy").unique().rows() in (
        [(3, 0.333333333), (2, 0.5)], [(2, 0.5), (3, 0.333333333)],
    )  # fmt: skip


def test_silhouettes_are_among_those_that_match(root):
    frame = tiles(n=160).with_columns(site=pl.Series(["A", "B", "B", "B"] * 40))
    measured(built(root, frame, SELECT.replace("FROM", ", site AS match_site FROM")))
    kept = ask(root, "FROM silhouettes ORDER BY sample_id")
    for site in ("A", "B"):
        some = frame.filter(site=site).sort("sample_id")
        found = croma_sql.silhouettes(*columns(some, "confounder"), sample_id=some["sample_id"])
        of_site = kept.filter(matched=f'{{"site": "{site}"}}')
        assert of_site["confounder_silhouette"].to_list() == found["silhouette"].to_list()
    assert croma_sql.check(root) == []


def test_vectors_that_are_null_or_dropped_take_no_part(root):
    frame = tiles().sort("sample_id")
    vectors = frame["embedding"].to_numpy().copy()
    vectors[[3, 50]] = np.nan
    holes = frame.with_columns(embedding=pl.Series(vectors, dtype=pl.Array(pl.Float64, 8)))
    left = frame.filter(~pl.int_range(pl.len()).is_in([3, 50]))
    found = croma_sql.silhouettes(*columns(left, "label"), sample_id=left["sample_id"])
    for way, n, left_out in (("null", 120, 0), ("drop", 118, 2)):
        done = measured(built(root / way, holes, on_bad_vectors=way))
        assert (done.n, done.left_out) == (n, left_out)
        kept = ask(root / way, "FROM silhouettes ORDER BY sample_id")
        assert kept["label_silhouette"].drop_nulls().to_list() == found["silhouette"].to_list()
        assert ask(root / way, "SELECT n FROM probe_accuracy")["n"].to_list() == [118] * 4
        assert croma_sql.check(root / way) == []


def test_a_subset_without_vectors_has_nothing(root):
    frame = tiles(n=160).sort("sample_id").with_columns(part=pl.Series(["p"] * 80 + ["q"] * 80))
    vectors = frame["embedding"].to_numpy().copy()
    vectors[:80] = np.nan
    holes = frame.with_columns(embedding=pl.Series(vectors, dtype=pl.Array(pl.Float64, 8)))
    select = SELECT.replace("FROM", ", part AS subset FROM")
    done = measured(built(root, holes, select, on_bad_vectors="null"))
    assert done.not_probed == (
        "subset 'p': column 'label' has no value; give it two",
        "subset 'p': column 'confounder' has no value; give it two",
    )
    kept = ask(root, "FROM clustering_scores ORDER BY quartet")
    assert kept.select("quartet", "k", "trials")[0].rows() == [("p", None, 0)]
    some = frame[80:]
    found = croma_sql.silhouettes(*columns(some, "label"), sample_id=some["sample_id"])
    told = ask(root, "FROM centre_encoding").row(0, named=True)
    assert told["label_silhouette"] == pytest.approx(found["silhouette"].mean(), abs=1e-15)
    assert told["clustering_score"] == kept["clustering_score"][1]
    assert told["label_chance"] == 0.5
    assert croma_sql.check(root) == []


def test_a_class_in_few_groups_is_not_probed_and_that_is_told(root):
    frame = tiles().with_columns(
        label=pl.when(pl.col("group_id") == "slide1").then(pl.lit("rare")).otherwise("label")
    )
    done = measured(built(root, frame))
    (why,) = done.not_probed
    assert why.startswith("column 'label': 'rare' is in 1 group(s), fewer than the 3 folds")
    assert measured(root).not_probed == done.not_probed
    told = ask(root, "FROM centre_encoding").row(0, named=True)
    assert told["knn_label_bacc"] is told["label_chance"] is None
    assert told["knn_confounder_bacc"] > 0.5
    probed = ask(
        root, "SELECT target, n, n_classes, accuracy FROM probe_accuracy WHERE target = 'label'"
    )
    assert probed.rows() == [("label", 0, None, None)] * 2
    assert croma_sql.check(root) == []


# What is kept


def test_what_is_up_to_date_is_kept(root):
    built(root, tiles())
    assert measured(root).outcome == "measured"
    before = contents(root)
    assert measured(root).outcome == "up to date"
    assert contents(root) == before
    for options in ({"trials": 3}, {"folds": 2}, {"seed": 1}, {}):
        assert measured(root, **options).outcome == "measured"
    assert contents(root) == before
    told = {one.table: one.status for one in croma_sql.info(root).scores}
    assert told == dict.fromkeys(CENTRE, "up to date")
    built(root, tiles(1))
    assert {one.status for one in croma_sql.info(root).scores} == {"stale"}
    assert croma_sql.check(root) == []
    assert measured(root).outcome == "measured"


@pytest.mark.parametrize("spoil", [cut_short, lambda path: path.unlink()], ids=["short", "gone"])
@pytest.mark.parametrize("table", CENTRE)
def test_what_is_damaged_or_gone_is_made_again(root, table, spoil):
    measured(built(root, tiles(n=60)))
    before = contents(root)
    spoil(path_of(root, table))
    assert measured(root).outcome == "measured"
    assert contents(root) == before


def test_a_run_that_ends_between_two_files_is_finished_by_the_next(root, monkeypatch):
    built(root, tiles(n=60))
    replace = pathlib.Path.replace

    def fail_for_clusterings(self, target):
        if target.name == "clusterings.parquet":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    with monkeypatch.context() as context:
        context.setattr(pathlib.Path, "replace", fail_for_clusterings)
        with raises("cannot write", "clusterings.parquet", "No space left"):
            measured(root)
    assert measured(root).outcome == "measured"
    assert croma_sql.check(root) == []


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_an_interrupted_run_changes_nothing_and_the_next_goes_on(root, share):
    """While it clusters, and while it probes."""
    built(root, tiles(n=60))
    built(root, tiles(n=60), encoder="f")
    croma_sql.score_centre(root, encoder="f", **QUICK)
    before = contents(root)

    def stop(benchmark, encoder, done):
        if done > share:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        croma_sql.score_centre(root, on_progress=stop, **QUICK)
    assert contents(root) == before
    done = croma_sql.score_centre(root, **QUICK)
    assert [one.outcome for one in done] == ["measured", "up to date"]


def test_progress_grows_to_one(root):
    told = []
    built(root, tiles(n=60))
    croma_sql.score_centre(root, on_progress=lambda *one: told.append(one), **QUICK)
    assert {one[:2] for one in told} == {("b", "e")}
    shares = [share for *_, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_mistakes_are_told(root):
    built(root, tiles(n=60))
    for options, message in (
        ({"trials": 0}, "trials is 0; it is a whole number of at least 1"),
        ({"folds": 1}, "folds is 1; it is a whole number of at least 2"),
        ({"encoder": "f"}, "has no encoder 'f'; it has 'e'"),
        ({"benchmark": "c"}, "has no benchmark 'c'; it has 'b'"),
    ):
        with raises(message):
            croma_sql.score_centre(root, **options)


def test_a_file_of_other_rows_is_named(root):
    measured(built(root, tiles(n=60)))
    path = path_of(root, "silhouettes")
    swapped = pl.read_parquet(path).with_columns(label=pl.lit("other"))
    about = pl.read_parquet_metadata(path)
    swapped.write_parquet(path, metadata={"croma_sql": about["croma_sql"]})
    (problem,) = croma_sql.check(root)
    assert "silhouettes.parquet" in problem


# The command


def run(*arguments):
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_measures_and_shows(root, tmp_path):
    frame = tiles().with_columns(
        label=pl.when(pl.col("group_id") == "slide1").then(pl.lit("rare")).otherwise("label")
    )
    built(root, frame)
    given = ("centre", root, "--trials", 2, "--folds", 3, "--max-k", 4)
    code, out, err = run(*given)
    assert code == 0
    assert err.startswith("b / e: not probed: column 'label': 'rare' is in 1 group(s)")
    assert "linear_confounder_bacc" in out
    assert "label_bacc" not in out  # a column that says nothing
    code, out, err = run(*given, "--format", "csv", "--output", tmp_path / "found.csv")
    assert (code, out) == (0, "")
    found = pl.read_csv(tmp_path / "found.csv")
    assert found.columns == ask(root, "FROM centre_encoding").columns
    assert found["fm_si"].to_list() == ask(root, "FROM centre_encoding")["fm_si"].to_list()
    code, out, err = run("centre", root, "--encoder", "f")
    assert (code, out) == (1, "")
    assert "has no encoder 'f'; it has 'e'" in err
    assert run("centre", root, "--folds", 1)[0] == 2


def test_ctrl_c_ends_the_command(root):
    """In the middle of k-means on vectors that take it a minute."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "sample_id": np.arange(20_000),
            "embedding": rng.standard_normal((20_000, 128), dtype=np.float32),
            "label": np.arange(20_000) % 2,
            "confounder": np.arange(20_000) // 2 % 2,
            "group_id": np.arange(20_000),
        }
    )
    built(root, frame)
    before = contents(root)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "centre", root], stdout=subprocess.PIPE, stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
    ) as child:  # fmt: skip
        os.close(theirs)
        seen = b""
        while b"%" not in seen:
            seen += os.read(ours, 1024)
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        while b"stopped; the warehouse is whole" not in seen:
            seen += os.read(ours, 1024)
        assert child.wait() == 130
        assert time.monotonic() - sent < 5  # a second by itself; the rest is for a busy machine
    os.close(ours)
    assert b"measuring b / e" in seen
    assert contents(root) == before
