"""croma-sql consistency: what it prints, what it says beside, and what it refuses."""

import json

import numpy as np
import polars as pl
import pytest
import scanned
from test_consistency_reports import ENCODERS, STAIN
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("verb") / "W"
    scanned.warehouse(root, ENCODERS, {"stain": STAIN}).close()
    controls = pl.DataFrame({"encoder": ["control"], "is_control": [True]})
    croma_sql.import_encoders(root, controls)
    return root


def run(*arguments):
    """Run a verb in this process: exit code, stdout, stderr."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    return done.exit_code, done.stdout, done.stderr


def rows(*arguments):
    code, out, _ = run(*arguments, "--format", "json")
    assert code == 0
    return json.loads(out)


def test_the_verb_compares_and_prints(root, tmp_path):
    scanned.warehouse(tmp_path / "W", ENCODERS, {"stain": STAIN}, permutations=0).close()
    croma_sql.import_encoders(
        tmp_path / "W", pl.DataFrame({"encoder": ["control"], "is_control": [True]})
    )
    for path in (tmp_path / "W" / "scores").rglob("*.parquet"):
        path.unlink()
    asked = ("consistency", tmp_path / "W", "--permutations", "19")
    code, out, err = run(*asked)
    assert code == 0
    lines = out.split("\n")
    assert lines[1].split()[:4] == ["benchmark", "encoder", "n_units", "d_cos"]
    assert lines[3].split()[1] == "control"
    assert "collapsed has collapsed on scanners: all units lie at one place" in err
    assert "a ResNet has collapsed on scanners: units lie close together" in err
    assert rows(*asked) == croma_sql.consistency_summary(root).to_dicts()
    pairs = rows(*asked, "--encoder", "good", "--by-pair")
    assert len(pairs) == 12
    assert all(0 < pair["mantel_p"] <= 1 for pair in pairs)
    strata = rows(*asked, "--encoder", "good", "--by", "stain", "--draws", "20")
    assert sorted(row["n"] for row in strata) == [3, 12, 25]
    compared = run(*asked, "--compare", "--draws", "20")[1]
    assert "(1 to 1)" in compared
    assert "collapse_reason" in compared
    agreement = rows(*asked, "--agreement", "--draws", "20")
    assert agreement == croma_sql.consistency_agreement(root, draws=20).to_dicts()


@pytest.mark.parametrize(
    "options",
    [
        ("--compare", "--agreement"),
        ("--by", "stain", "--by-pair"),
        ("--compare", "--encoder", "e"),
        ("--group", "stain"),
        ("--group", "stain", "--agreement"),
        ("--by-pair", "--draws", "20"),
        ("--seed", "0"),
    ],
)
def test_tables_that_do_not_go_together(root, options):
    code, _, err = run("consistency", root, *options)
    assert code == 2
    assert "Usage" in err


def test_the_verb_says_what_it_left_out(tmp_path):
    frame = scanned.tiles(np.copy(ENCODERS["good"])).filter(
        (pl.col("patient") > "p002") | (pl.col("scanner") != "AT2")
    )
    croma_sql.import_embeddings(
        tmp_path / "W", frame, encoder="e", dataset="d", samples=frame.drop("embedding")
    )
    croma_sql.add_benchmark(tmp_path / "W", "scanners", scanned.SELECT)
    asked = ("consistency", tmp_path / "W", "--permutations", "0")
    code, out, err = run(*asked)
    assert (code, out) == (1, "")
    assert "3 of 40 units" in err
    assert "--complete-cases" in err
    code, out, err = run(*asked, "--complete-cases")
    assert code == 0
    assert out.split("\n")[3].split()[:3] == ["scanners", "e", "37"]
    assert err == "3 units of scanners lack an acquisition under e and were left out\n"


def test_one_unit_is_one(tmp_path):
    found = scanned.good(0, n=9, d=8)
    found[2, 4] = np.nan
    frame = scanned.tiles(found)
    samples = frame.drop("embedding")
    croma_sql.import_embeddings(
        tmp_path, frame, encoder="e", dataset="d", samples=samples, on_bad_vectors="null"
    )
    croma_sql.add_benchmark(tmp_path, "scanners", scanned.SELECT)
    _, _, err = run("consistency", tmp_path, "--permutations", "0", "--complete-cases")
    assert err == "1 unit of scanners lacks an acquisition under e and was left out\n"


def test_the_seed_is_of_the_resampling_only(root):
    """Otherwise a look at the ranks would compare all units again."""
    croma_sql.score_consistency(root)
    before = {path: path.stat().st_mtime_ns for path in (root / "scores").rglob("*.parquet")}
    one, other = (
        rows("consistency", root, "--compare", "--draws", "50", "--seed", seed) for seed in (1, 2)
    )
    assert one != other
    assert before == {
        path: path.stat().st_mtime_ns for path in (root / "scores").rglob("*.parquet")
    }


def test_agreement_of_two_encoders_is_none_and_that_is_said(tmp_path):
    encoders = {name: ENCODERS[name] for name in ("good", "fair")}
    scanned.warehouse(tmp_path, encoders, permutations=0).close()
    code, out, err = run("consistency", tmp_path, "--agreement", "--permutations", "0")
    assert code == 0
    assert "NULL" in out
    assert err == (
        "scanners: a correlation takes 3 encoders that are no controls, and there are 2; NULL is "
        "what fewer say\n"
    )
