"""An encoder harmonised in a warehouse: the same bits as in memory, whole, and with its origin."""

import json

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from harmonising import SELECT, built, contents, read, tiles

import croma_sql
from croma_sql.warehouse.layout import embeddings_path

METHODS = ("combat", "mean", "directions")


def in_memory(method, frame, keep, fit_on):
    """Vectors as float32, by the function of arrays."""
    keep = {name: frame["class" if name == "label" else name] for name in keep}
    function = {
        "combat": croma_sql.combat,
        "mean": croma_sql.mean_centred,
        "directions": croma_sql.without_directions,
    }[method]
    found = function(
        frame["embedding"], frame["centre"], group=frame["slide"], keep=keep, fit_on=fit_on
    )
    return found.astype(np.float32)


# What is written


@pytest.mark.parametrize("fit_on", ["samples", "groups"])
@pytest.mark.parametrize("method", METHODS)
def test_streaming_gives_the_bits_of_the_arrays(root, method, fit_on):
    """From two files, with samples that take no part and vectors that are NULL between them."""
    frame = tiles().with_columns(
        embedding=pl.when(pl.int_range(pl.len()) % 53 != 5).then("embedding")
    )
    built(root, frame, datasets=2)
    keep = ("label", "age")
    shares = []
    done = croma_sql.harmonise(
        root, encoder="e", benchmark="b", method=method, keep=keep, fit_on=fit_on,
        on_progress=shares.append,
    )  # fmt: skip
    stored = pl.concat([frame.gather_every(2, part) for part in range(2)])  # in the order of files
    members = stored.filter(~pl.col("elsewhere"))
    present = members.filter(pl.col("embedding").is_not_null())
    found = pl.concat([read(root, f"e {method}", f"d{part}") for part in range(2)])
    assert found["sample_id"].equals(members["sample_id"])
    assert found["embedding"].is_null().equals(members["embedding"].is_null())
    np.testing.assert_array_equal(
        found["embedding"].drop_nulls().to_numpy(), in_memory(method, present, keep, fit_on)
    )
    assert found["embedding"].dtype == pl.Array(pl.Float32, 32)
    assert (done.n, done.n_null) == (len(members), members["embedding"].null_count())
    assert (done.left_out, done.confounders, done.groups) == (frame["elsewhere"].sum(), 3, 30)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert croma_sql.check(root) == []


def test_how_files_are_cut_is_immaterial(root, tmp_path):
    frame = tiles(dtype=np.float32)
    found = []
    for where, datasets in ((root, 1), (tmp_path / "other", 4)):
        parts = pl.concat([frame.gather_every(4, part) for part in range(4)])
        for part, some in enumerate([parts] if datasets == 1 else parts.iter_slices(650)):
            croma_sql.import_embeddings(
                where, some, encoder="e", dataset=f"d{part}", samples=some.drop("embedding")
            )
        croma_sql.add_benchmark(where, "b", SELECT)
        croma_sql.harmonise(where, encoder="e", benchmark="b")
        parts = [read(where, "e combat", f"d{part}") for part in range(datasets)]
        found.append(pl.concat(parts))
    assert found[0].equals(found[1])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_result_is_float32_whatever_the_source(root, dtype):
    built(root, tiles(300, dtype=dtype))
    croma_sql.harmonise(root, encoder="e", benchmark="b")
    assert read(root, "e combat")["embedding"].dtype == pl.Array(pl.Float32, 32)


def test_samples_left_out_are_passed_over_by_scoring(root):
    frame = tiles(600)
    built(root, frame)
    croma_sql.add_benchmark(root, "all", SELECT.replace("WHERE NOT elsewhere", ""))
    croma_sql.harmonise(root, encoder="e", benchmark="b", keep=["label"])
    scored = croma_sql.score(root, benchmark="all", k=15)
    left_out = {one.encoder: one.left_out for one in scored}
    assert left_out == {"e": 0, "e combat": frame["elsewhere"].sum()}


