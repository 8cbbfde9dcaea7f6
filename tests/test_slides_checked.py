"""What croma-sql check says of vectors that were imported by slide."""

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_slide import bring, part_files, vectors, write_slides

import croma_sql
from croma_sql.errors import WarehouseError
from croma_sql.warehouse.data.sources import read_records, write_sources

pytestmark = pytest.mark.usefixtures("small_parts")


@pytest.fixture
def warehouse(root, tmp_path):
    write_slides(tmp_path / "in", [40, 50, 30, 70, 20, 45])
    bring(root, tmp_path / "in")
    assert croma_sql.check(root) == []
    return root


def sources_of(root):
    return root / "sources/encoder=e/d.parquet"


def says(root, *parts, n=1):
    problems = croma_sql.check(root)
    assert len(problems) == n, problems
    assert any(re.search(".*".join(map(re.escape, parts)), problem) for problem in problems), (
        problems
    )


def rewrite(path, change):
    """Write a part again with other columns, and what it says of itself."""
    frame, about = pl.read_parquet(path), pq.read_metadata(path).metadata[b"croma_sql"]
    change(frame).write_parquet(
        path, statistics=False, compression="lz4", metadata={"croma_sql": about.decode()}
    )


def test_vectors_that_are_others(warehouse):
    path = part_files(warehouse)[0]
    other = pl.Series("embedding", vectors("other", pl.read_parquet(path).height))
    rewrite(path, lambda frame: frame.with_columns(other.cast(frame.schema["embedding"])))
    says(warehouse, str(path), "are not those that were imported", "delete it, and import")


def test_vectors_in_another_order(warehouse):
    path = part_files(warehouse)[0]
    rewrite(path, lambda frame: frame.reverse())
    says(warehouse, str(path), "vectors of 2 source(s) are not those that were imported")


def test_ids_that_are_others(warehouse):
    path = part_files(warehouse)[0]
    ids = pl.read_parquet(path)["sample_id"]
    rewrite(path, lambda frame: frame.with_columns(sample_id=ids.reverse()))
    says(warehouse, str(path), "are not those that were imported")


def test_rows_that_are_too_few(warehouse):
    path = part_files(warehouse)[0]
    n = pl.read_parquet(path).height
    rewrite(path, lambda frame: frame.head(-1))
    says(warehouse, f"{path} has {n - 1} vectors", f"tells of {n}")


def test_bytes_that_are_damaged(warehouse):
    path = part_files(warehouse)[1]
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    says(warehouse, str(path))
    path.write_bytes(data[:100])
    says(warehouse, f"{path} is not a readable Parquet file")


def test_a_part_that_is_missing(warehouse):
    path = part_files(warehouse)[0]
    path.unlink()
    says(warehouse, f"{path} is missing, which {sources_of(warehouse)} lists")
    with pytest.raises(WarehouseError, match=path.name):
        croma_sql.connect(warehouse)


def test_a_part_that_nobody_lists(warehouse):
    path = part_files(warehouse)[0].with_name("0123456789abcdef.parquet")
    path.write_bytes(part_files(warehouse)[0].read_bytes())
    says(warehouse, f"{path} is not in force: an import was interrupted")
    with croma_sql.connect(warehouse) as con:
        assert con.sql("SELECT count(*) FROM embeddings").fetchall() == [(255,)]
    stray = path.with_name("notes.parquet")
    path.rename(stray)
    says(warehouse, f"{stray} is not a file that a warehouse has there")


def test_sources_that_are_lost(warehouse):
    sources_of(warehouse).unlink()
    says(warehouse, "is not in force", n=3)
    assert croma_sql.info(warehouse).encoders == []


def change_sources(root, change):
    write_sources(sources_of(root), change(read_records(sources_of(root))), "")


def test_sources_that_do_not_add_up(warehouse):
    change_sources(warehouse, lambda records: [replace(records[0], first_row=3), *records[1:]])
    says(warehouse, "does not list every row of 1 source(s) once: 's000'", n=2)
    change_sources(warehouse, lambda records: [*records, *records[-1:]])
    assert any("does not list every row" in problem for problem in croma_sql.check(warehouse))


def test_sources_that_are_no_sources(warehouse):
    path = sources_of(warehouse)
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["checksum"]), path)
    says(warehouse, f"{path} has other columns than sources have")
    pq.write_table(table.set_column(8, "n", pa.nulls(len(table), pa.int64())), path)
    with pytest.raises(WarehouseError, match="column 'n' is NULL"):
        read_records(path)
    path.write_bytes(b"PAR1")
    says(warehouse, f"{path} is not a readable Parquet file")
    pq.write_table(pa.table({"part": ["../../../etc/passwd"]}), path)
    says(warehouse, "lists '../../../etc/passwd', which is no name of a part")


def test_samples_that_are_lost(warehouse):
    path = warehouse / "samples/d.parquet"
    pl.read_parquet(path).head(-3).write_parquet(path)
    says(warehouse, "3 vectors have no sample in", "'s005:42'")


def test_what_a_whole_import_says_of_its_source(root, tmp_path):
    features = vectors("all", 20)
    np.save(tmp_path / "x.npy", features)
    ids = pl.DataFrame({"sample_id": [f"t{i}" for i in range(20)]})
    bring(root, tmp_path / "x.npy", samples=ids)
    assert croma_sql.check(root) == []
    change_sources(root, lambda records: [replace(records[0], checksum=1)])
    says(root, "vectors of 1 source(s) are not those that were imported", "x.npy")
    (root / "embeddings/encoder=e/d.parquet").unlink()
    says(root, f"{sources_of(root)} tells of vectors that are not there")


def test_a_whole_and_parts_at_once(warehouse):
    path = warehouse / "embeddings/encoder=e/d.parquet"
    frame = pl.concat(pl.read_parquet(part) for part in part_files(warehouse))
    frame.write_parquet(path, metadata={"croma_sql": json.dumps({"format": 1, "dropped": []})})
    says(warehouse, "is in force, and the parts", "an import was interrupted. Run it again", n=4)
