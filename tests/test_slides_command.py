"""croma-sql import embeddings of slides: what it says, and its options."""

import re

import numpy as np
import polars as pl
import pytest
from by_slide import D, samples, stored, vectors, write, write_slides
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app

pytestmark = pytest.mark.usefixtures("small_parts")


def run(*given, code=0):
    result = CliRunner().invoke(app, [str(one) for one in given])
    assert result.exit_code == code, result.output
    return result.output


def importing(root, source, *options, **how):
    to = ("--to", root, "--encoder", "uni", "--dataset", "d")
    return run("import", "embeddings", source, *to, *options, **how)


def test_what_an_import_says(root, tmp_path):
    folder = tmp_path / "in"
    write_slides(folder, [40, 0, 30])
    (folder / "notes.txt").write_text("of no interest")
    said = importing(root, folder).splitlines()
    assert said[0] == f"70 vectors of 8 float16 values as encoder 'uni', dataset 'd' of {root}"
    assert said[1] == "3 sources: 3 new"
    assert "1 slide has no tiles: 's001'" in said
    assert "left alone: 1 .txt" in said
    write(folder, "s002", 31)
    write(folder, "s003", 5)
    (folder / "s000.h5").unlink()
    said = importing(root, folder, "--threads", 1).splitlines()
    assert said[0].startswith("76 vectors")
    assert said[1] == "4 sources: 1 new, 1 changed, 1 unchanged, 1 not in this source, kept"
    assert run("check", root) == f"{root} is whole\n"
    assert re.search(r"uni +d +76 +8 +float16 +0 +4", run("info", root))


def test_attributes_and_prefix(root, tmp_path):
    folder, one, two = tmp_path / "in", tmp_path / "one.csv", tmp_path / "two.tsv"
    write(folder, "007", 3)
    write(folder, "sub/008", 2)
    one.write_text("slide,label\n007,a\n009,b\n")
    two.write_text("who\tcentre\nsub/008\tX\n")
    said = importing(root, folder, "--samples", one, "--slide-id", "path", "--prefix", "20x ")
    assert "1 of 2 slides" in said and "1 slide has no row: 'sub/008'" in said
    assert "1 row has no slide: '009'" in said
    again = "--slide-id", "path", "--prefix", "20x ", "--samples", two, "--on", "who"
    assert "2 sources: 2 unchanged" in importing(root, folder, *again)
    assert samples(root).select("sample_id", "slide_id", "label", "centre").rows() == [
        ("20x 007:0", "007", "a", None),
        ("20x 007:1", "007", "a", None),
        ("20x 007:2", "007", "a", None),
        ("20x sub/008:0", "sub/008", None, "X"),
        ("20x sub/008:1", "sub/008", None, "X"),
    ]


def test_several_tables_of_attributes(root, tmp_path):
    folder = tmp_path / "in"
    write_slides(folder, [3, 2])
    tables = []
    for name in ("label", "centre"):
        tables += ["--samples", tmp_path / f"{name}.csv"]
        (tmp_path / f"{name}.csv").write_text(f"slide_id,{name}\ns000,a\ns001,b\n")
    said = importing(root, folder, *tables)
    assert said.count("2 of 2 slides") == 2
    assert samples(root).columns[-2:] == ["label", "centre"]
    before = (root / "samples/d.parquet").read_bytes()
    write(folder, "s000", 3, vectors("new", 3))
    importing(root, folder, *tables)
    assert (root / "samples/d.parquet").read_bytes() == before


def test_attributes_that_match_nothing_leave_all_as_it_was(root, tmp_path):
    folder = tmp_path / "in"
    write(folder, "s", 3)
    (tmp_path / "x.csv").write_text("slide_id,label\nother,a\n")
    said = importing(root, folder, "--samples", tmp_path / "x.csv", code=1)
    assert "matches none of the samples" in said
    assert not (root / "samples").exists() and not (root / "sources").exists()
    assert "1 source: 1 new" in importing(root, folder)


def test_coordinates_and_another_dataset_in_the_files(root, tmp_path):
    import h5py

    folder = tmp_path / "in"
    path = write(folder, "s", 3, coords=False)
    with h5py.File(path, "a") as file:
        file["other"] = vectors("other", 3, d=D - 1)
    importing(root, folder, "--as", "h5", "--embedding", "other")
    assert np.array_equal(stored(root, "uni")["s:1"], vectors("other", 3, d=D - 1)[1])
    row = pl.read_parquet(root / "sources/encoder=uni/d.parquet").row(0, named=True)
    assert (row["embedding"], row["d"]) == ("other", D - 1)
    said = importing(root, folder)
    assert "1 changed" in said
    assert np.array_equal(stored(root, "uni")["s:1"], vectors("s", 3)[1])
    assert "can be" in importing(root, folder, "--as", "dicom", code=1)


def test_errors_are_a_sentence(root, tmp_path):
    folder = tmp_path / "in"
    features = vectors("s", 3)
    features[1] = np.inf
    write(folder, "s", 3, features)
    said = importing(root, folder, code=1)
    assert said.startswith("croma-sql: ") and "Traceback" not in said and "row(s) 1" in said
    said = importing(root, folder, "--on-bad-vectors", "null")
    assert said.startswith("3 vectors of 8 float16") and "1 bad one kept as NULL" in said
    assert croma_sql.check(root) == []
    assert "does not exist" in importing(root, tmp_path / "nowhere", code=1)