def test_before_and_after_in_one_query(root):
    built(root, tiles(300))
    for method in METHODS:
        croma_sql.harmonise(root, encoder="e", benchmark="b", method=method, keep=["label"])
    croma_sql.score(root, k=15)
    croma_sql.score_centre(root, trials=1)
    with croma_sql.connect(root) as con:
        found = con.sql("FROM harmonisation ORDER BY encoder").pl()
        summary = con.sql("FROM encoder_summary JOIN encoders USING (encoder)").pl()
        ri = con.sql("FROM fixed_k_summary WHERE protocol = 'median_k'").pl()
        encoding = con.sql("FROM centre_encoding").pl()
    assert found["method"].to_list() == ["combat", "directions", "mean"]
    assert set(found["harmonised_from"]) == {"e"}
    assert found["keep"].to_list() == [["label"]] * 3
    columns = [("croma", summary), ("f0", summary), ("ltm10", summary), ("ri", ri)]
    columns += [("bio_bacc", ri), ("conf_bacc", ri)]
    columns += [(name, encoding) for name in encoding.columns[2:] if "chance" not in name]
    for column, table in columns:
        value = dict(table.select("encoder", column).iter_rows())
        for encoder, after, change in found.select("encoder", column, f"{column}_change").rows():
            assert after == value[encoder]
            assert change == value[encoder] - value["e"]
    assert (found["croma_change"] > 0.1).all()
    for of_centre in ("conf_bacc", "fm_si", "knn_confounder_bacc", "linear_confounder_bacc"):
        assert (found[f"{of_centre}_change"] < -0.2).all()
    for of_label in ("bio_bacc", "linear_label_bacc"):
        assert (found[f"{of_label}_change"] > -0.01).all()


def test_of_paired_acquisitions_the_acquisition_is_removed(root):
    frame = tiles(600).with_columns(elsewhere=False)
    built(root, frame, select="SELECT sample_id, age AS unit, class AS acquisition FROM samples")
    done = croma_sql.harmonise(root, encoder="e", benchmark="b", method="mean")
    found = read(root, "e mean").join(frame.drop("embedding"), on="sample_id")
    mean = {
        name: some["embedding"].to_numpy().mean(axis=0)
        for (name,), some in found.group_by("class")
    }  # fmt: skip
    np.testing.assert_allclose(mean["tumour"], mean["normal"], atol=1e-5)
    assert (done.confounders, done.groups) == (2, frame["age"].n_unique())
    with pytest.raises(croma_sql.HarmonisationError, match=r"'b' is one of paired .* no label"):
        croma_sql.harmonise(root, encoder="e", benchmark="b", keep=["label"])


# Who takes part


def test_a_sample_in_several_subsets_counts_once(root, tmp_path):
    """Pairs of centres: every tile is in two subsets."""
    frame = tiles(600)
    pairs = """
        SELECT sample_id, class AS label, centre AS confounder, slide AS group_id, a || b AS subset
        FROM samples, (VALUES ('A', 'B'), ('A', 'C'), ('B', 'C')) AS pairs(a, b)
        WHERE centre IN (a, b) AND NOT elsewhere
    """
    built(root, frame, select=pairs)
    built(tmp_path / "once", frame)
    for where in (root, tmp_path / "once"):
        croma_sql.harmonise(where, encoder="e", benchmark="b", keep=["label"])
    assert read(root, "e combat").equals(read(tmp_path / "once", "e combat"))


@pytest.mark.parametrize(
    ("column", "options"),
    [
        ("confounder", {}),
        ("label", {"keep": ["label"]}),
        ("group_id", {}),
    ],
)
def test_samples_that_differ_between_subsets_are_refused(root, column, options):
    """One fact of each sample is another in the second subset."""
    facts = {"label": "class", "confounder": "centre", "group_id": "slide"}
    other = facts | {column: "'other ' || hash(sample_id) % 2"}
    select = " UNION ALL ".join(
        f"SELECT sample_id, {', '.join(f'{v} AS {k}' for k, v in which.items())}, '{s}' AS subset "
        "FROM samples"
        for s, which in (("one", facts), ("two", other))
    )
    built(root, tiles(600), select=select)
    with pytest.raises(
        croma_sql.HarmonisationError, match=f"600 sample.s. have more than one {column}"
    ):
        croma_sql.harmonise(root, encoder="e", benchmark="b", **options)


