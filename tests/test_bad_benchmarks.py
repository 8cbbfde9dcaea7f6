"""Benchmarks that are none, and scoring that cannot be done."""

import polars as pl
import pytest
from mistakes import SELECT, ids, import_tiles, margins_of, raises, tiles

import croma_sql


@pytest.mark.parametrize(
    ("select", "parts"),
    [
        ("SELECT 1; SELECT 2", ("has 2 statements",)),
        ("", ("has 0 statements",)),
        ("-- nothing but a comment", ("has 0 statements",)),
        ("DROP TABLE samples", ("is not a SELECT", "Only SELECT statements")),
        ("INSERT INTO samples SELECT 1", ("is not a SELECT",)),
        ("COPY samples TO 'x.csv'", ("is not a SELECT",)),
        ("ATTACH 'x.db'", ("is not a SELECT",)),
        ("SELEC 1", ("is not a SELECT", "syntax error")),
        ("SELECT label FROM samples", ("gives no 'sample_id', 'confounder', 'group_id'",)),
        (SELECT.replace("group_id", "group_id, 1 AS x"), ("gives 'x' too", "margins has them all")),
        (SELECT + " WHERE false", ("gives no rows",)),
        (SELECT.replace("label", "nullif(label, 'class0') AS label"), ("label is NULL in",)),
        (SELECT + " UNION ALL " + SELECT, ("40 sample(s) more than once", "column subset")),
        (SELECT.replace("samples", "cells"), ("fails", "cells does not exist")),
        (SELECT.replace("group_id", "centre"), ("fails", '"centre" not found')),
        (SELECT.replace("group_id", "group_id, label"), ("each once",)),
        (SELECT.replace("label", "[1] AS label"), ("column 'label' is of type list",)),
        (SELECT.replace("label", "'nan'::DOUBLE AS label"), ("label is NULL in 40 of 40 rows",)),
        (
            SELECT.replace("sample_id", "'x' || sample_id AS sample_id"),
            ("40 sample_id(s) that no",),
        ),
    ],
)
def test_benchmarks_that_are_none(root, select, parts):
    import_tiles(root)
    with raises("benchmark 'b'", *parts):
        croma_sql.add_benchmark(root, "b", select)
    assert not (root / "benchmarks").exists()


@pytest.mark.parametrize(
    "source",
    [
        "read_csv('/etc/passwd')",
        "read_text('/etc/passwd')",
        "glob('/*')",
        "'{warehouse}/samples/d.parquet'",
        "query('FROM ''/etc/passwd''')",
        "duckdb_secrets()",
        "parquet_metadata('{warehouse}/samples/d.parquet')",
    ],
)
def test_a_benchmark_reads_nothing_but_the_samples(root, source):
    """A warehouse from someone else is data."""
    import_tiles(root)
    quoted = str(root).replace("'", "''")
    select = f"{SELECT} WHERE (SELECT count(*) > 0 FROM {source.format(warehouse=quoted)})"
    (root / "benchmarks").mkdir()
    (root / "benchmarks" / "theirs.sql").write_text(select)
    with raises("benchmark 'theirs' fails"):
        croma_sql.score(root)
    assert any("theirs" in problem for problem in croma_sql.check(root))


def test_a_benchmark_does_not_see_python_variables(root):
    import_tiles(root)
    secret = pl.DataFrame({"x": [1]})
    with raises("secret does not exist"):
        croma_sql.add_benchmark(root, "b", SELECT + " WHERE (SELECT x FROM secret) = 1")
    assert secret.height == 1


def test_links_out_of_a_warehouse_are_refused(root, tmp_path):
    import_tiles(root)
    outside = tmp_path / "outside.parquet"
    tiles(sample_id=[f"t{i}" for i in range(40)]).drop("embedding").write_parquet(outside)
    croma_sql.add_benchmark(root, "b", SELECT)
    (root / "samples" / "link.parquet").symlink_to(outside)
    for use in (croma_sql.connect, croma_sql.info, croma_sql.score):
        with raises("link.parquet is a link", "outside of the warehouse", "put the file itself"):
            use(root)
    (problem,) = croma_sql.check(root)
    assert "link.parquet is a link" in problem


