"""Vectors pooled into one per group: means as they should be, samples, attributes, and origin."""

from importlib.resources import as_file, files
from itertools import product

import h5py
import numpy as np
import polars as pl
import pytest
from harmonising import read
from pools import HOWS, KINDS, built, naive, pooled, samples, tiles
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.udfs.acquisitions.pooling import Maxima, Pool
from croma_sql.warehouse.layout import embeddings_files, embeddings_path, samples_path
from croma_sql.warehouse.parquet import read_metadata

# What is written


@pytest.mark.parametrize("dtype", KINDS)
def test_groups_have_the_vectors_they_should(root, dtype):
    """Float16 and float32 become float32, which rounds once; float64 stays."""
    frame = tiles(dtype=dtype)
    built(root, frame)
    kind, eps = (np.float64, 4e-15) if dtype == np.float64 else (np.float32, 2.0**-24)
    for by, how in product((["slide_id"], ["scanner", "slide_id"]), HOWS):
        name, shares = f"{how} by {by}", []
        done = pooled(
            root, by=by, how=how, to=name, dataset=name, prefix=how, on_progress=shares.append
        )  # fmt: skip
        expected = naive(frame, by, how)
        found = read(root, name, name).sort("sample_id")
        assert found["sample_id"].to_list() == [how + group for group in expected]
        assert found["embedding"].dtype == pl.Array(KINDS[kind], 24)
        np.testing.assert_allclose(
            found["embedding"].to_numpy(), list(expected.values()), rtol=eps, atol=eps
        )
        assert (done.n, done.d, done.dtype) == (len(expected), 24, kind.__name__)
        assert (done.n_vectors, done.n_null, done.n_absent) == (len(frame), 0, 0)
        assert (shares, shares[-1]) == (sorted(shares), 1.0)
        counts = frame.group_by(pl.concat_str(pl.lit(how), pl.concat_str(by, separator=":"))).len()
        assert dict(samples(root, name).select("sample_id", "n_pooled").iter_rows()) == dict(
            counts.iter_rows()
        )
    assert croma_sql.check(root) == []


@pytest.mark.parametrize("how", HOWS)
def test_order_and_files_do_not_show(root, tmp_path, how):
    """Means of float64 vectors of lengths between 1e-2 and 1e2: the same to the last bit."""
    frame = tiles(dtype=np.float64)
    pooled(built(root, frame), how=how)
    other = tmp_path / "other"
    for part, some in enumerate(frame.sample(fraction=1, shuffle=True, seed=1).iter_slices(300)):
        built(other, some, dataset=f"d{part}")
    pooled(other, how=how)
    assert read(other, "e mean", "slides").equals(read(root, "e mean", "slides"))
    assert samples(other).equals(samples(root))


def test_parts_of_many_slides_are_one_encoder(root, tmp_path, monkeypatch):
    """Slides imported from a file each, their vectors in parts of a few tiles."""
    monkeypatch.setattr("croma_sql.warehouse.slides.parts.PART_BYTES", 2048)
    frame = tiles(dtype=np.float32)
    (tmp_path / "slides").mkdir()
    for (slide,), some in frame.group_by("slide_id"):
        with h5py.File(tmp_path / "slides" / f"{slide}.h5", "w") as file:
            file["features"] = some["embedding"].to_numpy()
            file["coords"] = np.repeat(some["x"].to_numpy()[:, None], 2, axis=1)
    croma_sql.import_embeddings(root, tmp_path / "slides", encoder="e", dataset="d")
    assert sum(file.encoder == "e" for file in embeddings_files(root)) > 20
    assert pooled(root).n_vectors == len(frame)
    pooled(built(tmp_path / "whole", frame))
    whole = read(tmp_path / "whole", "e mean", "slides")
    assert read(root, "e mean", "slides").equals(whole)
    assert croma_sql.check(root) == []


