"""Stores, tables and arrays on object storage: read as those of a disk are."""

import os
import shutil
from pathlib import Path

import anndata
import numpy as np
import polars as pl
import pytest
from openpyxl import Workbook
from storage import Storage

from croma_sql.importers.recognise import recognised
from croma_sql.importers.tables import read_table
from croma_sql.importers.vectors import read_vectors
from croma_sql.places import place

WRITTEN = Path(__file__).parent / "writers" / "lazyslide"


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The same sources in a folder and in a bucket."""
    folder = tmp_path_factory.mktemp("lab")
    _write(folder)
    server = Storage()
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            environment.delenv(name)
        for name, value in server.environment.items():
            environment.setenv(name, value)
        url = "s3://sources-of-a-lab"
        root = place(url)
        root.fs.mkdir(root.path)
        for path in filter(Path.is_file, folder.rglob("*")):
            (root / path.relative_to(folder).as_posix()).write_bytes(path.read_bytes())
        yield folder, url
    server.stop()


def _write(folder):
    vectors = np.random.default_rng(0).standard_normal((20, 16)).astype(np.float32)
    wide = pl.DataFrame(vectors, schema=[f"f{i}" for i in range(16)])
    listed = pl.DataFrame({"embedding": pl.Series(vectors, dtype=pl.Array(pl.Float32, 16))})
    for name in ("stores", "csv", "parquet", "arrow", "npy"):
        (folder / name).mkdir()
    shutil.unpack_archive(WRITTEN / "008.zarr.zip", folder / "stores")
    wide.write_csv(folder / "csv" / "007.csv")
    listed.write_parquet(folder / "parquet" / "007.parquet", row_group_size=6)
    listed.write_ipc(folder / "arrow" / "007.arrow")
    np.save(folder / "npy" / "007.npy", vectors)
    np.save(folder / "npy" / "008.npy", np.asfortranarray(vectors))
    data = anndata.AnnData(vectors, obsm={"spatial": np.arange(40).reshape(20, 2)})
    data.obs["slide"] = ["007", "008"] * 10
    data.write_h5ad(folder / "cohort.h5ad")
    wide.with_columns(sample_id=pl.int_range(20).cast(str)).write_csv(folder / "tiles.csv")
    book = Workbook()
    for row in (["slide", "label"], ["007", "a"], ["008", "b"]):
        book.active.append(row)
    book.save(folder / "slides.xlsx")
    (folder / "slides.csv").write_text("slide;label\n007;a\n008;b\n")


@pytest.mark.parametrize("name", ["stores", "cohort.h5ad", "csv", "parquet", "arrow", "npy"])
def test_files_of_slides(there, name):
    here, remote = (recognised(f"{folder}/{name}") for folder in there)
    assert remote.notes == here.notes
    for mine, other in zip(here.sources, remote.sources, strict=True):
        assert (mine.slide_id, mine.n, mine.d, mine.size) == (
            other.slide_id, other.n, other.d, other.size,
        )  # fmt: skip
        assert other.mtime_ns > 0
        for rows in ((0, mine.n), (1, 3)):
            one, same = mine.read(*rows), other.read(*rows)
            assert one.samples.equals(same.samples)
            np.testing.assert_array_equal(one.vectors, same.vectors)


def test_what_is_imported_as_a_whole(there):
    ids, vectors = [], []
    for folder in there:
        found = read_vectors(f"{folder}/tiles.csv", sample_id="sample_id")
        ids.append(found.ids)
        vectors.append(np.concatenate(list(found.batches())))
    assert ids[0].equals(ids[1])
    np.testing.assert_array_equal(*vectors)


@pytest.mark.parametrize("name", ["slides.xlsx", "slides.csv"])
def test_tables_of_attributes(there, name):
    tables = [read_table(f"{folder}/{name}", text=("slide",)) for folder in there]
    assert tables[1].to_pydict() == {"slide": ["007", "008"], "label": ["a", "b"]}
    assert tables[0].equals(tables[1])
