"""Units of a warehouse compared across acquisitions: pooled, kept, made again, told of."""

import math
import pathlib
import tracemalloc

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mistakes import cut_short, raises

import croma_sql
from croma_sql.warehouse.benchmarks import read_benchmark
from croma_sql.warehouse.plan import plan
from croma_sql.warehouse.pooled import pooled
from croma_sql.warehouse.score_schemas import CONSISTENCY

SELECT = "SELECT sample_id, patient AS unit, scanner AS acquisition FROM samples"
FEW = {"permutations": 9}


def tiles(units=7, scanners=("AT2", "GT450", "P1000"), each=3, d=5, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    rows = [(f"u{u}", s, t) for u in range(units) for s in scanners for t in range(each)]
    frame = pl.DataFrame(rows, schema=["patient", "scanner", "tile"], orient="row")
    vectors = rng.normal(size=(len(rows), d)).astype(dtype)
    return frame.select(
        pl.format("{}/{}/{}", "patient", "scanner", "tile").alias("sample_id"),
        "patient",
        "scanner",
        "tile",
        embedding=pl.Series(vectors.tolist()) if dtype == np.float16 else vectors,
    )


def add_vectors(root, frame, encoder="e", dataset="d", **options):
    """float16 goes through Arrow: Polars has none."""
    vectors = np.stack(frame["embedding"].to_numpy())
    croma_sql.import_embeddings(
        root, vectors, encoder=encoder, dataset=dataset, ids=frame["sample_id"],
        samples=frame.drop("embedding"), **options,
    )  # fmt: skip


def built(root, frame=None, **options):
    add_vectors(root, tiles() if frame is None else frame, **options)
    croma_sql.add_benchmark(root, "b", SELECT)
    return root


def score(root, **options):
    (done,) = croma_sql.score_consistency(root, **(FEW | options))
    return done


def with_vectors(frame, rows, value):
    vectors = np.stack(frame["embedding"].to_numpy()).copy()
    vectors[rows] = value
    return frame.with_columns(embedding=vectors)


def contents(root):
    return {path: path.read_bytes() for path in (root / "scores").rglob("*") if path.is_file()}


def path_of(root, table, benchmark="b", encoder="e"):
    return root / f"scores/{table}/benchmark={benchmark}/encoder={encoder}/{table}.parquet"


def rows_of(frame, unit, scanner):
    is_there = (frame["patient"] == unit) & (frame["scanner"] == scanner)
    return is_there.arg_true().to_list()


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
    with raises("1 mean vector(s) have no direction", "cancel out: 'u3' under 'GT450'", "WHERE"):
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


# What is kept


def test_what_is_up_to_date_is_skipped_and_what_was_kept_deep_stays_deep(root):
    built(root)
    assert score(root, depth=4).outcome == "compared"
    before = contents(root)
    assert score(root, depth=3) == croma_sql.score_consistency(root, depth=4, **FEW)[0]
    assert contents(root) == before
    assert score(root).outcome == "compared"  # up to all units
    assert score(root, depth=4).outcome == "up to date"
    depths = pl.read_parquet(path_of(root, "unit_neighbourhoods"))["depth"]
    assert depths.unique().to_list() == [6]
    assert score(root, threads=1).outcome == "up to date"
    assert score(root, seed=1).outcome == "compared"
    assert score(root, seed=1, permutations=0).outcome == "compared"
    pairs = pl.read_parquet(path_of(root, "acquisition_pairs"))
    assert pairs["mantel_p"].null_count() == len(pairs) == 6
    assert pairs["mantel_r"].null_count() == 0
    assert croma_sql.check(root) == []


def test_every_file_says_what_made_it(root):
    score(built(root))
    for table in CONSISTENCY:
        about = croma_sql.warehouse.parquet.read_metadata(path_of(root, table))
        assert about["parameters"] == {"permutations": 9, "seed": 0, "depth": 1000}
        assert (about["format"], about["version"]) == (1, croma_sql.__version__)
        assert (about["n_units"], about["n_acquisitions"], about["depth"]) == (7, 3, 6)


def test_other_vectors_rows_or_versions_are_compared_again(root, monkeypatch):
    frame = tiles()
    score(built(root, frame))
    croma_sql.import_samples(root, frame.drop("embedding").with_columns(age=1), dataset="d")
    assert score(root).outcome == "up to date"  # attributes are no part of it
    add_vectors(root, frame.with_columns(embedding=np.stack(frame["embedding"].to_numpy()) * 2 + 1))
    assert {one.status for one in croma_sql.info(root).scores} == {"stale"}
    assert croma_sql.check(root) == []
    assert score(root).outcome == "compared"
    croma_sql.add_benchmark(root, "b", SELECT + " WHERE tile > 0")
    assert {one.status for one in croma_sql.info(root).scores} == {"stale"}
    assert croma_sql.check(root) == []
    assert score(root).outcome == "compared"
    assert len(pl.read_parquet(root / "scores/members/benchmark=b/members.parquet")) == 42
    monkeypatch.setattr("croma_sql.warehouse.plan.__version__", "0.0.0")
    assert score(root).outcome == "compared"


@pytest.mark.parametrize("spoil", [cut_short, lambda path: path.unlink()], ids=["short", "gone"])
@pytest.mark.parametrize("table", ["units", "acquisitions", "members"])
def test_what_is_damaged_or_gone_is_made_again(root, table, spoil):
    score(built(root))
    before = contents(root)
    members = root / "scores/members/benchmark=b/members.parquet"
    spoil(members if table == "members" else path_of(root, table))
    assert score(root).outcome == ("up to date" if table == "members" else "compared")
    assert contents(root) == before


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, StoppedError])
@pytest.mark.parametrize("reading", [True, False], ids=["reading", "comparing"])
def test_an_interrupted_run_changes_nothing_and_the_next_goes_on(root, error, reading):
    frame = tiles()
    built(root, frame)
    add_vectors(root, frame, encoder="f")
    score(root, encoder="f", permutations=19)
    before = contents(root)

    def stop(benchmark, encoder, progress):
        if isinstance(progress, float) == reading:
            raise error

    with pytest.raises(error):
        croma_sql.score_consistency(root, on_progress=stop, permutations=19)
    assert contents(root) == before
    done = croma_sql.score_consistency(root, permutations=19)
    assert [one.outcome for one in done] == ["compared", "up to date"]
    assert croma_sql.check(root) == []


def test_a_run_that_ends_between_two_files_is_finished_by_the_next(root, monkeypatch):
    score(built(root))
    replace = pathlib.Path.replace

    def fail_for_units(self, target):
        if target.name == "units.parquet":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    with monkeypatch.context() as context:
        context.setattr(pathlib.Path, "replace", fail_for_units)
        with raises("cannot write", "units.parquet", "No space left"):
            score(root, permutations=19)
    assert score(root, permutations=19).outcome == "compared"
    assert croma_sql.check(root) == []


# What is wrong


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
    assert len(problems) == 3
    for part in (
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
    score(built(root), depth=3)
    found = croma_sql.info(root).scores
    assert [one.table for one in found] == list(CONSISTENCY)
    assert {(one.benchmark, one.encoder, one.status) for one in found} == {("b", "e", "up to date")}
    (root / "embeddings/encoder=e/d.parquet").unlink()
    assert all("there are no embeddings of 'e'" in one for one in croma_sql.check(root))