def test_attributes_may_be_called_what_the_benchmark_calls_its_own(root):
    """An attribute confounder is an attribute, and keeps nothing but itself."""
    frame = tiles(600)
    odd = frame.with_columns(confounder="age", group_id="age", sample="age")
    built(root, odd.with_columns(pl.col("age").alias('a "quoted" age')))
    found = []
    for name in ("age", "confounder", "group_id", "sample", 'a "quoted" age'):
        croma_sql.harmonise(root, encoder="e", benchmark="b", keep=[name])
        found.append(read(root, "e combat"))
    assert all(one.equals(found[0]) for one in found)


# What becomes of it


def test_files_say_where_they_come_from(root):
    built(root, tiles(600), datasets=2)
    croma_sql.harmonise(
        root, encoder="e", benchmark="b", method="directions", to="f", keep=["age"], folds=3, seed=7
    )
    for part in range(2):
        about = json.loads(
            pq.read_metadata(embeddings_path(root, "f", f"d{part}")).metadata[b"croma_sql"]
        )
        fingerprint = about["harmonised"].pop("fingerprint")
        assert about["harmonised"] == {
            "encoder": "e", "benchmark": "b", "keep": ["age"], "method": "directions",
            "fit_on": "samples", "n_directions": None, "folds": 3, "seed": 7,
        }  # fmt: skip
        assert len(fingerprint) == 64
    with croma_sql.connect(root) as con:
        assert con.sql("FROM harmonised_encoders").fetchall() == [
            ("f", "e", "b", "directions", "samples", ["age"], None, 3, 7)
        ]
        assert con.sql("SELECT DISTINCT encoder FROM encoders ORDER BY 1").fetchall() == [
            ("e",),
            ("f",),
        ]


def test_what_is_up_to_date_is_left_alone_and_info_tells_what_is_not(root):
    frame = tiles(600)
    built(root, frame)

    def outcome():
        return croma_sql.harmonise(root, encoder="e", benchmark="b", keep=["age"]).outcome

    def told():
        known = {one.name: one for one in croma_sql.info(root).encoders}["e combat"]
        assert (known.harmonised_from, known.fitted_on, known.method) == ("e", "b", "combat")
        return known.status

    assert (outcome(), told()) == ("harmonised", "up to date")
    before = contents(root)
    assert (outcome(), contents(root)) == ("up to date", before)
    moved = frame.with_columns(embedding=frame["embedding"].reverse())
    croma_sql.import_embeddings(root, moved, encoder="e", dataset="d0")
    assert told() == "stale"
    assert (outcome(), told()) == ("harmonised", "up to date")
    older = frame.drop("embedding").with_columns(age=91 - pl.col("age") * 0.5)
    croma_sql.import_samples(root, older, dataset="d0")
    assert told() == "stale"
    assert (outcome(), told()) == ("harmonised", "up to date")
    croma_sql.add_benchmark(root, "b", SELECT + "AND slide <> 's3'")
    assert (told(), outcome(), told()) == ("stale", "harmonised", "up to date")
    (root / "benchmarks" / "b.sql").unlink()
    assert "has no benchmark 'b'" in told()
    assert croma_sql.check(root) == []


def test_a_dataset_that_takes_no_part_any_more_goes(root):
    built(root, tiles(600), datasets=2)
    croma_sql.harmonise(root, encoder="e", benchmark="b", keep=["label"])
    croma_sql.add_benchmark(root, "b", SELECT + "AND dataset = 'd1'")
    croma_sql.harmonise(root, encoder="e", benchmark="b", keep=["label"])
    assert not embeddings_path(root, "e combat", "d0").exists()
    assert len(read(root, "e combat", "d1")) > 0


