"""The way out onto object storage: the same bytes as on a disk, and never a folder named s3:."""

import json
from pathlib import Path

import pytest
from slides import built, contents, tiles
from storage import bucket
from storage import contents as stored
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.places import place


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    return built(tmp_path_factory.mktemp("remote exports") / "W", tiles())


def export(scored, folder):
    """Write everything that can go there; gives what was said."""
    said = []
    for asked in (
        ["export", "table", str(scored), "margins", "--output", f"{folder}/it's.parquet"],
        ["export", "geojson", str(scored), "--output", f"{folder}/s l\u00fc"],
        ["export", "geojson", str(scored), "--slide", "003", "--output", f"{folder}/one.geojson"],
        ["sql", str(scored), "FROM samples", "--format", "csv", "--output", f"{folder}/a.csv"],
    ):
        done = CliRunner().invoke(app, asked)
        assert done.exit_code == 0, done.output
        said.append(done.stdout.replace(str(folder), "OUT"))
    return said


def test_as_on_a_disk(scored, storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = bucket("exports")
    assert export(scored, tmp_path / "out") == export(scored, there / "out")
    local = contents(tmp_path / "out")
    assert stored(there / "out") == {str(name): data for name, data in local.items()}
    assert len(local) == 7
    json.loads(local[Path("one.geojson")])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_url_that_pathlib_was_given_is_one_still(scored, storage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = bucket("spoilt")
    assert croma_sql.export_table(scored, "samples", Path("s3://spoilt/x/b.csv")) == 120
    croma_sql.import_samples(Path("s3://spoilt/x/W"), tiles().drop("embedding"), dataset="d")
    assert set(stored(there / "x")) >= {"b.csv", "W/warehouse.json"}
    assert list(tmp_path.iterdir()) == []
    assert place(Path("a/s3:/b")) == Path("a/s3:/b")


def test_no_such_bucket(scored, storage):
    with pytest.raises(croma_sql.CromaSqlError, match=r"cannot write s3://nope/a.csv: there is no"):
        croma_sql.export_table(scored, "samples", "s3://nope/a.csv")
