"""Names, views, staleness and interruptions: what a warehouse keeps, and what becomes of it."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from cohorts import AWKWARD, random_cohort

import croma_sql
from croma_sql.warehouse.publish import locked

SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"
ODD_NAMES = [
    "UNI2-h", "a/b", "..", ".hidden", "it's \"quoted\"", "a%20b", "a+b", "007", "=", "*?[x]",
    "Прижизненный", "encoder=x", "back\\slash",
]  # fmt: skip


@pytest.fixture
def tiles():
    return random_cohort(0, n=90, groups=9).frame()


def built(root, tiles, **options):
    croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", samples=tiles, **options)
    croma_sql.add_benchmark(root, "b", SELECT)
    return root


def outcomes(root, **options):
    return {(s.benchmark, s.encoder): s.outcome for s in croma_sql.score(root, **options)}


def contents(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


# What it is called


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_of_any_kind(root, tiles, name):
    croma_sql.import_embeddings(root, tiles, encoder=name, dataset=name, samples=tiles)
    croma_sql.add_benchmark(root, name, SELECT)
    croma_sql.score(root, benchmark=name, encoder=name, on_undefined="null")
    with croma_sql.connect(root) as con:
        for query in (
            "SELECT DISTINCT benchmark, encoder, dataset FROM margins",
            "SELECT DISTINCT benchmark, encoder, $name FROM typed_neighbours",
            "SELECT DISTINCT encoder, dataset, dataset FROM embeddings",
        ):
            bound = {"name": name} if "$" in query else None
            assert con.sql(query, params=bound).fetchall() == [(name, name, name)]
    assert croma_sql.check(root) == []
    found = croma_sql.info(root)
    assert [found.datasets[0].name, found.encoders[0].name, found.benchmarks[0].name] == [name] * 3
    assert {path.name for path in root.parent.iterdir()} == {root.name}


def test_attributes_stand_beside_margins_unless_the_benchmark_says_otherwise(root, tiles):
    more = tiles.with_columns(
        pl.lit("file's label").alias("Label"),
        pl.lit(9.0).alias("margin"),
        (pl.int_range(90)).alias("x y"),
    ).drop("label", "embedding")
    croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", samples=more)
    croma_sql.add_benchmark(
        root,
        "b",
        SELECT.replace("label", "confounder || '?' AS label").replace(
            "confounder,", "sample_id[-1] AS confounder,"
        ),
    )
    croma_sql.score(root, on_undefined="null")
    row = croma_sql.connect(root).sql("FROM margins LIMIT 1").pl()
    assert row["label"].item().endswith("?")
    assert row["margin"].item() != 9.0
    assert row.columns == [
        "benchmark", "encoder", "subset", "sample_id", "label", "confounder", "group_id",
        "matched", "d_so", "d_os", "margin", "undefined_reason", "dataset", "x y",
    ]  # fmt: skip


# What comes out


def test_several_datasets_encoders_and_benchmarks(root):
    one, two = random_cohort(1, n=80).frame(), random_cohort(2, n=70).frame()
    two = two.with_columns(pl.col("sample_id").str.replace("s", "t"), site=pl.lit("x"))
    for name, frame in (("one", one), ("two", two)):
        croma_sql.import_embeddings(root, frame, encoder="both", dataset=name, samples=frame)
    croma_sql.import_embeddings(root, two, encoder="only two", dataset="two")
    croma_sql.add_benchmark(root, "everything", SELECT)
    croma_sql.add_benchmark(root, "first", f"{SELECT} WHERE dataset = 'one'")
    with pytest.raises(croma_sql.CromaSqlError, match="80 of 150 samples have no vector"):
        croma_sql.score(root, on_undefined="null")
    assert outcomes(root, benchmark="first") == {
        ("first", "both"): "up to date",
        ("first", "only two"): "no vectors",
    }
    counts = croma_sql.connect(root).sql(
        "FROM encoder_summary SELECT benchmark, encoder, n ORDER BY ALL"
    )
    assert counts.fetchall() == [("everything", "both", 150), ("first", "both", 80)]


# What changes


def test_only_what_changed_is_scored_again(root, tiles):
    built(root, tiles)
    croma_sql.import_embeddings(root, tiles, encoder="f", dataset="d")
    everything = {("b", "e"), ("b", "f")}
    null = {"on_undefined": "null"}
    assert outcomes(root, **null) == dict.fromkeys(everything, "scored")
    before = contents(root)
    assert outcomes(root, **null) == dict.fromkeys(everything, "up to date")
    assert contents(root) == before
    moved = tiles.with_columns(pl.col("embedding").arr.to_list().list.reverse())
    croma_sql.import_embeddings(root, moved, encoder="f", dataset="d")
    assert [(s.encoder, s.status) for s in croma_sql.info(root).scores] == [
        ("e", "up to date"),
        ("f", "stale"),
    ]
    assert outcomes(root, **null) == {("b", "e"): "up to date", ("b", "f"): "scored"}
    relabelled = tiles.with_columns(label=pl.col("label").reverse())
    croma_sql.import_samples(root, relabelled, dataset="d")
    assert outcomes(root, **null) == dict.fromkeys(everything, "scored")
    croma_sql.add_benchmark(root, "b", f"{SELECT} -- the same rows")
    assert outcomes(root, **null) == dict.fromkeys(everything, "up to date")
    assert outcomes(root, m=21, **null) == dict.fromkeys(everything, "scored")
    attributes = relabelled.with_columns(age=pl.lit(50))
    croma_sql.import_samples(root, attributes, dataset="d")
    assert outcomes(root, m=21, **null) == dict.fromkeys(everything, "up to date")
    assert croma_sql.connect(root).sql("SELECT DISTINCT age FROM margins").fetchall() == [(50,)]


def test_the_same_inputs_make_the_same_files(root, tiles):
    for copy in (root, root.with_name("copy")):
        croma_sql.score(built(copy, tiles), on_undefined="null")
    assert contents(root) == contents(root.with_name("copy"))


def test_files_of_other_writers_are_read(root, tiles):
    """A warehouse is Parquet: another tool may write its files, without our metadata."""
    croma_sql.create_warehouse(root)
    (root / "samples").mkdir()
    (root / "embeddings/encoder=e").mkdir(parents=True)
    tiles.drop("embedding").write_parquet(root / "samples/d.parquet")
    vectors = tiles.select("sample_id", pl.col("embedding").cast(pl.Array(pl.Float32, 16)))
    pq.write_table(
        vectors.to_arrow().cast(
            pa.schema({"sample_id": pa.string(), "embedding": pa.list_(pa.float32(), 16)})
        ),
        root / "embeddings/encoder=e/d.parquet",
    )
    croma_sql.add_benchmark(root, "b", SELECT)
    assert outcomes(root, on_undefined="null") == {("b", "e"): "scored"}
    assert croma_sql.connect(root).sql("SELECT count(*) FROM margins").fetchall() == [(90,)]


def test_a_relative_path_stays_what_it_was(root, tiles, monkeypatch, tmp_path):
    monkeypatch.chdir(built(root, tiles).parent)
    con = croma_sql.connect(root.name)
    monkeypatch.chdir(tmp_path.parent)
    assert con.sql("SELECT count(*) FROM samples").fetchall() == [(90,)]


def test_writers_that_meet_do_not_spoil_each_other(root, tiles):
    """What another writer publishes while vectors are streamed is seen before they appear."""

    def meanwhile(_):
        croma_sql.import_samples(root, tiles[:60], dataset="d")

    croma_sql.import_samples(root, tiles, dataset="d")
    with pytest.raises(croma_sql.CromaSqlError, match="30 of 90 vectors have no sample"):
        croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", on_progress=meanwhile)
    assert croma_sql.check(root) == []


def test_a_dimension_that_another_writer_brings_meanwhile_is_seen(root, tiles):
    other = tiles.with_columns(
        pl.col("sample_id").str.replace("s", "t"), embedding=pl.lit([1.0, 2.0]).implode()
    ).with_columns(embedding=pl.Series([[1.0, 2.0]] * 90))

    def meanwhile(_):
        croma_sql.import_embeddings(root, other, encoder="e", dataset="other", samples=other)

    with pytest.raises(croma_sql.CromaSqlError, match="the same encoder has 2 in dataset 'other'"):
        croma_sql.import_embeddings(
            root, tiles, encoder="e", dataset="d", samples=tiles, on_progress=meanwhile
        )
    assert croma_sql.check(root) == []


def test_a_writer_waits_for_another_that_holds_the_warehouse(root, tiles):
    croma_sql.create_warehouse(root)
    done = threading.Event()

    def work():
        croma_sql.import_samples(root, tiles, dataset="d")
        done.set()

    with locked(root):
        worker = threading.Thread(target=work)
        worker.start()
        assert not done.wait(0.5)
    assert done.wait(10)
    worker.join()


def test_samples_may_come_before_their_vectors(root, tiles):
    """Also the state that a kill leaves between publishing samples and vectors."""
    croma_sql.score(built(root, tiles), on_undefined="null")
    more = pl.concat([tiles, tiles.with_columns(pl.col("sample_id").str.replace("s", "t"))])
    croma_sql.import_samples(root, more, dataset="d")
    assert croma_sql.check(root) == []
    with pytest.raises(croma_sql.CromaSqlError, match="90 of 180 samples have no vector"):
        croma_sql.score(root, on_undefined="null")
    croma_sql.import_embeddings(root, more, encoder="e", dataset="d")
    assert outcomes(root, on_undefined="null") == {("b", "e"): "scored"}


def test_another_version_scores_again(root, tiles, monkeypatch):
    croma_sql.score(built(root, tiles), on_undefined="null")
    monkeypatch.setattr("croma_sql.warehouse.scoring.plan.__version__", "0.0.0")
    assert outcomes(root, on_undefined="null") == {("b", "e"): "scored"}


def test_a_search_may_be_asked_for_while_another_reports(root, tiles):
    cohort = random_cohort(0)
    found = []
    croma_sql.score(
        built(root, tiles),
        on_undefined="null",
        on_progress=lambda *_: found.append(croma_sql.margins(**cohort.arguments())),
    )
    assert found


def test_an_interrupted_import_changes_nothing(root, tiles):
    built(root, tiles)
    before = contents(root)

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        croma_sql.import_embeddings(
            root, tiles.reverse(), encoder="e", dataset="d", samples=tiles, on_progress=interrupt
        )
    assert contents(root) == before


KILLS = int(os.environ.get("CROMA_SQL_KILLS", "4"))
WORK = """
import sys, time
import polars as pl
import croma_sql
root, tiles = sys.argv[1:]
print("begun", flush=True)
for encoder in "abc":
    croma_sql.import_embeddings(root, tiles, encoder=encoder, dataset="d", samples=tiles)