@pytest.mark.parametrize("first", [True, False])
def test_an_interrupted_run_leaves_what_was_there(root, first):
    """Stopped while the last vectors are written, before anything is in its place."""
    built(root, tiles(600), datasets=2)
    if not first:
        croma_sql.harmonise(root, encoder="e", benchmark="b")
    before = contents(root)

    def stop(share):
        if share > 0.95:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        croma_sql.harmonise(root, encoder="e", benchmark="b", keep=["label"], on_progress=stop)
    assert contents(root) == before
    croma_sql.harmonise(root, encoder="e", benchmark="b", keep=["label"])
    assert croma_sql.check(root) == []


def test_a_source_that_changes_meanwhile_is_noticed(root):
    frame = tiles(600)
    built(root, frame)

    def change(share):
        if share == 1.0:
            croma_sql.add_benchmark(root, "b", SELECT + "AND slide <> 's3'")

    with pytest.raises(
        croma_sql.HarmonisationError, match="'e' has changed meanwhile; run it again"
    ):
        croma_sql.harmonise(root, encoder="e", benchmark="b", on_progress=change)
    assert not embeddings_path(root, "e combat", "d0").exists()


def test_names_may_be_odd(root):
    odd = 'it\'s "UNI" 2/h [x]* é'
    built(root, tiles(300), encoder=odd)
    assert croma_sql.harmonise(root, encoder=odd, benchmark="b").encoder == f"{odd} combat"
    croma_sql.harmonise(root, encoder=odd, benchmark="b", to="../a/b")
    with croma_sql.connect(root) as con:
        found = con.sql("SELECT encoder, harmonised_from FROM harmonised_encoders ORDER BY ALL")
        assert found.fetchall() == [("../a/b", odd), (f"{odd} combat", odd)]
    assert croma_sql.check(root) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "f"}, "encoder 'f' has no vectors .* benchmark 'b'; .* of 'e', 'e mean'"),
        ({"to": "e"}, "'e' cannot replace itself"),
        ({"encoder": "e mean", "to": "e"}, "'e' is there already, and was not made by harmonising"),
        ({"encoder": "e mean", "to": "e mean"}, "cannot replace itself"),
        ({"benchmark": "c", "to": "e mean"}, "'e mean' is there .* harmonised from 'e' on .* 'b'"),
        ({"keep": ["nope"]}, "no attribute 'nope' to keep; they have .*'slide'.*'label' is the"),
        ({"keep": ["centre"]}, "'centre' cannot be kept .* it is the same as the confounder"),
        ({"keep": ["age", "age"]}, "'age' is to be kept twice"),
        ({"keep": ["stain"]}, "column 'stain' is NULL in 296 of 593 rows: 't0.*Fill"),
        ({"method": "harmony"}, "method is 'harmony'; it is one of combat, mean, directions"),
        ({"n_directions": 2}, "n_directions is for method 'directions' only"),
        ({"folds": 5}, "folds is for method 'directions' only"),
        ({"method": "mean", "seed": 0}, "seed is for method 'directions' only"),
    ],
)  # fmt: skip
def test_what_is_refused(root, options, message):
    frame = tiles(600)
    stain = pl.when(pl.col("sample_id").rank() % 2 == 0).then(pl.lit("pale"))
    built(root, frame.with_columns(stain=stain))
    croma_sql.add_benchmark(root, "c", SELECT)
    croma_sql.harmonise(root, encoder="e", benchmark="b", method="mean")
    before = contents(root)
    with pytest.raises(croma_sql.HarmonisationError, match=message):
        croma_sql.harmonise(root, **{"encoder": "e", "benchmark": "b"} | options)
    assert contents(root) == before


def test_vectors_without_a_direction_are_named(root):
    """Two centres of two equal vectors each: centred, both lie at the mean, which is zero."""
    frame = pl.DataFrame(
        {
            "sample_id": list("abcd"),
            "embedding": [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]],
            "class": list("xyxy"),
            "centre": list("AABB"),
            "slide": list("1234"),
            "elsewhere": [False] * 4,
        }
    )
    built(root, frame)
    with pytest.raises(
        croma_sql.HarmonisationError, match=r"leaves 4 vectors without a direction.*'a'"
    ):
        croma_sql.harmonise(root, encoder="e", benchmark="b", method="mean")
