"""Benchmarks of paired acquisitions: which are, which are none, and what compares them."""

import polars as pl
import pytest
from mistakes import SELECT, import_tiles, raises
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark

PAIRED = "SELECT sample_id, patient AS unit, scanner AS acquisition FROM samples"
COUNTS = {"units": 6, "acquisitions": 3, "incomplete": 0}


def samples():
    """Six patients on three scanners, two tiles each."""
    return pl.DataFrame(
        [
            (f"{patient} {scanner} {tile}", patient, scanner, tile)
            for patient in "pqrstu"
            for scanner in ("AT2", "GT450", "P1000")
            for tile in (0, 1)
        ],
        schema=["sample_id", "patient", "scanner", "tile"],
        orient="row",
    )


@pytest.fixture
def scanned(root):
    croma_sql.import_samples(root, samples(), dataset="d")
    return root


def test_columns_tell_which_kind_it_is(scanned):
    added = croma_sql.add_benchmark(scanned, "b", PAIRED)
    assert isinstance(added, PairedBenchmark)
    assert added.counts() == COUNTS
    assert added.rows.column_names == ["sample_id", "unit", "acquisition"]
    assert added.rows.to_pylist()[0] == {
        "sample_id": "p AT2 0", "unit": "p", "acquisition": "AT2",
    }  # fmt: skip
    margins = "SELECT sample_id, patient AS label, scanner AS confounder, tile AS group_id"
    assert "labels" in croma_sql.add_benchmark(scanned, "m", f"{margins} FROM samples").counts()


def test_rows_do_not_depend_on_the_order_or_the_case_of_what_is_selected(scanned):
    expected = croma_sql.add_benchmark(scanned, "b", PAIRED).rows
    shuffled = PAIRED.replace("unit", "UNIT").replace("acquisition", '"Acquisition"')
    assert croma_sql.add_benchmark(
        scanned, "b", f"{shuffled} ORDER BY hash(sample_id)"
    ).rows.equals(expected)


def test_units_may_be_of_any_type(scanned):
    added = croma_sql.add_benchmark(
        scanned, "b", "SELECT sample_id, ascii(patient) AS unit, scanner = 'AT2' AS acquisition "
        "FROM samples",
    )  # fmt: skip
    assert added.rows.column("unit").unique().to_pylist()[0] == "112"
    assert added.counts()["acquisitions"] == 2


@pytest.mark.parametrize(
    ("select", "parts"),
    [
        (
            "SELECT sample_id, patient AS unit FROM samples",
            ("gives no 'acquisition'", "margins gives sample_id, label, confounder", "unit and"),
        ),
        ("SELECT patient AS unit FROM samples", ("gives no 'sample_id', 'acquisition'",)),
        (PAIRED.replace("sample_id", "sample_id, tile"), ("gives 'tile' too", "each once")),
        (PAIRED.replace("sample_id", "sample_id, 1 AS subset"), ("gives 'subset' too",)),
        (PAIRED.replace("sample_id", "sample_id, tile AS unit"), ("each once",)),
        (
            PAIRED.replace("sample_id", "sample_id, tile AS label"),
            ("gives no 'confounder', 'group_id'", "paired acquisitions gives sample_id, unit"),
        ),
        (PAIRED + " WHERE false", ("gives no rows",)),
        (
            PAIRED.replace("patient", "nullif(patient, 'p')"),
            ("unit is NULL in 6 of 36 rows", "'p AT2 0', 'p AT2 1'", "fill the cells in"),
        ),
        (PAIRED.replace("scanner", "nullif(scanner, 'AT2')"), ("acquisition is NULL in 12 of",)),
        (PAIRED.replace("sample_id", "'x' || sample_id AS sample_id"), ("36 sample_id(s) that",)),
        (
            f"{PAIRED} UNION ALL {PAIRED} WHERE patient = 'q'",
            ("6 sample(s) more than once", "'q AT2 0'", "of one unit, under one acquisition"),
        ),
        (PAIRED + " WHERE scanner = 'AT2'", ("has one acquisition, 'AT2'", "two of each")),
        (PAIRED + " WHERE patient = 'p'", ("has one unit, 'p'", "two of each")),
        (
            PAIRED.replace("patient AS unit", "patient || scanner AS unit"),
            ("18 of 18 units are not under every acquisition", "leaves 0 to compare",
             "'pAT2' has no 'GT450', 'P1000'", "One unit has one name"),
        ),
        (PAIRED.replace("patient", "[patient]"), ("column 'unit' is of type list",)),
    ],
)  # fmt: skip
def test_benchmarks_that_are_none(scanned, select, parts):
    with raises("benchmark 'b'", *parts):
        croma_sql.add_benchmark(scanned, "b", select)
    assert not (scanned / "benchmarks").exists()


