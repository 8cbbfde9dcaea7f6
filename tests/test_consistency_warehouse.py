"""Units of a warehouse compared across acquisitions: pooled, left out, told of."""

import math
import tracemalloc

import numpy as np
import polars as pl
import pytest
from compared import (
    FEW,
    SELECT,
    add_vectors,
    built,
    path_of,
    rows_of,
    score,
    tiles,
    with_vectors,
)
from mistakes import raises

import croma_sql
from croma_sql.warehouse.benchmarks.selects import read_benchmark
from croma_sql.warehouse.scoring.plan import plan
from croma_sql.warehouse.scoring.pooled import pooled
from croma_sql.warehouse.scoring.schemas import CONSISTENCY

# What is found


def test_tables_are_those_of_the_python_door(root):
    frame = tiles(dtype=np.float64)
    assert score(built(root, frame)).n_units == 7
    found = croma_sql.consistency(
        frame["embedding"], frame["patient"], frame["scanner"], permutations=9
    )
    for table in CONSISTENCY:
        assert pl.read_parquet(path_of(root, table), hive_partitioning=False).equals(
            getattr(found, table)
        )
    members = pl.read_parquet(root / "scores/members/benchmark=b/members.parquet")
    expected = frame.select("sample_id", unit="patient", acquisition="scanner")
    assert members.select(expected.columns).sort("sample_id").equals(expected.sort("sample_id"))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_means_are_the_rounded_exact_ones_in_any_order_of_samples(root, dtype):
    """Of stored vectors, not of directions; over several datasets, in any order of files."""
    frame = tiles(each=40, dtype=dtype)
    stored = np.stack(frame["embedding"].to_numpy())
    scale = 10.0 ** np.random.default_rng(1).integers(-3, 4, len(frame))[:, None]
    stored = (stored * scale).astype(dtype)
    frame = frame.with_columns(embedding=stored)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=3)
    files = []
    for name, order in (("one", frame), ("other", shuffled)):
        place = root.with_name(name)
        cut = len(order) // 3
        add_vectors(place, order[:cut], dataset="z")
        built(place, order[cut:], dataset="a")
        found = pooled(plan(place, read_benchmark(place, "b"), "e"), lambda _: None)
        for a, scanner in enumerate(found.acquisitions):
            for u, unit in enumerate(found.units):
                exact = stored[rows_of(frame, unit, scanner)].astype(np.float64)
                mean = [math.fsum(column) / len(column) for column in exact.T]
                assert found.means[a, u].tolist() == mean
        assert (found.n_samples == 40).all()
        score(place)
        files.append([pl.read_parquet(path_of(place, table)) for table in CONSISTENCY])
    assert all(one.equals(other) for one, other in zip(*files, strict=True))


def test_memory_does_not_grow_with_the_samples_of_a_unit(root):
    peaks = []
    for each in (25, 500):  # 1,000 and 20,000 vectors, of 1 MB and 20 MB
        place = built(root.with_name(str(each)), tiles(units=20, scanners="xy", each=each, d=256))
        work = plan(place, read_benchmark(place, "b"), "e")
        tracemalloc.start()
        pooled(work, lambda _: None)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 4e6


# Who takes part


def test_a_unit_that_lacks_an_acquisition_is_an_error_or_left_out_and_counted(root):
    frame = tiles()
    gone = (
        rows_of(frame, "u1", "GT450") + rows_of(frame, "u4", "AT2") + rows_of(frame, "u4", "P1000")
    )
    built(root, frame.filter(~pl.int_range(pl.len()).is_in(gone)))
    with raises(
        "benchmark 'b', encoder 'e': 2 of 7 units have no vector under every acquisition",
        "'u1' has no 'GT450'; 'u4' has no 'AT2', 'P1000'", "--complete-cases", "incomplete='drop'",
    ):  # fmt: skip
        score(root)
    assert not (root / "scores").exists()
    done = score(root, incomplete="drop")
    assert (done.outcome, done.n_units, done.n_incomplete, done.left_out) == ("compared", 5, 2, 0)
    units = pl.read_parquet(path_of(root, "units"))
    assert units["unit"].unique().sort().to_list() == ["u0", "u2", "u3", "u5", "u6"]
    whole = frame.filter(~pl.col("patient").is_in(["u1", "u4"]))
    expected = croma_sql.consistency(
        *(whole[name] for name in ("embedding", "patient", "scanner")), **FEW
    )
    found = pl.read_parquet(path_of(root, "unit_pairs"), hive_partitioning=False)
    assert found.equals(expected.unit_pairs)
    assert score(root, incomplete="drop").outcome == "up to date"
    with raises("2 of 7 units have no vector"):  # what was kept does not hide it
        score(root)
    assert croma_sql.check(root) == []
    assert {one.status for one in croma_sql.info(root).scores} == {"up to date"}


