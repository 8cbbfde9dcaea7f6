"""The command line as a user meets it: what it prints, where, and how it exits."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cohorts import random_cohort
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app

COMMAND = Path(sys.executable).with_name("croma-sql")
SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"


def run(*arguments, cwd=None):
    done = subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False
    )
    return done.returncode, done.stdout, done.stderr


def succeed(*arguments, **options):
    code, out, err = run(*arguments, **options)
    assert (code, err) == (0, "")
    return out


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A warehouse made by the commands of the tour."""
    folder = tmp_path_factory.mktemp("study")
    cohort = random_cohort(0, n=200, d=8, groups=40, dtype=np.float16)
    cohort.frame().drop("embedding").write_csv(folder / "manifest.csv")
    np.save(folder / "UNI 2.npy", cohort.vectors)
    assert succeed(
        "import", "embeddings", "UNI 2.npy", "--to", "W", "--encoder", "UNI 2", "--dataset", "d",
        "--samples", "manifest.csv", cwd=folder,
    ) == "200 vectors of 8 float16 values as encoder 'UNI 2', dataset 'd' of W\n"  # fmt: skip
    assert succeed("benchmark", "W", "b", SELECT, cwd=folder) == (
        "benchmark 'b': 200 rows, 2 labels, 2 confounders, 40 groups\n"
    )
    assert re.search(r"b +UNI 2 +200 +scored", succeed("score", "W", cwd=folder))
    assert re.search(r"b +UNI 2 +200 +up to date", succeed("score", "W", cwd=folder))
    return folder / "W"


def test_info_and_check(scored):
    out = succeed("info", scored)
    assert re.search(r"d +200 +label, confounder, group_id", out)
    assert re.search(r"UNI 2 +d +200 +8 +float16", out)
    assert re.search(r"b +UNI 2 +20 +0 +up to date", out)
    assert succeed("check", scored) == f"{scored} is whole\n"


def test_sql_in_every_format(scored, tmp_path):
    query = "SELECT 'a,\"b' AS x, 0.5::DOUBLE AS y, NULL AS z, 'nan'::DOUBLE AS w"
    exact = "SELECT sum(i) AS n, 1.5 AS x, [1, 'inf'::DOUBLE] AS l FROM range(4) r(i)"
    assert json.loads(succeed("sql", scored, exact, "--format", "json")) == [
        {"n": 6, "x": 1.5, "l": [1.0, None]}
    ]
    assert succeed("sql", scored, query, "--format", "csv") == 'x,y,z,w\n"a,""b",0.5,,NaN\n'
    assert json.loads(succeed("sql", scored, query, "--format", "json")) == [
        {"x": 'a,"b', "y": 0.5, "z": None, "w": None}
    ]
    assert re.search(r'a,"b +0\.5000 +NULL +nan', succeed("sql", scored, query))
    for form in ("csv", "json", "parquet"):
        path = tmp_path / f"rows.{form}"
        count = "FROM margins SELECT count(*) AS n"
        assert succeed("sql", scored, count, "--format", form, "--output", path) == ""
        assert getattr(pl, f"read_{form}")(path)["n"].to_list() == [200]


def test_output_follows_links_and_writes_into_pipes(scored, tmp_path):
    target, link, fifo = (tmp_path / name for name in ("target.csv", "link.csv", "fifo"))
    target.write_text("old")
    link.symlink_to(target)
    succeed("sql", scored, "SELECT 1 AS x", "--format", "csv", "--output", link)
    assert (link.is_symlink(), target.read_text()) == (True, "x\n1\n")
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True) as reader:
        succeed("sql", scored, "SELECT 1 AS x", "--format", "csv", "--output", fifo)
        assert reader.stdout.read() == "x\n1\n"