def test_incomplete_units_are_counted_as_long_as_two_are_complete(scanned):
    select = PAIRED + " WHERE patient < 's' AND NOT (patient = 'r' AND scanner = 'AT2')"
    added = croma_sql.add_benchmark(scanned, "b", select)
    assert added.counts() == {"units": 3, "acquisitions": 3, "incomplete": 1}
    with raises("2 of 3 units are not under every acquisition", "leaves 1 to compare",
                "'q' has no 'P1000'; 'r' has no 'AT2'"):  # fmt: skip
        croma_sql.add_benchmark(
            scanned, "b", f"{select} AND NOT (patient = 'q' AND scanner = 'P1000')"
        )


def test_score_is_for_the_other_kind(scanned):
    tiles = samples().with_columns(embedding=pl.lit([1.0, 0.0], dtype=pl.Array(pl.Float64, 2)))
    croma_sql.import_embeddings(scanned, tiles, encoder="e", dataset="d")
    croma_sql.add_benchmark(scanned, "scanners", PAIRED + " WHERE dataset = 'd'")
    with raises("all benchmarks of", "of paired acquisitions", "croma-sql consistency"):
        croma_sql.score(scanned)
    with raises("benchmark 'scanners' is of paired acquisitions", "croma-sql consistency"):
        croma_sql.score(scanned, benchmark="scanners")
    import_tiles(scanned, dataset="e", encoder="f")
    croma_sql.add_benchmark(scanned, "m", SELECT + " WHERE dataset = 'e'")
    done = croma_sql.score(scanned, on_undefined="null")
    assert {(one.benchmark, one.outcome) for one in done} == {("m", "scored"), ("m", "no vectors")}
    with raises("benchmark 'm' is of margins", "croma-sql score"):
        croma_sql.score_consistency(scanned, benchmark="m")
    (scanned / "benchmarks" / "scanners.sql").unlink()
    with raises("all benchmarks of", "of margins", "croma-sql score"):
        croma_sql.score_consistency(scanned)


def test_info_and_check_and_the_command_line_know_them(scanned):
    result = CliRunner().invoke(app, ["benchmark", str(scanned), "scanners", PAIRED])
    assert result.stdout == "benchmark 'scanners': 36 samples, 6 units, 3 acquisitions\n"
    (found,) = croma_sql.info(scanned).benchmarks
    assert (found.n, found.units, found.acquisitions, found.incomplete) == (36, 6, 3, 0)
    assert found.labels is None
    assert croma_sql.check(scanned) == []
    shown = CliRunner().invoke(app, ["info", str(scanned)]).stdout
    assert "acquisitions" in shown
    assert "confounders" not in shown
    croma_sql.import_samples(scanned, samples().filter(pl.col("scanner") == "AT2"), dataset="d")
    (problem,) = croma_sql.check(scanned)
    assert "benchmark 'scanners' has one acquisition, 'AT2'" in problem
    assert croma_sql.info(scanned).benchmarks[0].problem == problem
