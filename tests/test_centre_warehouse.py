"""Centre encoding of a warehouse: what the files and the views tell."""

import numpy as np
import polars as pl
import pytest
from encoded import SELECT, ask, built, columns, measured, path_of, tiles
from sklearn.metrics import balanced_accuracy_score

import croma_sql
from croma_sql.warehouse.scoring.schemas import CENTRE, SCHEMAS

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
    """Each within its subset, though the samples of the two overlap."""
    frame = tiles(labels=3, n=180)
    select = f"""
        SELECT *, 'all' AS subset FROM ({SELECT}) UNION ALL
        SELECT *, 'few' FROM ({SELECT}) WHERE group_id <> 'slide7'
    """
    done = measured(built(root, frame, select), trials=1)
    few = frame.filter(pl.col("group_id") != "slide7")
    expected = pl.concat(
        clusterings_of(name, some) for name, some in (("all", frame), ("few", few))
    )
    assert pl.read_parquet(path_of(root, "clusterings")).equals(expected)
    assert done.n_quartets == 6
    assert ask(root, "SELECT n_classes, round(chance, 9) FROM probe_accuracy").unique().rows() in (
        [(3, 0.333333333), (2, 0.5)], [(2, 0.5), (3, 0.333333333)],
    )  # fmt: skip


def clusterings_of(subset, frame, **options):
    found = croma_sql.clustering(
        *columns(frame, "label", options.get("confounder", "confounder")),
        sample_id=frame["sample_id"],
        trials=1,
        k_range=(2, 4),
    ).clusterings
    return found.with_columns(quartet=pl.format("{}: {}", pl.lit(subset), "quartet"))


def test_the_confounder_may_be_another_in_every_subset(root):
    """Neither is two by two, so each gives all its quartets; beside them, one that is."""
    frame = tiles(labels=2, confounders=3, n=180).with_columns(
        grade=pl.int_range(pl.len()).mod(4).cast(pl.String)
    )
    select = """
        SELECT sample_id, label, confounder, group_id, 'centre' AS subset FROM samples
        UNION ALL
        SELECT sample_id, label, grade, group_id, 'grade' FROM samples
        UNION ALL
        SELECT sample_id, label, confounder, group_id, 'pair' FROM samples
        WHERE confounder <> 'centre2'
    """
    done = measured(built(root, frame, select), trials=1)
    found = pl.read_parquet(path_of(root, "clusterings"))
    pair = clusterings_of("", frame.filter(pl.col("confounder") != "centre2"))
    expected = pl.concat(
        [
            clusterings_of("centre", frame),
            clusterings_of("grade", frame, confounder="grade"),
            pair.with_columns(quartet=pl.lit("pair")),
        ]
    )
    assert found.equals(expected)
    assert done.n_quartets == len(found) == 3 + 6 + 1
    assert ask(root, "SELECT count(*) FROM clustering_scores").item() == 10
    assert croma_sql.check(root) == []


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


def test_a_class_within_one_fold_is_not_probed_and_stops_nothing_else(root):
    """Group 1 holds both labels, and 2, the other of 'a', comes into its fold with this seed."""
    four = pl.DataFrame(
        {
            "sample_id": [0, 1, 2, 3],
            "embedding": pl.Series([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], dtype=pl.List(pl.Float64)),
            "label": list("bbaa"),
            "confounder": list("bbaa"),
            "group_id": [3, 1, 2, 1],
        }
    )
    built(root, four)
    croma_sql.add_benchmark(root, "c", SELECT.replace("group_id", "sample_id AS group_id"))
    first, second = croma_sql.score_centre(root, trials=1, folds=2, seed=3)
    assert first.outcome == second.outcome == "measured"
    reason = "column '{}': all groups of 'a' came into one of the 2 folds (seed 3)"
    for why, target in zip(first.not_probed, ("label", "confounder"), strict=True):
        assert why.startswith(reason.format(target))
    told = ask(root, "SELECT linear_label_bacc, label_chance FROM centre_encoding ORDER BY 1")
    assert told.rows() == [(1.0, 0.5), (None, None)]
    assert second.not_probed == ()
    assert croma_sql.check(root) == []
