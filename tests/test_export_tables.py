"""Views and queries as Parquet, CSV and Arrow: the rows they have, in little memory, or nothing."""

import subprocess
import sys

import duckdb
import numpy as np
import polars as pl
import pytest
from slides import built, contents, tiles
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.exports.tables import SUFFIXES, write_relation

READ = {
    ".parquet": pl.read_parquet, ".csv": pl.read_csv, ".Arrow": pl.read_ipc
}  # fmt: skip


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    return built(tmp_path_factory.mktemp("tables") / "W", tiles())


@pytest.fixture(scope="module")
def con(scored):
    with croma_sql.connect(scored) as con:
        yield con


@pytest.mark.parametrize("suffix", READ)
def test_rows_are_those_of_the_query(scored, con, tmp_path, suffix):
    query = "SELECT * EXCLUDE matched FROM margins ORDER BY ALL"
    path = tmp_path / f"margins{suffix}"
    assert croma_sql.export_table(scored, query, path) == 120
    found, expected = READ[suffix](path), con.sql(query).pl()
    if suffix == ".csv":
        found = found.cast(dict(expected.schema))
    assert found.equals(expected)


@pytest.mark.parametrize(
    ("asked", "same"),
    [
        ("margins", "FROM margins"),
        ("margins_at(1) WHERE margin < 0", "FROM margins_at(1) WHERE margin < 0"),
        ("WITH few AS (FROM margins LIMIT 3) FROM few", "FROM margins LIMIT 3"),
        ("PIVOT margins ON class USING count(*) GROUP BY centre",) * 2,
    ],
)
def test_a_view_or_a_select(scored, con, tmp_path, asked, same):
    path = tmp_path / "rows.parquet"
    n = croma_sql.export_table(scored, asked, path)
    expected = con.sql(same).pl()
    assert n == len(expected) > 0
    assert pl.read_parquet(path).sort(pl.all()).equals(expected.sort(pl.all()))


@pytest.mark.parametrize("suffix", READ)
def test_an_empty_answer_has_its_columns(tmp_path, suffix):
    with duckdb.connect() as con:
        relation = con.sql("SELECT 1 AS a, 'x' AS b WHERE false")
        path = tmp_path / f"none{suffix}"
        assert write_relation(relation, SUFFIXES[suffix.lower()], path) == 0
    assert READ[suffix](path).columns == ["a", "b"]


def test_lists_and_quotes_and_nan(scored, tmp_path):
    query = "SELECT [1.5, NULL] AS l, 'a,\"b\"\n' AS t, 'NaN'::DOUBLE AS x, NULL::INTEGER AS n"
    croma_sql.export_table(scored, query, tmp_path / "odd.arrow")
    (row,) = pl.read_ipc(tmp_path / "odd.arrow").to_dicts()
    assert np.isnan(row.pop("x"))
    assert row == {"l": [1.5, None], "t": 'a,"b"\n', "n": None}
    croma_sql.export_table(scored, query.replace("[1.5, NULL]", "1.5"), tmp_path / "odd.csv")
    assert (tmp_path / "odd.csv").read_text() == 'l,t,x,n\n1.5,"a,""b""\n",NaN,\n'


def test_few_rows_are_in_memory_at_a_time(scored, tmp_path):
    """Ten million rows, 240 MB, in a process that may take 100 MB beside what it has."""
    code = """
import resource, sys, croma_sql
from pathlib import Path
root, out = map(Path, sys.argv[1:])
query = "SELECT i, i * 2 AS j, i / 7 AS x FROM range(?) t(i)"
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
croma_sql.export_table(root, query.replace("?", "1000000"), out)
before = peak()
n = croma_sql.export_table(root, query.replace("?", "10000000"), out)
print(n, peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, scored, tmp_path / "large.arrow"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    n, more = done.stdout.split()
    assert (int(n), float(more) < 100) == (10_000_000, True)


@pytest.mark.parametrize(
    ("query", "output", "message"),
    [
        ("margins", "m.xlsx", r"m.xlsx is not named .parquet, .csv or .arrow"),
        ("frame", "m.csv", "the query fails: Catalog Error: Table with name frame does not exist"),
        ("SELECT 1; SELECT 2", "m.csv", "'SELECT 1; SELECT 2' is not one SELECT, nor the name of"),
        ("DROP VIEW margins", "m.csv", "is not one SELECT"),
        ("margins_at(99)", "m.csv", "the query fails: .*m is 99, but .* a depth of 20"),
        ("SELECT if(i < 500000, i, error('boom')) FROM range(600000) t(i)", "m.arrow",
         "the query fails: Invalid Input Error: boom"),
        ("SELECT [1] AS l", "m.csv", "CSV has no lists, which column 'l' holds; write Parquet or "),
        ("SELECT INTERVAL 1 DAY AS t", "m.parquet", "a column cannot be written as parquet"),
        ("SELECT INTERVAL 1 DAY AS t", "m.csv", "CSV has no intervals, which column .t"),
        ("SELECT 1 AS a, 2 AS a", "m.csv", "as csv .*unique.*; cast or rename it in the query"),
        ("margins", "W/warehouse.json/m.csv", "cannot write .*m.csv: File exists"),
    ],
)  # fmt: skip
def test_what_fails_leaves_what_was_there(scored, query, output, message):
    frame = pl.DataFrame({"a": [1]})  # a variable is no table
    assert len(frame) == 1
    folder = scored.parent
    before = contents(folder)
    with pytest.raises(croma_sql.CromaSqlError, match=message):
        croma_sql.export_table(scored, query, folder / output)
    assert contents(folder) == before


def test_the_verbs(scored, tmp_path):
    """Export, and sql --output, which may name a format."""
    run = CliRunner().invoke
    path = tmp_path / "margins.arrow"
    said = run(app, ["export", "table", str(scored), "margins", "--output", str(path)])
    assert (said.exit_code, said.stdout) == (0, f"120 rows in {path}\n")
    for form, suffix in (("arrow", ".Arrow"), ("csv", ".csv")):
        again = tmp_path / f"again{suffix}"
        asked = ["sql", str(scored), "FROM margins", "--format", form, "--output", str(again)]
        assert run(app, asked).exit_code == 0
        margins = READ[again.suffix](again)["margin"]
        np.testing.assert_allclose(margins, pl.read_ipc(path)["margin"], rtol=1e-15)
    refused = run(app, ["sql", str(scored), "SELECT 1", "--format", "arrow"])
    assert (refused.exit_code, "Arrow cannot go to the terminal" in refused.stderr) == (2, True)
    refused = run(app, ["export", "table", str(scored), "nope", "--output", str(path)])
    assert refused.exit_code == 1
    assert refused.stderr.startswith(
        "croma-sql: the query fails: Catalog Error: Table with name no"
    )
