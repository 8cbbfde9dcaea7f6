"""Files of a comparison of units: what check and info see in them."""

import math

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compared import FEW, add_vectors, built, path_of, score, tiles
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.warehouse.scoring.schemas import CENTRE, CONSISTENCY, SCHEMAS


@pytest.mark.parametrize("table", CONSISTENCY)
def test_check_sees_a_flipped_bit(root, table):
    """In the data; or the bit is one that changes nothing of what is read."""
    path = path_of(score(built(root)) and root, table)
    intact, content = path.read_bytes(), pq.read_table(path, partitioning=None)
    footer = len(intact) - 8 - int.from_bytes(intact[-8:-4], "little")
    for position in range(4, footer, footer // 12):
        damaged = bytearray(intact)
        damaged[position] ^= 4
        path.write_bytes(damaged)
        if not any(str(path) in problem for problem in croma_sql.check(root)):
            assert pq.read_table(path, partitioning=None).equals(content), position


def score_all(root):
    return croma_sql.score_consistency(root, **FEW)


def rewritten(path, change):
    """Change rows of a file that says of itself what it said before."""
    with pq.ParquetFile(path) as file:
        about = {b"croma_sql": file.metadata.metadata[b"croma_sql"]}
        table = file.read()
    changed = change(pl.from_arrow(table)).to_arrow().cast(table.schema)
    pq.write_table(changed.replace_schema_metadata(about), path)


@pytest.mark.parametrize(
    ("table", "change", "part"),
    [
        ("units", {"median_distance": -0.5}, "median_distance is not from 0 to 2"),
        ("units", {"intra_distance": 2.5}, "intra_distance is not from 0 to 2"),
        ("units", {"n_samples": 0}, "n_samples is not from 1"),
        ("units", {"unit": "u0"}, "does not hold the rows of its benchmark"),
        ("units", {"acquisition": "x"}, "does not hold the rows of its benchmark"),
        ("unit_pairs", {"distance": math.nan}, "distance is not from 0 to 2"),
        ("unit_pairs", {"rank": 0}, "rank is not from 1"),
        ("unit_pairs", {"profile_r": -1.5}, "profile_r is not from -1 to 1"),
        ("unit_pairs", {"nearest_unit": "v"}, "does not hold the rows of its benchmark"),
        ("unit_neighbourhoods", {"shared_at": [0]}, "shared_at is not from 1"),
        ("acquisition_pairs", {"mantel_p": 1.5}, "mantel_p is not from 0 to 1"),
        ("acquisitions", {"effective_rank": 0.5}, "effective_rank is not from 1"),
    ],
)
def test_check_sees_what_cannot_be(root, table, change, part):
    path = path_of(score(built(root)) and root, table)
    rewritten(path, lambda frame: frame.with_columns(
        **{name: pl.lit(value, dtype=frame.schema[name]) for name, value in change.items()}
    ))  # fmt: skip
    (problem,) = croma_sql.check(root)
    assert problem.startswith(str(path))
    assert part in problem
    assert "delete it and score again" in problem


def with_first(column, value):
    """Put a value into the first row of a column."""

    def change(frame):
        first = pl.Series([value], dtype=frame.schema[column])
        return frame.with_columns(pl.concat([first, frame[column][1:]]).alias(column))

    return change


@pytest.mark.parametrize(
    ("table", "column"),
    [(table, column) for table in CONSISTENCY for column in SCHEMAS[table].names],
)
def test_check_sees_null_cells(root, table, column):
    """Wherever a column has none, or none here."""
    path = path_of(score(built(root)) and root, table)
    rewritten(path, with_first(column, None))
    problems = croma_sql.check(root)
    assert len(problems) == (column != "profile_r")
    assert all(str(path) in problem and "score again" in problem for problem in problems)


WRONG = [
    ("units", "n_samples", 4, "does not hold the rows of its benchmark"),
    ("unit_pairs", "rank", 8, "rank is beyond the 7 units"),
    ("unit_pairs", "nearest_unit", "u0", "rank and nearest_unit contradict each other"),
    ("unit_pairs", "acquisition_b", "AT2", "acquisition_a is acquisition_b"),
    ("unit_neighbourhoods", "shared_at", [5, 3, 4, 5, 6, 6], "shared_at does not ascend"),
    ("unit_neighbourhoods", "shared_at", [1, 2, 3, 4, 5, 7], "from j to 6"),
    ("unit_neighbourhoods", "shared_at", [1] * 6, "its j-th number from j"),
    ("unit_neighbourhoods", "shared_at", [*range(1, 7), 6], "shared_at does not ascend"),
    ("unit_neighbourhoods", "shared_at", [1, 2, 3, None, 5, 6], "shared_at is NULL, or holds"),
    ("unit_neighbourhoods", "shared_at", [6], "shared_at lacks units"),
    ("unit_neighbourhoods", "shared_at", [], "shared_at lacks units"),
    ("unit_neighbourhoods", "n_units", 3, "n_units is not 7 throughout"),
    ("unit_neighbourhoods", "depth", 3, "depth is not 6 throughout"),
    ("acquisition_pairs", "permutations", 8, "permutations is not 9 throughout"),
    ("acquisition_pairs", "mantel_p", 0.05, "mantel_p is less than 9 permutations give"),
    ("acquisitions", "n_vectors", 3, "n_vectors is not 7, and 21 of all together"),
]


@pytest.mark.parametrize(("table", "column", "value", "part"), WRONG)
def test_check_sees_one_cell_that_cannot_be(root, table, column, value, part):
    path = path_of(score(built(root)) and root, table)
    rewritten(path, with_first(column, value))
    (problem,) = croma_sql.check(root)
    assert problem.startswith(str(path))
    assert part in problem


def test_check_knows_a_depth_of_less_than_all(root):
    """And what is undefined of vectors that coincide, and without permutations."""
    vectors = np.ones((len(tiles()), 5), np.float32)
    built(root, tiles().with_columns(embedding=vectors))
    score(root, permutations=0, depth=2)
    assert croma_sql.check(root) == []
    ranks = pl.read_parquet(path_of(root, "acquisitions"))["effective_rank"]
    assert ranks.null_count() == len(ranks)
    rewritten(path_of(root, "unit_neighbourhoods"), with_first("shared_at", [1, 2, 2]))
    (problem,) = croma_sql.check(root)
    assert "its j-th number from j to 2" in problem


@pytest.mark.parametrize("table", CONSISTENCY)
def test_check_names_tables_that_are_missing(root, table):
    add_vectors(built(root), tiles(seed=1), encoder="f")
    score_all(root)
    path_of(root, table).unlink()
    (problem,) = croma_sql.check(root)
    first = path_of(root, next(one for one in CONSISTENCY if one != table))
    assert problem.startswith(f"{path_of(root, table)} is missing")
    assert f"{first} is not whole; run croma-sql consistency again" in problem
    score_all(root)
    assert croma_sql.check(root) == []


def test_check_names_all_that_is_missing(root):
    score(built(root))
    gone = [path_of(root, table) for table in CONSISTENCY[1:]]
    gone.append(root / "scores/members/benchmark=b/members.parquet")
    for path in gone:
        path.unlink()
    problems = croma_sql.check(root)
    assert [problem.partition(" is missing")[0] for problem in problems] == list(map(str, gone))
    assert all("run croma-sql consistency again" in problem for problem in problems)
    score(root)
    assert croma_sql.check(root) == []


@pytest.mark.parametrize("table", CENTRE)
def test_check_names_tables_of_centre_encoding_that_are_missing(root, table):
    both(built(root))
    path = path_of(root, table, "m")
    path.unlink()
    (problem,) = croma_sql.check(root)
    assert problem.startswith(f"{path} is missing")
    assert "run croma-sql centre again" in problem


def test_check_names_neighbours_without_the_typed_ones(root):
    both(built(root))
    croma_sql.score(root, k=3, on_undefined="null")
    assert croma_sql.check(root) == []
    path_of(root, "typed_neighbours", "m").unlink()
    (problem,) = croma_sql.check(root)
    assert "typed_neighbours.parquet is missing" in problem
    assert "run croma-sql score again" in problem


@pytest.mark.parametrize("table", ["units", "acquisitions"])
def test_check_sees_tables_that_were_not_made_together(root, table):
    """Of other vectors, though each is whole."""
    score(built(root))
    path = path_of(root, table)
    before = path.read_bytes()
    add_vectors(root, tiles(seed=1))
    score(root)
    path.write_bytes(before)
    (problem,) = croma_sql.check(root)
    assert str(path) in problem
    assert "were not made together; run croma-sql consistency again" in problem
    assert score(root).outcome == "compared"
    assert croma_sql.check(root) == []


@pytest.mark.parametrize("table", CONSISTENCY)
def test_check_sees_rows_that_are_missing(root, table):
    path = path_of(score(built(root)) and root, table)
    rewritten(path, lambda frame: frame.tail(-1))
    (problem,) = croma_sql.check(root)
    assert f"{path} does not hold the rows of its benchmark" in problem


def test_check_names_foreign_files_and_members_that_are_none(root):
    score(built(root))
    members = root / "scores/members/benchmark=b/members.parquet"
    rewritten(members, lambda frame: frame.reverse())
    pq.write_table(pa.table({"unit": ["u0"]}), path_of(root, "units"))
    (root / "scores/units/notes.parquet").write_bytes(b"")
    problems = croma_sql.check(root)
    assert len(problems) == 4
    for part in (
        "units.parquet were not made together",
        "members.parquet does not hold the rows of its benchmark",
        "units.parquet has other columns than scores have",
        "notes.parquet is not a file that a warehouse has there",
    ):
        assert any(part in problem for problem in problems)
    pq.write_table(pa.table({"unit": ["u0"]}), members)
    assert any("other columns than members" in problem for problem in croma_sql.check(root))


def test_info_and_check_tell_of_benchmarks_that_are_gone_or_of_another_kind(root):
    score(built(root))
    margins = "SELECT sample_id, patient AS label, scanner AS confounder, tile AS group_id"
    croma_sql.add_benchmark(root, "b", f"{margins} FROM samples")
    problems = croma_sql.check(root)
    assert len(problems) == len(CONSISTENCY) + 1
    assert sum("is of another kind now" in problem for problem in problems) == len(CONSISTENCY)
    assert sum("has no units (any more)" in problem for problem in problems) == 1
    assert all("another kind" in one.status for one in croma_sql.info(root).scores)
    (root / "benchmarks" / "b.sql").unlink()
    problems = croma_sql.check(root)
    assert len(problems) == len(CONSISTENCY) + 1
    assert all("there is no benchmark 'b' (any more)" in problem for problem in problems)
    assert all("has no benchmark 'b'" in one.status for one in croma_sql.info(root).scores)


def test_info_lists_every_table(root):
    """A depth is told of the one that has it."""
    score(built(root), depth=3)
    found = croma_sql.info(root).scores
    assert [one.table for one in found] == list(CONSISTENCY)
    assert {(one.benchmark, one.encoder, one.status) for one in found} == {("b", "e", "up to date")}
    depths = {one.table: one.depth for one in found}
    assert depths == dict.fromkeys(CONSISTENCY) | {"unit_neighbourhoods": 3}
    (root / "embeddings/encoder=e/d.parquet").unlink()
    assert all("there are no embeddings of 'e'" in one for one in croma_sql.check(root))


def test_the_command_tells_of_a_family_in_one_row(root):
    def told():
        shown = CliRunner().invoke(app, ["info", str(root)]).stdout
        return [" ".join(row.split()) for row in shown.partition("scores")[2].splitlines()[3:]]

    score(built(root), depth=3)
    both(root)
    rows = told()
    assert "consistency b e 3 NULL up to date" in rows
    assert "centre m e NULL NULL up to date" in rows
    assert sum(row.endswith("up to date") for row in rows) == 3  # and typed neighbours
    add_vectors(root, tiles(seed=1))
    rows = told()
    assert "consistency b e 3 NULL stale" in rows
    assert "centre m e NULL NULL stale" in rows
    path_of(root, "units").unlink()
    path_of(root, "acquisitions").unlink()
    assert "consistency b e 3 NULL incomplete: no units, acquisitions" in told()


def both(root):
    """Score a benchmark of margins of the same tiles, too."""
    margins = "SELECT sample_id, tile AS label, scanner AS confounder, patient AS group_id"
    croma_sql.add_benchmark(root, "m", f"{margins} FROM samples")
    croma_sql.score(root, on_undefined="null")
    croma_sql.score_centre(root, trials=1, folds=2, k_range=(2, 3))
