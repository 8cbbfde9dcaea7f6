"""Centre encoding of a warehouse: what is kept, what is made again, and the command."""

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
from encoded import QUICK, ask, built, contents, measured, path_of, tiles
from mistakes import cut_short, raises

import croma_sql
from croma_sql.warehouse.scoring.schemas import CENTRE

COMMAND = pathlib.Path(sys.executable).with_name("croma-sql")


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
