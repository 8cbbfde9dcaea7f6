"""Encoders, datasets, benchmarks and scores are removed with what depends on them."""

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from harmonising import SELECT, tiles
from storage import contents
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.errors import WarehouseError
from croma_sql.warehouse import removing

NAME = "é 'e'"
KILLS = int(os.environ.get("CROMA_SQL_KILLS", "2"))
WORK = """
import sys
import croma_sql
print("begun", flush=True)
croma_sql.remove_encoder(sys.argv[1], sys.argv[2], with_derived=True)
"""


def build(root):
    frame = tiles(200)
    for dataset, some in (("it's / d", frame), ("other", frame.with_columns(
        pl.format("o{}", "sample_id").alias("sample_id")
    ))):  # fmt: skip
        for name in ("é 'e'", "f"):
            croma_sql.import_embeddings(
                root, some, encoder=name, dataset=dataset, samples=some.drop("embedding")
            )
    croma_sql.add_benchmark(root, "b", f"{SELECT} AND dataset = 'it''s / d'")
    croma_sql.harmonise(root, encoder="é 'e'", benchmark="b", to="h")
    croma_sql.pool(root, encoder="h", to="p", dataset="slides", by=["slide"])
    croma_sql.score(root, on_undefined="null")
    return root


def refused(*parts):
    return pytest.raises(WarehouseError, match="(?s)" + ".*".join(map(re.escape, parts)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return build(tmp_path_factory.mktemp("whole") / "it's W")


@pytest.fixture
def copied(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / whole.name))


@pytest.fixture(params=["here", "there"])
def built(request):
    if request.param == "here":
        return request.getfixturevalue("copied")
    return build(request.getfixturevalue("remote"))


def test_encoders(built):
    before = contents(built)
    with refused("encoders 'h', 'p' depend on encoder \"é 'e'\"", "--with-derived"):
        croma_sql.remove_encoder(built, "é 'e'")
    told = croma_sql.remove_encoder(built, "é 'e'", with_derived=True, dry_run=True)
    assert contents(built) == before
    done = croma_sql.remove_encoder(built, "é 'e'", with_derived=True)
    assert done == told
    gone = set(before) - set(contents(built))
    assert (done.files, done.size) == (len(gone), sum(len(before[name]) for name in gone))
    assert done.encoders == ["h", "p", "é 'e'"] and ("b", "h") in done.scores
    assert {one.name for one in croma_sql.info(built).encoders} == {"f"}
    assert croma_sql.check(built) == []
    with refused("has no encoder 'h'; it has 'f'"):
        croma_sql.remove_encoder(built, "h")


def test_datasets_benchmarks_and_scores(copied):
    root = copied
    with refused("benchmarks 'b' and encoders 'h', 'p' depend on dataset \"it's / d\""):
        croma_sql.remove_dataset(root, "it's / d")
    with refused("encoders 'h', 'p' depend on benchmark 'b'"):
        croma_sql.remove_benchmark(root, "b")
    said = CliRunner().invoke(app, ["remove", "scores", str(root), "--encoder", "f"])
    assert said.output.splitlines()[1:] == ["  scores of: 'b / f'"]
    assert said.output.startswith(f"removed from {root}: 1 file of 0.")
    done = croma_sql.remove_dataset(root, "it's / d", with_derived=True)
    assert (done.encoders, done.benchmarks) == (["h", "p"], ["b"])
    assert {(one.name, one.dataset) for one in croma_sql.info(root).encoders} == {
        ("f", "other"), ("é 'e'", "other"),
    }  # fmt: skip
    assert croma_sql.check(root) == []


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_removal_that_is_interrupted_is_named_and_ended(copied, tmp_path, monkeypatch, after):
    root, done = copied, shutil.copytree(copied, tmp_path / "done")
    croma_sql.remove_encoder(done, NAME, with_derived=True)
    own = removing._delete

    def dies(place, files):
        own(place, files[:after])
        raise KeyboardInterrupt

    monkeypatch.setattr(removing, "_delete", dies)
    with pytest.raises(KeyboardInterrupt):
        croma_sql.remove_encoder(root, "é 'e'", with_derived=True)
    monkeypatch.setattr(removing, "_delete", own)
    told = (
        f"{root}/pending.json: a removal is under way or was interrupted. Wait, or end it with the "
        f"same command: {shlex.join(['croma-sql', 'remove', 'encoder', str(root), NAME])}"
    )
    assert told in croma_sql.check(root)
    for verb in (croma_sql.info, croma_sql.connect, croma_sql.score):
        with refused(told):
            verb(root)
    with refused(told):
        croma_sql.remove_encoder(root, "f")
    assert croma_sql.remove_encoder(root, NAME).encoders == ["h", "p", NAME]
    assert contents(root) == contents(done)
    assert croma_sql.check(root) == []


def test_kill_at_any_moment_and_finish(whole, tmp_path):
    """kill -9 while an encoder goes; the warehouse is whole, or says what ends the removal."""
    moment = random.Random(0)
    for kill in range(KILLS):
        root = tmp_path / f"K{kill}"
        shutil.copytree(whole, root)
        command = [sys.executable, "-c", WORK, root, NAME]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"begun\n"
            time.sleep(moment.uniform(0, 0.1))
            child.send_signal(signal.SIGKILL)
            child.wait()
        if (root / "pending.json").exists():
            assert any("a removal is under way" in one for one in croma_sql.check(root))
        else:
            assert croma_sql.check(root) == []
        if (root / "pending.json").exists() or NAME in {
            one.name for one in croma_sql.info(root).encoders
        }:
            croma_sql.remove_encoder(root, NAME, with_derived=True)
        assert {one.name for one in croma_sql.info(root).encoders} == {"f"}
        assert croma_sql.check(root) == []