@pytest.mark.parametrize("on_bad_vectors", ["drop", "null"])
def test_a_bad_vector_is_a_missing_sample(root, on_bad_vectors):
    frame = tiles()
    one_of_three = rows_of(frame, "u2", "AT2")[:1]
    spoilt = with_vectors(frame, one_of_three, np.nan)
    built(root, spoilt, on_bad_vectors=on_bad_vectors)
    done = score(root)
    assert (done.n_units, done.n_incomplete, done.left_out) == (7, 0, 1)
    units = pl.read_parquet(path_of(root, "units"))
    assert units.filter(unit="u2", acquisition="AT2")["n_samples"].to_list() == [2]
    assert units["n_samples"].sum() == len(frame) - 1
    assert croma_sql.check(root) == []
    all_three = rows_of(frame, "u2", "AT2")
    add_vectors(root, with_vectors(frame, all_three, np.nan), on_bad_vectors=on_bad_vectors)
    with raises("1 of 7 units have no vector under every acquisition: 'u2' has no 'AT2'"):
        score(root)
    done = score(root, incomplete="drop")
    assert (done.outcome, done.n_units, done.n_incomplete) == ("compared", 6, 1)
    assert done.left_out == 3
    assert croma_sql.check(root) == []


@pytest.mark.parametrize("on_bad_vectors", ["drop", "null"])
def test_units_of_which_no_vector_is_left(root, on_bad_vectors):
    frame = tiles(units=3)
    gone = frame["patient"].is_in(["u0", "u1"]).arg_true().to_list()
    built(root, with_vectors(frame, gone, np.nan), on_bad_vectors=on_bad_vectors)
    with raises("2 of 3 units have no vector", "'u0' has no 'AT2', 'GT450', 'P1000'; 'u1' has no"):
        score(root)
    with raises("1 of 3 units have a vector under every acquisition, and it takes 2: 'u0' has no"):
        score(root, incomplete="drop")
    assert not list((root / "scores").rglob("*.parquet"))


def test_vectors_that_cancel_out_are_told(root):
    frame = tiles(each=2)
    first, second = rows_of(frame, "u3", "GT450")
    vectors = np.stack(frame["embedding"].to_numpy()).copy()
    vectors[second] = -vectors[first]
    built(root, frame.with_columns(embedding=vectors))
    with raises("mean vector of 1 unit(s) is not finite or zero: 'u3' under 'GT450'", "WHERE"):
        score(root)


def test_means_that_overflow_are_told(root):
    frame = tiles(each=2, dtype=np.float64)
    built(root, with_vectors(frame, rows_of(frame, "u3", "GT450"), 1.7e308))
    with raises("mean vector of 1 unit(s) is not finite or zero: 'u3' under 'GT450'", "WHERE"):
        score(root)


def test_samples_that_have_no_vector_yet_are_told(root):
    frame = tiles(units=8)
    built(root, frame[:63])
    score(root)
    croma_sql.import_samples(root, frame.drop("embedding"), dataset="d")
    with raises("9 of 72 samples have no vector: 'u7/AT2/0'", "Import their embeddings"):
        score(root)
    assert croma_sql.check(root) == []
    assert all("have no vector" in one.status for one in croma_sql.info(root).scores)


def test_encoders_without_vectors_are_passed_over(root):
    built(root)
    other = tiles(seed=1).with_columns(pl.format("other {}", "sample_id").alias("sample_id"))
    add_vectors(root, other, encoder="f", dataset="o")
    croma_sql.add_benchmark(root, "b", SELECT + " WHERE dataset = 'd'")
    done = croma_sql.score_consistency(root, **FEW)
    assert [(one.encoder, one.outcome) for one in done] == [("e", "compared"), ("f", "no vectors")]


def test_dimensions_that_differ_are_told(root):
    frame = tiles()
    add_vectors(root, frame[:30], dataset="c")
    built(root, frame[30:])
    path = root / "embeddings/encoder=e/d.parquet"
    half = pl.read_parquet(path).with_columns(pl.col("embedding").arr.to_list().list.head(4))
    half = half.with_columns(pl.col("embedding").cast(pl.Array(pl.Float32, 4)))
    half.select("sample_id", "embedding").write_parquet(path)
    with raises("vectors differ in dimension: 5 in", "4 in"):
        score(root)


@pytest.mark.parametrize(
    ("option", "part"),
    [
        ({"incomplete": "null"}, "incomplete is 'null'; it is 'error' or 'drop'"),
        ({"permutations": -1}, "permutations is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"depth": 0}, "depth is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"benchmark": "c"}, "has no benchmark 'c'; it has 'b'"),
        ({"encoder": "f"}, "has no encoder 'f'; it has 'e'"),
    ],
)
def test_what_cannot_be_asked(root, option, part):
    built(root)
    with raises(part):
        score(root, **option)


@pytest.mark.parametrize("name", ["a/b", 'it\'s "quoted"', "Прижизненный é", " a=b%20", "*?[x]"])
def test_names_of_any_kind(root, name):
    frame = tiles(units=3).with_columns(
        patient=pl.format("{} {}", pl.lit(name), "patient"),
        scanner=pl.format("{} {}", pl.lit(name), "scanner"),
        sample_id=pl.format("{} {}", pl.lit(name), "sample_id"),
    )
    add_vectors(root, frame, encoder=name)
    croma_sql.add_benchmark(root, name, SELECT)
    score(root, benchmark=name, encoder=name)
    with croma_sql.connect(root) as con:
        for source in ("unit_files", "unit_pair_files", "acquisition_files"):
            found = con.sql(f"SELECT DISTINCT benchmark, encoder FROM {source}").fetchall()
            assert found == [(name, name)]
        found = con.sql("FROM member_files ORDER BY sample_id").fetchall()
    expected = frame.sort("sample_id").select("sample_id", "patient", "scanner").rows()
    assert found == [(name, *row) for row in expected]
    assert croma_sql.check(root) == []