def test_who_is_left_out_is_said(root):
    frame = tiles().with_columns(
        embedding=pl.when(
            (pl.col("x").rank() % 50 != 7) & (pl.col("slide_id") != "003")
        ).then("embedding"),
        scanner=pl.when(pl.col("x").rank() % 90 != 11).then("scanner"),
    )  # fmt: skip
    built(root, frame, on_bad_vectors="null")
    by = ["slide_id", "scanner"]
    done = pooled(root, by=by)
    whole = frame.drop_nulls("scanner")
    expected = naive(whole, by, "mean")
    found = read(root, "e mean", "slides")
    assert found["sample_id"].to_list() == list(expected)
    np.testing.assert_allclose(found["embedding"].to_numpy(), list(expected.values()), rtol=1e-6)
    assert done.n_null == whole["embedding"].null_count()
    assert done.n_ungrouped == frame["scanner"].null_count() > 3
    lacking = frame.filter(pl.col("scanner").is_null())["sample_id"].sort()
    assert done.ungrouped == lacking.head(4).to_list()
    assert (done.n_empty, done.empty) == (2, ["003:AT2", "003:GT450"])
    assert samples(root)["n_pooled"].sum() == len(whole)
    assert read_metadata(embeddings_path(root, "e mean", "slides"))["dropped"] == done.empty


def test_dropped_vectors_are_no_vectors(root):
    frame = tiles().with_columns(
        embedding=pl.when(pl.col("slide_id") != "003").then("embedding")
    )  # fmt: skip
    built(root, frame, on_bad_vectors="drop")
    done = pooled(root)
    assert done.n_absent == (frame["slide_id"] == "003").sum() > 0
    assert (done.n_null, done.empty) == (0, ["003"])
    select = "SELECT sample_id, age % 2 AS label, age % 3 AS confounder, slide_id AS group_id"
    croma_sql.add_benchmark(root, "b", f"{select} FROM samples WHERE dataset = 'slides'")
    (scored,) = croma_sql.score(root, encoder="e mean", m=5, on_undefined="null")
    assert (scored.n, scored.left_out) == (16, 1)


def test_attributes_are_kept_where_groups_agree(root):
    """NULL is passed over; whatever type, and whatever it is called."""
    odd = 'it\'s a "patient" of / ünïcode'
    frame = tiles().with_columns(
        pl.col("patient").alias(odd),
        *(pl.col("patient").alias(word) for word in ("place", "name", "key")),
        n_pooled=pl.col("x"),
        sometimes=pl.when(pl.col("x") % 3 == 0).then("patient"),
        never=pl.lit(None, pl.String),
        day=pl.date(2024, 1, 1) + pl.duration(days=pl.col("age")),
        parts=pl.concat_list(pl.col("age"), "age").cast(pl.List(pl.String)),
    )
    done = pooled(built(root, frame))
    found = samples(root)
    kept = ["slide_id", "n_pooled", "patient", "age", odd, "place", "name", "key"]
    kept += ["sometimes", "never", "day"]
    assert done.kept == kept
    assert done.differing == ["scanner", "x", "parts"]
    assert found.columns == ["sample_id", *done.kept]
    first = frame.group_by("slide_id").agg(pl.col(*done.kept[2:]).drop_nulls().first())
    expected = first.sort("slide_id").select(pl.col("slide_id"), *done.kept[2:])
    assert found.select(expected.columns).equals(expected)


def test_names_may_be_in_either_case_and_odd(root):
    frame = tiles().rename({"slide_id": 'Slide, "no."/ö'})
    built(root, frame)
    done = pooled(root, by='SLIDE, "NO."/ö', to="../a b", dataset="it's", prefix="mean of ")
    assert done.kept[0] == 'Slide, "no."/ö'
    assert read(root, "../a b", "it's")["sample_id"][3] == "mean of 003"
    again = pooled(root, by='Slide, "no."/ö', to="../a b", dataset="it's", prefix="mean of ")
    assert again.outcome == "up to date"
    assert croma_sql.check(root) == []


