"""AnnData and LazySlide: what their own calls wrote, and what can be wrong."""

import json
import os
import shutil
import sys
import warnings
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from mistakes import cut_short, raises

from croma_sql.importers.finding import size_and_time
from croma_sql.importers.listing import Options
from croma_sql.importers.polygons import bounds
from croma_sql.importers.recognise import recognised

WRITTEN = Path(__file__).parent / "writers" / "lazyslide"
N, D = 7, 5


def vectors(seed=0, n=N, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, D)).astype(dtype)


def table(x=None, **parts):
    obs = pd.DataFrame(
        {
            "slide": pd.Categorical(["007", "007", "008", "008", "008", None, "007"]),
            "grade": pd.array([1, None, 3, 4, 5, 6, 7], dtype="Int64"),
            "score": [0.5, np.nan, 1, 2, 3, 4, 5],
            "tumour": [True, False] * 3 + [True],
        },
        index=[f"00{i}-A" for i in range(N)],
    )
    return anndata.AnnData(vectors() if x is None else x, obs=obs, **parts)


def write_zarr(data, path, version):
    with warnings.catch_warnings(), anndata.settings.override(zarr_write_format=version):
        warnings.simplefilter("ignore", UserWarning)  # of what its next version will do
        data.write_zarr(path)
    return path


@pytest.fixture(params=["h5ad", "zarr 3"])
def save(request, tmp_path):
    """Write a table in one of the forms."""

    def save(data, name="cohort"):
        if request.param == "h5ad":
            data.write_h5ad(tmp_path / f"{name}.h5ad")
            return tmp_path / f"{name}.h5ad"
        return write_zarr(data, tmp_path / f"{name}.zarr", int(request.param[-1]))

    return save


@pytest.fixture
def store(tmp_path):
    """Unpack a store that LazySlide wrote."""

    def unpack(name):
        shutil.unpack_archive(WRITTEN / f"{name}.zip", tmp_path)
        return tmp_path / name

    return unpack


def one(source, **options):
    (found,) = recognised(source, Options(**options)).sources
    return found


@pytest.mark.parametrize("save", ["h5ad", "zarr 2", "zarr 3"], indirect=True)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16", "int64"])
def test_observations_are_samples(save, dtype):
    found = one(save(table((vectors() * 9).astype(dtype))))
    assert (found.format, found.level, found.slide_id) == ("anndata", "sample", None)
    assert (found.n, found.d) == (N, D)
    kept = {"int16": "float32", "int64": "float64"}.get(dtype, dtype)
    rows = found.read(2, 7)
    assert found.dtype == rows.vectors.dtype == kept
    np.testing.assert_array_equal(rows.vectors, (vectors() * 9).astype(dtype)[2:])
    assert rows.samples.to_pydict() == {
        "sample_id": ["002-A", "003-A", "004-A", "005-A", "006-A"],
        "slide": ["008", "008", "008", None, "007"],
        "grade": [3, 4, 5, 6, 7],
        "score": [1.0, 2.0, 3.0, 4.0, 5.0],
        "tumour": [True, False, True, False, True],
    }
    assert found.read(1, 2).samples.select(["grade", "score"]).to_pylist() == [
        {"grade": None, "score": None}
    ]
    assert found.read(0, 0).samples.schema == rows.samples.schema


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_matrices_are_filled_up(save, dtype):
    dense = np.where(vectors() > 0, vectors(), 0).astype(dtype)
    for number, kind in enumerate((scipy.sparse.csr_matrix, scipy.sparse.csc_array)):
        found = one(save(table(kind(dense)), f"sparse{number}"))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.read(0, N).vectors, dense)
        np.testing.assert_array_equal(found.read(3, 5).vectors, dense[3:5])


