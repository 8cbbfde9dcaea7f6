"""What `croma-sql sql` refuses, what it says of empty views, and the surface of every verb."""

import json
import re

import polars as pl
import pytest
from cohorts import random_cohort
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app

CURE = (
    " is not a query, and nothing it changes would be kept; give a SELECT, FROM, WITH, DESCRIBE, "
    "SHOW, SUMMARIZE, EXPLAIN or PIVOT. The verbs that change a warehouse are in croma-sql --help\n"
)
SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def unscored(tmp_path_factory):
    root = tmp_path_factory.mktemp("unscored") / "W"
    tiles = random_cohort(0, n=60).frame()
    croma_sql.import_embeddings(
        root, tiles, encoder="e", dataset="d", samples=tiles.drop("embedding")
    )
    return root


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("CREATE TABLE t AS SELECT 1", "CREATE" + CURE),
        ("CREATE VIEW mine AS FROM samples", "CREATE" + CURE),
        ("DELETE FROM samples", "DELETE" + CURE),
        ("SET threads = 1", "SET" + CURE),
        ("COPY samples TO 'x.csv'", "COPY" + CURE),
        ("ATTACH 'x.duckdb'", "ATTACH" + CURE),
        ("CHECKPOINT", "CALL" + CURE),
        ("", "the query is empty; give one, such as 'FROM margins'\n"),
        (" ; -- nothing", "the query is empty; give one, such as 'FROM margins'\n"),
        (
            "SELECT 1 AS x; SELECT 2 AS x",
            "the query has 2 statements; give one, and a command for each\n",
        ),
    ],
)
def test_what_is_not_one_query_is_refused(unscored, query, message):
    done = run("sql", unscored, query)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"croma-sql: {message}")


@pytest.mark.parametrize(
    "query",
    [
        "FROM samples",
        "WITH a AS (SELECT 1 AS x) FROM a;",
        "DESCRIBE margins",
        "SHOW TABLES",
        "SUMMARIZE samples",
        "EXPLAIN FROM samples",
        "VALUES (1)",
        "PIVOT samples ON label USING count(*)",
    ],
)
def test_every_kind_of_query_is_answered(unscored, query):
    done = run("sql", unscored, query, "--format", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)


@pytest.mark.parametrize(
    ("query", "view", "command"),
    [
        ("FROM margins", "margins", "score {}"),
        ("FROM margins_at(3)", "margins_at", "score {}"),
        ("SELECT f0(margin) AS f0 FROM Margins GROUP BY label", "margins", "score {}"),
        ("FROM neighbours", "neighbours", "score {} --k 101"),
        ("FROM fixed_k_summary", "fixed_k_summary", "score {} --k 101"),
        ("FROM unit_pairs", "unit_pairs", "consistency {}"),
        ("FROM silhouettes", "silhouettes", "centre {}"),
    ],
)
def test_an_empty_view_says_what_fills_it(unscored, tmp_path, query, view, command):
    told = (
        f"nothing has been scored for the view {view!r} yet; run croma-sql "
        f"{command.format(unscored)}\n"
    )
    for output in ([], ["--output", tmp_path / "rows.parquet"]):
        done = run("sql", unscored, query, *output)
        assert (done.exit_code, done.stderr) == (0, told)


def test_rows_that_no_scoring_makes_are_just_none(unscored):
    done = run("sql", unscored, "FROM samples WHERE label = 'none'")
    assert (done.exit_code, done.stderr) == (0, "")


def test_the_name_of_a_file_says_what_is_written(unscored, tmp_path):
    croma_sql.add_benchmark(unscored, "b", SELECT)
    assert run("score", unscored).exit_code == 0
    for verb in ("summary", "compare", "strata"):
        for suffix, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
            path = tmp_path / f"{verb}.{suffix}"
            done = run(verb, unscored, "--output", path)
            assert done.exit_code == 0, done.stderr
            assert read(path)["encoder"].unique().to_list() == ["e"]
    assert run("summary", unscored, "--output", tmp_path / "s.json").exit_code == 0
    assert json.loads((tmp_path / "s.json").read_text())[0]["encoder"] == "e"
    done = run("summary", unscored, "--output", tmp_path / "s.txt")
    assert done.exit_code == 2
    assert "is not named .csv, .json, .parquet or .arrow" in " ".join(done.stderr.split())


def test_help_is_whole_and_has_a_short_name(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    done = run("-h")
    assert done.exit_code == 0
    assert done.stdout == run("--help").stdout
    verbs = re.findall(r"^  (\w+) +\S.*$", done.stdout.partition("Commands:")[2], re.MULTILINE)
    assert "score" in verbs
    assert "..." not in done.stdout.partition("Commands:")[2]
    for verb in verbs:
        assert run(verb, "-h").exit_code == 0


def test_completion_prints_a_script(monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    done = run("--show-completion", "bash")
    assert done.exit_code == 0
    assert "complete -o" in done.stdout