def test_some_datasets_only(root):
    frame = tiles()
    for dataset, some in frame.partition_by("scanner", as_dict=True).items():
        built(root, some, dataset=dataset[0])
    assert pooled(root, from_datasets=["AT2"], to="AT2").n_vectors == (
        frame["scanner"] == "AT2"
    ).sum()  # fmt: skip
    assert pooled(root, dataset="all", prefix="a").n_vectors == 1200
    assert "scanner" in samples(root).columns
    assert "scanner" not in samples(root, "all").columns


# Several encoders of the same groups


def test_encoders_share_the_samples_they_are_pooled_into(root):
    """The second has vectors of one dataset of two, and lacks a slide."""
    first, second = tiles().partition_by("scanner", maintain_order=True)
    built(root, first, dataset="one")
    built(root, second, dataset="two")
    fewer = second.with_columns(
        embedding=pl.when(pl.col("slide_id") != "003").then("embedding")
    )  # fmt: skip
    croma_sql.import_embeddings(root, fewer, encoder="f", dataset="two", on_bad_vectors="drop")
    pooled(root)
    before = samples(root)
    done = pooled(root, encoder="f", to="f mean")
    assert samples(root).equals(before)
    assert (done.n, done.empty) == (16, ["003"])
    assert pooled(root).outcome == "up to date"
    assert croma_sql.check(root) == []


def test_the_samples_grow_with_what_is_pooled_into_them(root):
    first, second = (
        part.with_columns(
            pl.format("{}{}", pl.col("slide_id"), pl.col("scanner")).alias("slide_id")
        )
        for part in tiles().partition_by("scanner", maintain_order=True)
    )
    built(root, first, dataset="one")
    built(root, second, encoder="f", dataset="two")
    pooled(root)
    pooled(root, encoder="f", to="f mean")
    assert len(samples(root)) == 34
    told = {one.name: one.status for one in croma_sql.info(root).encoders}
    assert (told["e mean"], told["f mean"]) == ("stale", "up to date")
    assert pooled(root).n_empty == 17
    assert pooled(root, encoder="f", to="f mean").outcome == "up to date"


def test_an_imported_dataset_of_slides_is_taken_as_it_is(root):
    """One slide has no tiles; the samples and their attributes stay what they are."""
    frame = tiles()
    built(root, frame)
    slides = pl.DataFrame(
        {"sample_id": [f"{i:03d}" for i in range(18)], "grade": range(18)}
    ).with_columns(embedding=pl.Series(np.eye(18), dtype=pl.Array(pl.Float64, 18)))
    built(root, slides, encoder="TITAN", dataset="slides")
    before = samples_path(root, "slides").read_bytes()
    done = pooled(root)
    assert (done.n, done.kept) == (17, [])
    assert samples_path(root, "slides").read_bytes() == before
    assert read_metadata(embeddings_path(root, "e mean", "slides"))["dropped"] == ["017"]
    assert pooled(root).outcome == "up to date"
    croma_sql.import_samples(root, slides.drop("embedding"), dataset="slides")
    with pytest.raises(
        croma_sql.WarehouseError, match=r"17 of 17 groups are no samples of .*'p000'"
    ):
        pooled(root, to="other", prefix="p")
    assert croma_sql.check(root) == []


# What it is for