def test_any_matrix_of_observations_is_taken_by_its_key(save):
    data = table(
        obsm={
            "X_uni": vectors(1, dtype=np.float16),
            "X_pca": pd.DataFrame(
                vectors(2, dtype=np.float32), index=[f"00{i}-A" for i in range(N)]
            ),
            "spatial": np.zeros((N, 2)),
        },
        layers={"raw": vectors(3)},
    )
    data.obsm["X_pca"].columns = [f"p{i}" for i in range(D)]
    path = save(data)
    for key, seed, dtype in (
        ("X", 0, "float64"),
        ("X_uni", 1, "float16"),
        ("obsm/X_uni", 1, "float16"),
        ("obsm/X_pca", 2, "float32"),
        ("layers/raw", 3, "float64"),
    ):
        found = one(path, embedding=key)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.read(0, N).vectors, vectors(seed).astype(dtype))
    with raises("has no vectors under 'X_umap'; its matrices are 'X', ", "'obsm/X_uni'"):
        one(path, embedding="X_umap")
    bare = table(obsm={"X_uni": vectors(1), "spatial": np.zeros((N, 2))})
    found = one(save(anndata.AnnData(obs=bare.obs, obsm=bare.obsm), "bare"))
    assert found.attributes["matrix"] == "obsm/X_uni"
    two = anndata.AnnData(obs=bare.obs, obsm={"X_uni": vectors(1), "X_gigapath": vectors(2)})
    with raises("more than one choice of vectors; its matrices are ", "--embedding"):
        one(save(two, "two"))
    with raises("has no vectors; its matrices are none"):
        one(save(anndata.AnnData(obs=bare.obs), "none"))


def test_places_of_observations(save):
    places = np.arange(2 * N).reshape(N, 2)
    found = one(save(table(obsm={"spatial": places})))
    assert found.read(1, 3).samples.select(["x", "y", "coord_unit", "tile_size"]).to_pydict() == {
        "x": [2.0, 4.0],
        "y": [3.0, 5.0],
        "coord_unit": ["px", "px"],
        "tile_size": [None, None],
    }
    said = table(obsm={"spatial": places})
    said.obs["coord_unit"], said.obs["tile_size"] = "um", 256.0
    samples = one(save(said, "said")).read(0, 1).samples
    assert samples.select(["x", "coord_unit", "tile_size"]).to_pylist() == [
        {"x": 0.0, "coord_unit": "um", "tile_size": 256.0}
    ]


def test_ids_are_the_index_or_a_column_that_is_unique(save):
    data = table()
    data.obs["key"] = [f"k{i}" for i in range(N)]
    path = save(data)
    assert one(path, sample_id="key").read(0, 1).samples.to_pylist()[0] == {
        "sample_id": "k0", "obs_names": "000-A", "slide": "007", "grade": 1, "score": 0.5,
        "tumour": True,
    }  # fmt: skip
    with raises("obs has no column 'id'; its columns are 'slide', 'grade'", "--sample-id"):
        one(path, sample_id="id")
    data.obs.index = [str(i) for i in range(N)]
    samples = one(save(data, "counted"), sample_id="key").read(0, 1).samples
    assert "obs_names" not in samples.column_names
    data.obs["sample_id"] = data.obs["slide"]
    with raises("obs has a column 'sample_id' that is not unique ('007', '008')", "Rename it"):
        one(save(data, "mixed"))