def test_a_reader_that_leaves_early_is_no_error(scored):
    """As `| head` does."""
    with subprocess.Popen(
        [COMMAND, "sql", scored, "SELECT * FROM range(3000000)", "--format", "csv"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout.readline() == b"range\n"
        child.stdout.close()
        assert child.stderr.read() == b""


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM range(100000000000) a, range(10) b WHERE a.range % 7 = 3",
        "SELECT count(margin) FROM croma_margins('slow', m := 5)",
    ],
)
def test_ctrl_c_stops_a_query(scored, query):
    slow = """
        WITH slow AS (
            SELECT i AS sample_id, [random() FOR k IN range(512)]::FLOAT[] AS embedding,
                i % 2 AS label, i // 2 % 2 AS confounder, i AS group_id
            FROM range(80000) r(i)
        )
    """
    with subprocess.Popen(
        [COMMAND, "sql", scored, (slow if "slow" in query else "") + query],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        time.sleep(4)
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        assert b"stopped; the warehouse is whole" in child.stderr.read()
        assert child.wait() == 130
    assert time.monotonic() - sent < 5


@pytest.mark.parametrize("columns", ["80", "40"])
def test_narrow_terminals_cut_no_number(scored, columns):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "sql", scored, "SELECT * FROM encoder_summary"],
        stdout=theirs, env=os.environ | {"COLUMNS": columns, "TERM": "xterm"},
    ) as child:  # fmt: skip
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the terminal is gone when the child is
            while part := os.read(ours, 1024):
                seen += part
        assert child.wait() == 0
    os.close(ours)
    frame = json.loads(succeed("sql", scored, "FROM encoder_summary", "--format", "json"))[0]
    for name in ("croma", "f0", "ltm05", "ltm10", "ltm20"):
        assert f"{frame[name]:.4f}".encode() in seen
    assert b"\xe2\x80\xa6" not in seen  # no ellipsis


def test_tables_do_not_grow_without_end(scored):
    out = succeed("sql", scored, "FROM margins")
    assert "60 of 200 rows; --format csv gives all" in out
    assert len(succeed("sql", scored, "FROM margins", "--format", "csv").splitlines()) == 201


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "slide:100:7", "a:x:b", "x\\", "漢字"])
def test_cells_are_printed_as_they_are(scored, text):
    assert f" {text} " in succeed("sql", scored, f"SELECT '{text}' AS x")


def test_small_numbers_are_not_zero(scored):
    out = succeed("sql", scored, "SELECT 3.2e-17 AS p, -4e-5 AS x, 5e-5 AS y, 0e0 AS z")
    assert re.search(r"3e-17 +-4e-05 +0\.0001 +0\.0000", out)


def test_cells_do_not_steer_the_terminal(scored):
    assert "a\ufffd[2Jb" in succeed("sql", scored, "SELECT 'a' || chr(27) || '[2Jb' AS x")


def test_ids_in_a_file_stay_text(scored, tmp_path):
    np.save(tmp_path / "v.npy", np.eye(3))
    (tmp_path / "m.csv").write_text("sample_id\n0.0\n1.0\n2.0\n")
    given = ["--to", "W", "--dataset", "d"]
    succeed("import", "samples", "m.csv", *given, cwd=tmp_path)
    succeed(
        "import", "embeddings", "v.npy", *given, "--encoder", "e", "--ids", "m.csv", cwd=tmp_path
    )


def test_samples_alone(tmp_path):
    (tmp_path / "m.tsv").write_text("tile\tcentre\na\tx\nb\ty\n")
    given = ["--to", "W", "--dataset", "d", "--sample-id", "tile"]
    out = succeed("import", "samples", "m.tsv", *given, cwd=tmp_path)
    assert out == "2 samples in dataset 'd' of W\n"