def test_a_marker_or_folder_that_is_a_link_out_is_refused(root, tmp_path):
    import_tiles(root)
    (root / "scores").symlink_to(tmp_path)
    croma_sql.add_benchmark(root, "b", SELECT)
    with raises("is a link", "reads and writes nothing outside"):
        croma_sql.score(root, on_undefined="null")
    (root / "warehouse.json").rename(tmp_path / "theirs.json")
    (root / "warehouse.json").symlink_to(tmp_path / "theirs.json")
    with raises("warehouse.json is a link", "outside of the warehouse"):
        croma_sql.connect(root)


@pytest.mark.parametrize("name", ["*.parquet", "?evil.parquet", "[.]evil.parquet", ".evil.parquet"])
def test_names_that_a_warehouse_does_not_write_are_not_read(root, tmp_path, name):
    """To DuckDB such a name is a pattern, and what it matches may lead outside."""
    import_tiles(root)
    secret = tmp_path / "secret.parquet"
    pl.DataFrame({"sample_id": ["secret"]}).write_parquet(secret)
    (root / "samples" / name).write_bytes((root / "samples" / "d.parquet").read_bytes())
    if name != ".evil.parquet":
        (root / "samples" / ".evil.parquet").symlink_to(secret)
    assert croma_sql.connect(root).sql("SELECT count(*) FROM samples").fetchall() == [(40,)]
    assert any(f"{name} is not a file that a warehouse has" in p for p in croma_sql.check(root))


def test_a_folder_in_the_place_of_a_file_is_not_read(root):
    import_tiles(root)
    folder = root / "samples" / "e.parquet"
    folder.mkdir()
    pl.DataFrame({"sample_id": ["x"]}).write_parquet(folder / "part.parquet")
    assert croma_sql.connect(root).sql("SELECT count(*) FROM samples").fetchall() == [(40,)]
    assert croma_sql.import_samples(root, pl.DataFrame({"sample_id": ["x"]}), dataset="f") == 1


def test_too_few_typed_neighbours(root):
    frame = tiles(confounder=["rare"] * 3 + ["usual"] * 37, group_id=ids(40))
    import_tiles(root, frame)
    croma_sql.add_benchmark(root, "b", SELECT)
    reasons = margins_of(frame)["undefined_reason"].value_counts().rows()
    with raises(
        "benchmark 'b', encoder 'e': 40 of 40 samples have no margin at m = 5", "--on-undefined"
    ):
        croma_sql.score(root)
    assert sum(n for reason, n in reasons if reason is not None) == 40
    croma_sql.score(root, on_undefined="null")
    stored = croma_sql.connect(root).sql(
        "SELECT undefined_reason, count(*) FROM margins GROUP BY 1"
    )
    assert sorted(stored.fetchall()) == sorted(reasons)
    with raises("40 of 40 samples have no margin"):
        croma_sql.score(root)


def test_samples_without_a_vector_of_an_encoder(root):
    import_tiles(root)
    more = pl.DataFrame({"sample_id": ["x1", "x2"], "label": ["class0", "class1"]}).with_columns(
        confounder=pl.lit("centre0"), group_id=pl.lit("slide99")
    )
    croma_sql.import_samples(root, more, dataset="later")
    croma_sql.add_benchmark(root, "b", SELECT)
    with raises("encoder 'e': 2 of 42 samples have no vector: 'x1', 'x2'", "narrow"):
        croma_sql.score(root)


def test_scoring_what_is_not_there(root):
    croma_sql.create_warehouse(root)
    with raises("has no benchmark yet"):
        croma_sql.score(root)
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    with raises("has no benchmark 'c'; it has 'b'"):
        croma_sql.score(root, benchmark="c")
    with raises("has no encoder 'f'; it has 'e'"):
        croma_sql.score(root, encoder="f")
    with raises("m is 3", "at least 5"):
        croma_sql.score(root, m=3)
