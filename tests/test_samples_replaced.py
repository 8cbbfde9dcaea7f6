"""Samples that replace those of a dataset: what goes is said, and what tiles are of stays."""

import polars as pl
import pyarrow as pa
import pytest
from by_slide import bring, samples, write
from mistakes import raises
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.warehouse.parquet import write_table

COLUMNS = ["slide_id", "tile", "x", "y", "coord_unit", "tile_size"]


@pytest.fixture
def by_slide(root, tmp_path):
    """Tiles of two slides, with a label by slide."""
    for slide in ("P00", "12"):
        write(tmp_path / "feats", slide, 3)
    cohort = pl.DataFrame({"slide": ["P00", "12"], "label": ["n", "t"]})
    bring(root, tmp_path / "feats", samples=cohort)
    return root


def test_samples_that_would_take_what_tiles_are_of_are_refused(by_slide, tmp_path):
    before = samples(by_slide)
    path = tmp_path / "s.csv"
    before.select("sample_id", stain=pl.lit("HE")).write_csv(path)
    words = ["import", "samples", str(path), "--to", str(by_slide), "--dataset", "d"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert (
        "dataset 'd' was imported by slide, and these samples would replace its samples without "
        "'slide_id', 'tile', 'x', 'y', 'coord_unit', 'tile_size'. Join their attributes to the "
        "samples instead: --on COLUMN, the one that names samples, slides or patients (Python: on=)"
    ) in done.stderr
    assert samples(by_slide).equals(before)
    assert CliRunner().invoke(app, [*words, "--on", "sample_id"]).exit_code == 0
    assert samples(by_slide).drop("stain").equals(before)


def test_samples_with_all_their_columns_replace_others_and_say_what_goes(by_slide, tmp_path):
    before = samples(by_slide)
    select = (
        "SELECT sample_id, label, tile % 3 AS confounder, sample_id AS group_id FROM samples "
        "WHERE dataset = 'd'"
    )
    croma_sql.add_benchmark(by_slide, "b", select)
    path = tmp_path / "s.csv"
    before.drop("label").with_columns(stain=pl.lit("HE")).write_csv(path)  # "12" reads as a number
    done = croma_sql.import_samples(by_slide, path, dataset="d")
    assert done.notes == [
        "samples of dataset 'd' are replaced: 1 column goes: 'label'",
        "1 benchmark cannot be made any more: 'b'; croma-sql score says why",
    ]
    assert samples(by_slide).schema["slide_id"] == pl.String
    write(tmp_path / "more", "P01", 2)
    bring(by_slide, tmp_path / "more")
    assert sorted(samples(by_slide)["slide_id"].unique()) == ["12", "P00", "P01"]
    moved = samples(by_slide).with_columns(slide_id=pl.lit("P00"))
    with raises(
        "5 samples of dataset 'd' have another slide_id here", "'12:0', '12:1', '12:2', ..."
    ):
        croma_sql.import_samples(by_slide, moved, dataset="d")


def test_rows_that_go_are_said(root):
    frame = pl.DataFrame(
        {"sample_id": [f"s{i}" for i in range(8)], "c": [*"abababab"], "l": [*"xxyyxxyy"]}
    )
    croma_sql.import_samples(root, frame, dataset="d")
    select = "SELECT sample_id, l AS label, c AS confounder, sample_id AS group_id FROM samples"
    croma_sql.add_benchmark(root, "b", select)
    done = croma_sql.import_samples(root, frame.head(5), dataset="d")
    assert done.notes == [
        "samples of dataset 'd' are replaced: 3 samples go: 's5', 's6', 's7'",
        "benchmark 'b' took 3 samples of those that go",
    ]
    assert croma_sql.import_samples(root, frame, dataset="d").notes == []


def test_samples_that_have_lost_what_tiles_are_of_are_told_everywhere(by_slide, tmp_path):
    [path] = by_slide.glob("samples/d.parquet")
    kept = pl.read_parquet(path)
    schema = pa.schema([("sample_id", pa.string()), ("label", pa.string())])
    write_table(path, kept.drop(COLUMNS).to_arrow().cast(schema), {"format": 1})
    lost = "have no column 'slide_id', 'tile', which an import by slide had given them. Import "
    [fault] = croma_sql.check(by_slide)
    assert fault.startswith(f"{path}: samples {lost}")
    write(tmp_path / "feats", "P09", 3)
    with raises(f"samples of dataset 'd' {lost}", "croma-sql import samples"):
        bring(by_slide, tmp_path / "feats")
    with raises(f"samples of dataset 'd' {lost}"):
        bring(by_slide, tmp_path / "feats", encoder="other")
    cohort = pl.DataFrame({"slide": ["P00"], "stain": ["HE"]})
    with raises(f"samples of dataset 'd' {lost}"):
        croma_sql.join_attributes(by_slide, cohort, dataset="d", on="slide")
    croma_sql.import_samples(by_slide, kept, dataset="d")  # the cure
    assert croma_sql.check(by_slide) == []
    bring(by_slide, tmp_path / "feats")