def test_encoder_attributes(tmp_path):
    (tmp_path / "e.csv").write_text("model,is_control,family\nUNI2-h,False,uni\nDINOv2-B,True,\n")
    out = succeed("import", "encoders", "e.csv", "--to", "W", "--encoder", "model", cwd=tmp_path)
    assert out == "attributes of 2 encoders in W\n"
    query = "SELECT encoder, is_control, family FROM encoders ORDER BY family"
    assert succeed("sql", "W", query, "--format", "csv", cwd=tmp_path) == (
        "encoder,is_control,family\nUNI2-h,false,uni\nDINOv2-B,true,\n"
    )
    told = succeed("info", "W", cwd=tmp_path)
    assert re.search(r"2 +family +DINOv2-B +UNI2-h, DINOv2-B", told)
    assert "encoders: none" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nowhere"], "nowhere is not a warehouse"),
        (
            ["sql", "W", "SELECT grade FROM margins"],
            'the query fails: Binder Error.*"grade" not found',
        ),
        (["sql", "W", "SELEC"], "the query fails: Parser Error"),
        (["sql", "W", "SELECT [1]", "--format", "csv"], "CSV has no lists"),
        (["sql", "W", "SELECT INTERVAL 1 MONTH"], "cast it to VARCHAR"),
        (["sql", "W", "SELECT 1", "--format", "csv", "--output", "W"], "cannot write W"),
        (["benchmark", "W", "x", "DROP TABLE samples"], "benchmark 'x' is not a SELECT"),
        (["benchmark", "W", "x", "--file", "no.sql"], "no.sql cannot be read"),
        (["score", "W", "--encoder", "GPT"], "no encoder 'GPT'; it has 'UNI 2'"),
        (["import", "samples", "no.csv", "--to", "W", "--dataset", "d"], "no.csv does not exist"),
        (["import", "encoders", "manifest.csv", "--to", "W"], "no column 'encoder'.*--encoder"),
    ],
)
def test_errors_are_a_sentence_on_stderr(scored, arguments, message):
    code, out, err = run(*arguments, cwd=scored.parent)
    assert (code, out) == (1, "")
    assert re.match(rf"croma-sql: (?s:.*){message}", err, re.DOTALL)
    assert "Traceback" not in err
    code, _, err = run("--debug", *arguments, cwd=scored.parent)
    assert code == 1
    assert "Traceback" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["score"],
        ["frobnicate"],
        ["score", "W", "--m", "x"],
        ["sql", "W", "SELECT 1", "--format", "parquet"],
        ["sql", "W", "SELECT 1", "--output", "x"],
        ["benchmark", "W", "x"],
    ],
)
def test_usage_errors_exit_with_2(arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Usage" in err


def test_check_names_what_is_wrong_and_exits_with_1(scored, tmp_path):
    broken = tmp_path / "W"
    subprocess.run(["cp", "-r", scored, broken], check=True)
    (broken / "samples" / "d.parquet").write_bytes(b"PAR1")
    code, out, err = run("check", broken)
    assert (code, out) == (1, "")
    assert f"croma-sql: {broken}/samples/d.parquet is not a readable Parquet file" in err


def test_progress_shows_on_a_terminal_only(tmp_path):
    """On a terminal a bar shows once a second has passed; Ctrl-C leaves the warehouse whole."""
    rng = np.random.default_rng(0)
    n = 30_000
    np.save(tmp_path / "v.npy", rng.standard_normal((n, 1024), dtype=np.float32))
    pl.DataFrame(
        {
            "sample_id": [f"s{i}" for i in range(n)],
            "label": rng.integers(2, size=n),
            "confounder": rng.integers(2, size=n),
            "group_id": np.arange(n),
        }
    ).write_csv(tmp_path / "m.csv")
    given = ["--to", "W", "--encoder", "e", "--dataset", "d", "--samples", "m.csv"]
    succeed("import", "embeddings", "v.npy", *given, cwd=tmp_path)
    succeed("benchmark", "W", "b", SELECT, cwd=tmp_path)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "score", "W"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs,
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
    assert b"scoring b / e" in seen
    assert succeed("check", "W", cwd=tmp_path) == "W is whole\n"
    assert not list((tmp_path / "W").rglob(".unfinished-*"))


def test_version():
    import croma_sql

    assert succeed("--version") == f"croma-sql {croma_sql.__version__}\n"


def test_ctrl_c_that_duckdb_takes_for_an_error(tmp_path, monkeypatch):
    """As of a file that cannot be read, where Python reads it: on object storage."""
    croma_sql.import_samples(tmp_path / "W", pl.DataFrame({"sample_id": ["a"]}), dataset="d")
    handler = signal.getsignal(signal.SIGINT)

    def connect(warehouse):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise croma_sql.WarehouseError("files of the warehouse cannot be read: ^^^")

    monkeypatch.setattr("croma_sql.cli.sql.connect", connect)
    done = CliRunner().invoke(app, ["sql", str(tmp_path / "W"), "FROM samples"])
    assert (done.exit_code, done.stderr) == (130, "croma-sql: stopped; the warehouse is whole\n")
    assert signal.getsignal(signal.SIGINT) is handler