def test_tables_that_are_damaged(save):
    path = save(table())
    if path.suffix == ".h5ad":
        cut_short(path)
        message = "is not a whole HDF5 file; it may be cut short"
    else:
        for file in path.rglob("*"):
            if file.name in (".zarray", "zarr.json") and file.parent.name == "X":
                file.write_text("{")
        message = "cannot be read: "
    with raises(f"{path} {message}"):
        recognised(path)
    sparse = table(scipy.sparse.csr_matrix(vectors()))
    if path.suffix == ".h5ad":
        with h5py.File(save(sparse, "half"), "a") as file:
            del file["X/data"]
            file["X/data"] = np.ones(N * D, np.float16)
        with raises("'X' is sparse float16, which nobody reads; write it dense"):
            recognised(path.with_name("half.h5ad"))
    other = path.with_name(f"other{path.suffix}")
    if other.suffix == ".h5ad":
        with h5py.File(other, "w") as file:
            file["values"] = [1.0]
    else:
        other.mkdir()
        (other / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    with raises(f"{other} is of no writer that is known"):
        recognised(other)


def test_tables_read_no_other_file(tmp_path):
    table().write_h5ad(tmp_path / "a.h5ad")
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["X"], file["slide"] = vectors(), np.arange(N)
    for name in ("X", "obs/grade"):
        shutil.copy(tmp_path / "a.h5ad", tmp_path / "b.h5ad")
        with h5py.File(tmp_path / "b.h5ad", "a") as file:
            del file[name]
            file[name] = h5py.ExternalLink("secret.h5", "X" if name == "X" else "slide")
        with pytest.raises(ValueError, match=f"keeps '{name[-5:]}' in another file"):
            recognised(tmp_path / "b.h5ad")


def test_an_old_h5ad(tmp_path):
    """AnnData up to 0.6 wrote obs as one array of rows, and no encodings."""
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        file["X"] = vectors()
        file["obs"] = np.array(
            [(f"00{i}".encode(), i) for i in range(N)], [("i", "S8"), ("n", "i8")]
        )
        file["var"] = np.array([(b"f",)] * D, [("index", "S8")])
    with raises("old.h5ad is of a version of AnnData before 0.7", "read_h5ad and write it again"):
        recognised(tmp_path / "old.h5ad")


def test_the_library_that_is_missing_is_named(save, monkeypatch):
    path = save(table())
    monkeypatch.setitem(sys.modules, "anndata", None)
    monkeypatch.setitem(sys.modules, "zarr", None)
    with raises(f"{path} needs a library to be read: pip install 'croma-sql[anndata]'"):
        recognised(path)


TILES = {  # of the block of tissue at (400, 300), by tiles of 224 at half the resolution
    "tile": [0, 1, 2, 3],
    "x": [400.0, 400.0, 848.0, 848.0],
    "y": [300.0, 748.0, 300.0, 748.0],
    "coord_unit": ["px"] * 4,
    "tile_size": [448.0] * 4,
    "tissue_id": [0] * 4,
}


def features(first, *shape):
    return first + np.arange(np.prod(shape)).reshape(shape) / 8


@pytest.mark.parametrize(
    ("name", "key", "dtype", "first"),
    [
        ("007-A.v2.zarr", "mini_tiles", "float32", 1),
        ("007-A.v2.zarr", "half_tiles/X", "float16", 100),
        ("008.zarr", None, "float32", 9),
    ],
)
def test_tiles_of_lazyslide(store, name, key, dtype, first):
    found = one(store(name), embedding=key)
    assert (found.format, found.level, found.slide_id) == ("lazyslide", "tile", name[:-5])
    assert (found.n, found.d, found.dtype) == (4, 4, dtype)
    rows = found.read(0, 4)
    np.testing.assert_array_equal(rows.vectors, features(first, 4, 4).astype(dtype))
    assert rows.vectors.dtype == dtype
    assert rows.samples.to_pydict() == TILES
    assert found.read(1, 3).samples.to_pydict() == {k: v[1:3] for k, v in TILES.items()}
    said = found.attributes
    assert (said["encoder"], said["tile_key"]) == ("half" if first == 100 else "mini", "tiles")
    assert (said["tile_spec.width"], said["tile_spec.mpp"], said["slide_properties.mpp"]) == (
        224, 1.0, 0.5,
    )  # fmt: skip


def test_the_vector_that_lazyslide_made_of_a_slide(store):
    found = one(store("007-A.v2.zarr"), embedding="mini_tiles/agg_slide")
    assert (found.level, found.slide_id, found.n, found.d) == ("slide", "007-A.v2", 1, 4)
    rows = found.read(0, 1)
    np.testing.assert_array_equal(rows.vectors, [features(1, 4, 4).mean(axis=0)])
    assert (rows.samples.num_rows, rows.samples.num_columns) == (1, 0)


def test_a_store_of_several_encoders_is_asked_for_one(store):
    path = store("007-A.v2.zarr")
    with raises(f"{path} has 2 tables: 'half_tiles', 'mini_tiles'. Name one with --embedding"):
        recognised(path)
    with raises(f"{path} has 2 tables, none of them 'uni_tiles': 'half_tiles'"):
        recognised(path, Options(embedding="uni_tiles"))
    for name in ("mini", "mini/agg_slide"):  # as the encoder is called
        assert one(path, embedding=name).attributes["table"] == "mini_tiles"
    with raises("no vectors under 'agg'; its matrices are 'X'"):
        recognised(path, Options(embedding="mini_tiles/agg"))
    shutil.rmtree(path / "tables" / "half_tiles")
    assert one(path).attributes["encoder"] == "mini"
    shutil.rmtree(path / "tables" / "mini_tiles")
    with raises(f"{path} has no tables, so nobody has extracted features"):
        recognised(path)


def test_stores_of_several_slides(store):
    folder = store("008.zarr").parent
    store("007-A.v2.zarr")
    found = recognised(folder, Options(embedding="mini_tiles"))
    assert [file.slide_id for file in found.sources] == ["007-A.v2", "008"]
    assert found.notes == ["2 files of LazySlide: tiles, encoder 'mini'"]


def test_a_table_saved_alone_is_of_its_slide(store, tmp_path):
    data = anndata.read_zarr(store("008.zarr") / "tables" / "mini_tiles")
    data.obs["class"] = ["a", "b", "b", None]
    data.write_h5ad(tmp_path / "008.h5ad")
    found = one(tmp_path / "008.h5ad")
    assert (found.format, found.level, found.slide_id) == ("lazyslide", "tile", "008")
    assert found.read(1, 3).samples.to_pydict() == {"tile": [1, 2], "class": ["b", "b"]}
    np.testing.assert_array_equal(found.read(0, 4).vectors, features(9, 4, 4))


def test_tiles_are_matched_with_their_shapes(store):
    """Tiles may be fewer than shapes, in another order, and lie twice as wide as high."""
    path = store("008.zarr")
    at = path / "tables" / "mini_tiles"
    data = anndata.read_zarr(at)[[3, 1]].copy()
    shutil.rmtree(at)
    write_zarr(data, at, 2)
    rows = one(path).read(0, 2)
    assert rows.samples.to_pydict() == {
        **{name: [values[3], values[1]] for name, values in TILES.items()},
        "tile": [0, 1],
        "tile_id": [3, 1],
    }
    np.testing.assert_array_equal(rows.vectors, features(9, 4, 4)[[3, 1]])
    data.obs["tile_id"] = [3, 17]
    shutil.rmtree(at)
    write_zarr(data, at, 2)
    with raises("1 of 2 tiles have no shape in 'tiles': 17", "extract features again"):
        one(path).read(0, 2)
    cut_short(path / "shapes" / "tiles" / "shapes.parquet")
    with raises("shapes.parquet is not a readable Parquet file"):
        one(path).read(0, 2)


def test_tables_of_spatialdata_that_lazyslide_did_not_write(store):
    path = store("008.zarr")
    said = json.loads((path / ".zattrs").read_text())
    (path / ".zattrs").write_text(json.dumps({"spatialdata_attrs": said["spatialdata_attrs"]}))
    found = one(path)
    assert (found.format, found.level, found.n) == ("anndata", "sample", 4)
    assert found.attributes == {"matrix": "X", "table": "tables/mini_tiles"}
    assert found.read(3, 4).samples.to_pylist() == [
        {"sample_id": "3", "tile_id": 3, "library_id": "tiles"}
    ]


def test_tiles_of_several_elements_are_refused(store):
    path = store("008.zarr")
    at = path / "tables" / "mini_tiles"
    data = anndata.read_zarr(at)
    data.uns["spatialdata_attrs"]["region"] = ["tiles", "more"]
    shutil.rmtree(at)
    write_zarr(data, at, 2)
    with raises("mini_tiles, has tiles of several elements: 'tiles', 'more'"):
        recognised(path)


def test_anndata_under_the_suffix_of_hdf5(tmp_path):
    table().write_h5ad(tmp_path / "cohort.h5")
    assert (one(tmp_path).format, one(tmp_path).level) == ("anndata", "sample")


def test_a_store_is_as_new_as_its_newest_file(store):
    path = store("008.zarr")
    size, time = size_and_time(path)
    assert size == sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    chunk = path / "tables" / "mini_tiles" / "X" / "0.0"
    compressed = chunk.stat().st_size
    chunk.write_bytes(b"")
    os.utime(chunk, ns=(time + 5, time + 5))
    assert size_and_time(path) == (size - compressed, time + 5)


def test_bounds_of_polygons():
    ring = [[0.0, 1.0], [2.0, 1.0], [2.0, 5.0], [0.0, 1.0]]
    well_known = {
        order: np.array([order == "<"], "u1").tobytes()
        + np.array([3, 1, 4], f"{order}u4").tobytes()
        + np.array(ring, f"{order}f8").tobytes()
        for order in "<>"
    }
    expected = [[0, 1, 2, 5]] * 2
    np.testing.assert_array_equal(bounds(pa.array(well_known.values())), expected)
    pairs = pa.array([[ring], [ring, ring]], pa.list_(pa.list_(pa.list_(pa.float64(), 2))))
    np.testing.assert_array_equal(bounds(pairs), expected)
    assert bounds(pa.array([], pa.binary())).shape == (0, 4)
    point = b"\1\1\0\0\0" + bytes(16)
    for wrong in (pa.array([point]), pa.array([1.0])):
        with pytest.raises(ValueError, match="expected polygons"):
            bounds(wrong)