croma_sql.add_benchmark(root, "b", "SELECT sample_id, label, confounder, group_id FROM samples")
croma_sql.score(root, on_undefined="null")
"""


def test_kill_at_any_moment_leaves_a_whole_warehouse(root, tmp_path):
    """kill -9 while importing or scoring; what is there checks clean, and a next run finishes."""
    tiles = tmp_path / "tiles.parquet"
    random_cohort(3, n=2000, d=768, dtype=np.float32, groups=200).frame().write_parquet(tiles)
    command = [sys.executable, "-c", WORK]
    with subprocess.Popen([*command, tmp_path / "whole", tiles], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"begun\n"
        began = time.monotonic()
        assert child.wait() == 0
    duration = time.monotonic() - began
    moment = random.Random(0)
    killed = 0
    for _ in range(KILLS):
        with subprocess.Popen([*command, root, tiles], stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"begun\n"
            time.sleep(moment.uniform(0, duration))
            child.send_signal(signal.SIGKILL)
            killed += child.wait() == -signal.SIGKILL
        assert not (root / "warehouse.json").exists() or croma_sql.check(root) == []
    assert killed > KILLS / 4
    subprocess.run([*command, root, tiles], check=True, capture_output=True)
    assert contents(root) == contents(tmp_path / "whole")


def test_every_awkward_cohort_goes_in_and_comes_out(tmp_path):
    for name, cohort in AWKWARD.items():
        root, tiles = tmp_path / name, cohort(0).frame()
        croma_sql.score(built(root, tiles), on_undefined="null")
        assert croma_sql.check(root) == []