def test_slides_under_scanners_are_compared_as_the_tiles_were(root):
    """The mean of each place in a row, as the multi-scanner metrics pool it themselves."""
    by, encoder = ["row", "scanner"], "efficientnet_lite0"
    with as_file(files("croma_sql.demo") / "data") as data:
        croma_sql.import_embeddings(
            root, data / f"{encoder}.parquet", encoder=encoder, dataset="tiles",
            samples=data / "samples.parquet",
        )  # fmt: skip
    croma_sql.pool(root, encoder=encoder, to="rows", dataset="rows", by=by)
    unit = "row AS unit, scanner AS acquisition FROM samples"
    croma_sql.add_benchmark(root, "tiles", f"SELECT sample_id, {unit} WHERE dataset <> 'rows'")
    croma_sql.add_benchmark(root, "rows", f"SELECT sample_id, {unit} WHERE dataset = 'rows'")
    for benchmark, name in (("tiles", encoder), ("rows", "rows")):
        croma_sql.score_consistency(root, benchmark=benchmark, encoder=name, permutations=0)
    with croma_sql.connect(root) as con:
        found = con.sql("FROM consistency_summary WHERE benchmark IN ('tiles', 'rows')").pl()
    one, other = found.sort("benchmark").drop("benchmark", "encoder").to_dicts()
    assert one["n_units"] == 16
    for name, value in one.items():
        assert other[name] == (pytest.approx(value, rel=1e-5) if value is not None else None), name


def test_the_verb(root):
    frame = tiles().with_columns(
        scanner=pl.when(pl.col("x").rank() > 2).then("scanner"),
        embedding=pl.when(pl.col("x").rank() != 9).then("embedding"),
    )
    built(root, frame, on_bad_vectors="null")
    asked = ["pool", root, "--encoder", "e", "--to", "E 2", "--dataset", "D", "--by"]
    asked = [*map(str, asked), "slide_id,scanner"]
    said = CliRunner().invoke(app, asked)
    assert (said.exit_code, said.stderr) == (0, "")
    left = frame.filter(pl.col("scanner").is_null())["sample_id"].sort().to_list()
    assert said.stdout.splitlines() == [
        f"34 vectors of 24 float32 values as encoder 'E 2', dataset 'D' of {root}: the mean by "
        "slide_id, scanner of 1197 vectors of 'e'",
        "passed over: 1 NULL vector",
        f"left out: 2 samples without 'slide_id' or 'scanner': '{left[0]}', '{left[1]}'",
        "attributes: 'slide_id', 'scanner', 'n_pooled', 'patient', 'age'",
        "not kept, as they differ within a group: 'x'",
        "next: a benchmark WHERE dataset = 'D'; one that takes all samples has these too now",
    ]
    assert CliRunner().invoke(app, asked).stdout.splitlines()[0].endswith("(up to date)")
    info = CliRunner().invoke(app, ["info", str(root)]).stdout
    assert "slide_id, scanner" in info
    refused = CliRunner().invoke(app, [*asked[:-1], "nope"])
    assert refused.exit_code == 1
    assert refused.stderr.startswith("croma-sql: samples cannot be pooled by 'nope'; they have 'sl")


# The sums


@pytest.mark.parametrize("dtype", KINDS)
def test_sums_and_maxima_are_those_of_numpy_whatever_the_order(dtype):
    rng = np.random.default_rng(0)
    stored = rng.standard_normal((500, 7)).astype(dtype)
    places, scale = rng.integers(-1, 4, 500), rng.random(500)
    wide = stored.astype(np.float64)
    found = []
    for order in (np.arange(500), rng.permutation(500)):
        maxima, pool = Maxima(5, 7), Pool(5, 7)
        for some in np.array_split(order, 3):
            maxima.add(stored[some], places[some])
            pool.add(stored[some], places[some], scale[some])
        found.append((maxima.largest(), pool.means()))
        np.testing.assert_array_equal(pool.means(slice(1, 3)), pool.means()[1:3])
        np.testing.assert_array_equal(maxima.largest(slice(1, 3)), maxima.largest()[1:3])
        assert maxima.count.tolist() == pool.count.tolist() == [*np.bincount(places + 1)[1:], 0]
    for place in range(4):
        here = places == place
        np.testing.assert_array_equal(found[0][0][place], wide[here].max(axis=0))
        np.testing.assert_allclose(
            found[0][1][place], (wide * scale[:, None])[here].mean(axis=0), rtol=1e-13, atol=1e-16
        )
    assert np.isnan(found[0][0][4]).all()
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
