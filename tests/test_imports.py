"""Samples and vectors from any source: what a warehouse makes of them."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from cohorts import random_cohort

import croma_sql
from croma_sql.warehouse.data.embedding_files import PRECISIONS


@pytest.mark.parametrize("precision", ["float16", "float32", "float64"])
def test_vectors_keep_their_precision_from_any_source(root, tmp_path, precision):
    cohort = random_cohort(1, n=50, dtype=np.dtype(precision))
    tiles = cohort.frame()
    files = {kind: tmp_path / f"tiles.v1.{kind}" for kind in ("npy", "parquet", "feather")}
    np.save(files["npy"], cohort.vectors)
    tiles.write_parquet(files["parquet"])
    lists = tiles.with_columns(pl.col("embedding").arr.to_list())
    pa.feather.write_feather(lists.to_arrow(), files["feather"])
    sources = {
        "frame": tiles,
        "lists": lists,
        "array": cohort.vectors,
        "fortran": np.asfortranarray(cohort.vectors),
        "masked": np.ma.masked_array(cohort.vectors, mask=False),
        "big-endian": cohort.vectors.astype(cohort.vectors.dtype.newbyteorder(">")),
        "arrow": tiles.to_arrow(),
        **files,
    }
    for name, source in sources.items():
        done = croma_sql.import_embeddings(root, source, encoder=name, dataset="d", samples=tiles)
        assert (done.n, done.d, done.dtype, done.bad) == (50, 16, precision, 0)
        stored = pq.read_table(root / f"embeddings/encoder={name}/d.parquet", partitioning=None)
        kind = stored.schema.field("embedding").type
        assert (kind.list_size, PRECISIONS[str(kind.value_type)]) == (16, np.dtype(precision))
        assert stored.column("sample_id").to_pylist() == cohort.ids.tolist()
        values = np.stack(stored.column("embedding").to_numpy())
        np.testing.assert_array_equal(values, cohort.vectors)


def test_rows_of_an_array_belong_to_ids_or_to_the_manifest(root, tmp_path):
    cohort = random_cohort(2, n=30)
    manifest = tmp_path / "manifest.csv"
    cohort.frame().drop("embedding").write_csv(manifest)
    reordered = np.random.default_rng(0).permutation(30)
    croma_sql.import_embeddings(root, cohort.vectors, encoder="a", dataset="d", samples=manifest)
    croma_sql.import_embeddings(
        root, cohort.vectors[reordered], encoder="b", dataset="d", ids=cohort.ids[reordered]
    )
    same = croma_sql.connect(root).sql("""
        SELECT count(*) FROM embeddings a JOIN embeddings b USING (sample_id)
        WHERE a.encoder = 'a' AND b.encoder = 'b' AND a.embedding = b.embedding
    """)
    assert same.fetchall() == [(30,)]


CSV = (
    "\ufeffsample_id,slide,centre,grade,score,site,note\r\n"
    '007,0012,1,2,0.5,NA,"two\r\nlines"\r\n'
    '1e5,0013,2,,NA,Oslo,"a, b"\r\n'
)


def test_csv_keeps_ids_as_text_and_reads_numbers_as_numbers(root, tmp_path):
    path = tmp_path / "manifest.csv"
    path.write_bytes(CSV.encode())
    croma_sql.import_samples(root, path, dataset="d")
    relation = croma_sql.connect(root).sql("SELECT * EXCLUDE (dataset) FROM samples")
    assert dict(zip(relation.columns, map(str, relation.types), strict=True)) == {
        "sample_id": "VARCHAR", "slide": "VARCHAR", "centre": "BIGINT", "grade": "BIGINT",
        "score": "DOUBLE", "site": "VARCHAR", "note": "VARCHAR",
    }  # fmt: skip
    assert relation.fetchall() == [
        ("007", "0012", 1, 2, 0.5, "NA", "two\r\nlines"),
        ("1e5", "0013", 2, None, None, "Oslo", "a, b"),
    ]


def test_csv_cells_stay_text_where_a_number_would_lose_something(root, tmp_path):
    """Ids are never numbers; other cells are none if two different ones would become equal."""
    path = tmp_path / "m[1].csv"
    path.write_text(
        "sample_id;slide;batch;dose\n"
        "1e5;12345678901234567890;1.1;0.50\n"
        "1.0;12345678901234567891;1.10;2\n"
        "1.10;7;2.0;NA\n"
    )
    (tmp_path / "m1.csv").write_text("sample_id\nwrong\n")
    croma_sql.import_samples(root, path, dataset="d")
    found = croma_sql.connect(root).sql("SELECT * EXCLUDE (dataset) FROM samples").fetchall()
    assert found == [
        ("1e5", "12345678901234567890", "1.1", 0.5),
        ("1.0", "12345678901234567891", "1.10", 2.0),
        ("1.10", "7", "2.0", None),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "m.csv cannot be read"),
        (b"sample_id,sample_id\na,b\n", "more than one column 'sample_id'"),
        (b"sample_id,a,a\nx,1,2\n", "more than one column 'a'"),
        (b",sample_id\n0,a\n", "a column has no name"),
        (b"sample_id\n", "has no rows"),
        ("sample_id,site\na,Łódź\n".encode("latin2"), "m.csv (is not UTF-8|cannot be read)"),
        ("sample_id\na\n".encode("utf-16"), "is not UTF-8"),
    ],
)
def test_csv_that_cannot_be_read(root, tmp_path, content, message):
    (tmp_path / "m.csv").write_bytes(content)
    with pytest.raises(croma_sql.CromaSqlError, match=message):
        croma_sql.import_samples(root, tmp_path / "m.csv", dataset="d")
    assert not root.exists()


def test_samples_from_any_frame(root):
    frame = pl.DataFrame({"tile": ["a", "b"], "centre": ["x", None], "n": [1, 2]})
    sources = {
        "polars": frame,
        "enum": frame.with_columns(centre=pl.col("centre").cast(pl.Enum(["x"]))),
        "pandas": frame.to_pandas().assign(centre=pd.Categorical(["x", None])),
        "arrow": frame.to_arrow(),
        "duckdb": duckdb.sql("SELECT * FROM frame"),
    }
    for name, source in sources.items():
        target = root.with_name(name)
        assert croma_sql.import_samples(target, source, dataset="d", sample_id="tile") == 2
        with croma_sql.connect(target) as con:
            found = con.sql("SELECT sample_id, centre, n FROM samples ORDER BY 1").fetchall()
        assert found == [("a", "x", 1), ("b", None, 2)]


def test_masked_vectors_are_bad_vectors(root):
    cohort = random_cohort(1, n=50)
    masked = np.ma.masked_array(cohort.vectors, mask=False)
    masked[3, 2] = np.ma.masked
    with pytest.raises(croma_sql.CromaSqlError, match=f"1 of the first 50.*{cohort.ids[3]}"):
        croma_sql.import_embeddings(root, masked, encoder="e", dataset="d", samples=cohort.frame())


def test_csv_as_spreadsheets_leave_it(root, tmp_path):
    """Blank lines, commas within a quoted header of a file with semicolons."""
    path = tmp_path / "m.csv"
    path.write_text('sample_id;"a, b, c";n\r\n\r\nx;1;2\r\ny;2;9007199254740993.5\r\n\r\n')
    assert croma_sql.import_samples(root, path, dataset="d") == 2
    found = croma_sql.connect(root).sql('SELECT sample_id, "a, b, c", n FROM samples').fetchall()
    assert found == [("x", 1, "2"), ("y", 2, "9007199254740993.5")]
