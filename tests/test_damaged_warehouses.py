"""Warehouses that are damaged, misplaced or not what they say."""

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mistakes import SELECT, cut_short, import_tiles, raises

import croma_sql


def test_no_warehouse_and_a_newer_one(tmp_path, root):
    for use in (croma_sql.connect, croma_sql.info, croma_sql.check, croma_sql.score):
        with raises(f"{tmp_path} is not a warehouse", "warehouse.json"):
            use(tmp_path)
    croma_sql.create_warehouse(root)
    (root / "warehouse.json").write_text('{"format": 2}')
    with raises("has format 2", "reads 1 to 1", "Update croma_sql"):
        croma_sql.connect(root)
    (root / "warehouse.json").write_text("{")
    with raises("warehouse.json cannot be read"):
        croma_sql.connect(root)


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with raises(f"{tmp_path} exists and is not a warehouse", "new or empty folder"):
        croma_sql.create_warehouse(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["encoder=old", "slide=1", "a*", "b?", "c[1]"])
def test_a_path_that_sql_would_read_as_a_pattern_or_a_column(tmp_path, name):
    for use in (croma_sql.create_warehouse, croma_sql.connect):
        with raises(f"{name}/w cannot be a warehouse", f"{name!r}", "as a pattern or as a column"):
            use(tmp_path / name / "w")


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with raises("cannot write", "Not a directory", "It is as it was"):
        croma_sql.create_warehouse(tmp_path / "file" / "warehouse")


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 300])
def test_names_that_no_file_can_have(root, name):
    with raises(repr(name)[:20], "cannot be the encoder's name" if len(name) < 300 else "too long"):
        import_tiles(root, encoder=name)


def test_damaged_samples_are_named_by_check_and_a_sentence_elsewhere(root):
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    cut_short(root / "samples" / "d.parquet")
    for use in (croma_sql.connect, croma_sql.score):
        with raises("files of the warehouse cannot be read", "croma-sql check"):
            use(root)
    problems = croma_sql.check(root)
    assert any("samples/d.parquet is not a readable Parquet file" in p for p in problems)


TARGETS = [
    "samples/d.parquet",
    "embeddings/encoder=e/d.parquet",
    "scores/typed_neighbours/benchmark=b/encoder=e/typed_neighbours.parquet",
]


@pytest.mark.parametrize("target", TARGETS)
def test_check_sees_a_flipped_bit(root, target):
    """In the data; or the bit is one that changes nothing of what is read."""
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, on_undefined="null")
    path = root / target
    intact, content = path.read_bytes(), pl.read_parquet(path)
    footer = len(intact) - 8 - int.from_bytes(intact[-8:-4], "little")
    for position in range(4, footer, footer // 40):
        damaged = bytearray(intact)
        damaged[position] ^= 4
        path.write_bytes(damaged)
        if not any(str(path) in problem for problem in croma_sql.check(root)):
            assert pl.read_parquet(path).equals(content), position
    path.write_bytes(intact)
    assert croma_sql.check(root) == []


def test_check_compares_scores_with_their_benchmark(root):
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, on_undefined="null")
    path = root / "scores/typed_neighbours/benchmark=b/encoder=e/typed_neighbours.parquet"
    with pq.ParquetFile(path) as file:
        about = {b"croma_sql": file.metadata.metadata[b"croma_sql"]}
        table = file.read().replace_schema_metadata(about)
    pq.write_table(table.slice(0, 10), path)
    (problem,) = croma_sql.check(root)
    assert f"{path} does not hold the rows of its benchmark" in problem


def test_info_tells_of_scores_whose_benchmark_is_gone(root):
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, on_undefined="null")
    (root / "benchmarks" / "b.sql").write_text("SELECT 1")
    assert "gives no 'sample_id'" in croma_sql.info(root).benchmarks[0].problem
    (root / "benchmarks" / "b.sql").unlink()
    assert "has no benchmark 'b'" in croma_sql.info(root).scores[0].status


def test_check_names_every_damaged_file(root):
    import_tiles(root)
    import_tiles(root, encoder="f")
    croma_sql.import_encoders(root, pl.DataFrame({"encoder": ["e", "f"], "family": ["x", None]}))
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, on_undefined="null")
    scores = root / "scores/typed_neighbours/benchmark=b"
    cut_short(scores / "encoder=e/typed_neighbours.parquet")
    cut_short(root / "embeddings/encoder=f/d.parquet")
    cut_short(root / "encoders.parquet")
    (root / "benchmarks" / "broken.sql").write_text("DELETE FROM samples")
    pq.write_table(pa.table({"sample_id": ["s1", "s1"]}), root / "samples" / "twice.parquet")
    problems = croma_sql.check(root)
    for part in (
        "encoder=e/typed_neighbours.parquet is not a readable Parquet file",
        "encoder=f/d.parquet is not a readable Parquet file",
        "encoders.parquet is not a readable Parquet file",
        "benchmark 'broken' is not a SELECT",
        "twice.parquet: column 'sample_id' is not unique",
    ):
        assert sum(part in problem for problem in problems) == 1
