"""slide2vec and hs2p: what their own calls wrote (writers/slide2vec), and what can be wrong."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from mistakes import cut_short, raises
from numpy_files import archive, bomb, npy, objects

from croma_sql.importers.listing import Options
from croma_sql.importers.recognise import recognised

WRITTEN = Path(__file__).parent / "writers" / "slide2vec"
BY_STEM, BY_PATH = Options(), Options(slide_id="path")


@pytest.fixture
def run(tmp_path):
    """Copy a run of the writers, to spoil it."""
    return lambda name: Path(shutil.copytree(WRITTEN / name, tmp_path / name))


def features(first, *shape):
    return first + np.arange(np.prod(shape)).reshape(shape) / 8


def one(source, options=BY_STEM, **given):
    (found,) = recognised(source, options, **given).sources
    return found, found.read(0, found.n)


def tell(sidecar, **about):
    """Change what a sidecar says; None takes it away."""
    said = json.loads(sidecar.read_text()) | about
    sidecar.write_text(
        json.dumps({name: value for name, value in said.items() if value is not None})
    )


def test_tiles_of_a_run_with_their_coordinates():
    found = recognised(WRITTEN / "npz")
    assert found.notes[:3] == [
        "3 files of slide2vec: tiles, encoder 'prost40m', 448 px of level 0",
        "1 slide has no tiles: 'empty'",
        "coordinates joined to 2 slides",
    ]
    first, second, empty = found.sources
    assert [file.slide_id for file in found.sources] == ["007-A.v2", "008", "empty"]
    assert (first.n, first.d, first.dtype) == (3, 4, "float32")
    assert (second.n, second.d, second.dtype) == (1, 4, "float32")
    rows = first.read(0, 3)
    np.testing.assert_array_equal(rows.vectors, features(1, 3, 4).astype(np.float32))
    assert rows.samples.to_pydict() == {  # hs2p sorts the tiles by x, then y
        "tile": [0, 1, 2],
        "x": [0.0, 0.0, 448.0],
        "y": [0.0, 448.0, 0.0],
        "coord_unit": ["px"] * 3,
        "tile_size": [448.0] * 3,
        "tissue_fraction": [1.0, 0.75, 0.5],
    }
    about = first.attributes
    assert about["requested_spacing_um"] == 0.5
    assert about["image_path"] == "/data/slides/007-A.v2.svs"
    assert json.loads(about["compatibility"])["output_variant"] == "default"
    assert (about["base_spacing_um"], about["dimensions"]) == (0.25, "[4000, 3000]")
    assert about["coordinates"] == str(WRITTEN / "npz/tiles/007-A.v2.coordinates.npz")
    assert empty.path.name == "empty.meta.json"
    assert (empty.n, empty.d, empty.read(0, 0).vectors.shape) == (0, 0, (0, 0))
    assert first.read(0, 0).samples.schema == first.read(1, 3).samples.schema
    np.testing.assert_array_equal(first.read(1, 3).vectors, rows.vectors[1:])
    assert first.read(1, 3).samples.equals(rows.samples.slice(1))


def test_classes_of_tissue_of_one_slide():
    with raises("'TCGA-AA-0001' is in", "stroma", "tumor", "--slide-id path"):
        recognised(WRITTEN / "pt")
    stroma, tumor = recognised(WRITTEN / "pt" / "tile_embeddings", BY_PATH).sources
    assert [stroma.slide_id, tumor.slide_id] == ["stroma/TCGA-AA-0001", "tumor/TCGA-AA-0001"]
    for source, first, x in ((tumor, 1, 0.0), (stroma, 9, 896.0)):
        rows = source.read(0, 2)
        assert rows.vectors.dtype == np.float16
        np.testing.assert_array_equal(rows.vectors, features(first, 2, 4))
        assert rows.samples.column("x").to_pylist() == [x, x]
        assert rows.samples.column("annotation").unique().to_pylist() == [source.slide_id[:-13]]
        assert (
            rows.samples.column("image_path").to_pylist() == ["/data/slides/TCGA-AA-0001.svs"] * 2
        )
    whole = recognised(WRITTEN / "pt", BY_PATH)
    assert "coordinates joined to 2 slides" in whole.notes
    assert not [note for note in whole.notes if "no vectors" in note]


def test_tiles_of_regions():
    source, rows = one(WRITTEN / "regions")
    assert (source.level, source.n, source.d, source.dtype) == ("tile", 8, 3, "float16")
    np.testing.assert_array_equal(rows.vectors, features(1, 8, 3))
    places = [rows.samples.column(name).to_pylist() for name in ("region", "x", "y")]
    assert list(zip(*places, strict=True)) == [
        (0, 0, 0), (0, 448, 0), (0, 0, 448), (0, 448, 448),
        (1, 896, 0), (1, 1344, 0), (1, 896, 448), (1, 1344, 448),
    ]  # fmt: skip
    assert rows.samples.column("tile_size").to_pylist() == [448.0] * 8
    part = source.read(3, 6)
    np.testing.assert_array_equal(part.vectors, rows.vectors[3:6])
    assert part.samples.equals(rows.samples.slice(3, 3))


@pytest.mark.parametrize(
    ("run", "level", "slide_id", "samples"),
    [
        ("slides", "slide", "007-A.v2", {}),
        ("patients", "sample", None, {"sample_id": "007", "patient_id": "007", "num_slides": 2}),
        ("images", "sample", None, {"sample_id": "bach-001", "image_path": "/data/bach/001.tif"}),
    ],
)
def test_vectors_of_slides_patients_and_images(run, level, slide_id, samples):
    source, rows = one(WRITTEN / run)
    assert (source.level, source.slide_id, source.n, source.d) == (level, slide_id, 1, 4)
    assert source.dtype == ("float16" if run == "patients" else "float32")
    np.testing.assert_array_equal(rows.vectors, features(1, 1, 4))
    assert rows.samples.to_pylist() == [samples]
    assert source.read(1, 1).vectors.shape == (0, 4)


def test_coordinates_are_found_where_the_run_is_where_it_was_and_where_the_user_says(run, tmp_path):
    here = run("npz")
    source, rows = one(here / "tile_embeddings" / "008.npz")
    assert rows.samples.column("x").to_pylist() == [0.0]
    elsewhere = tmp_path / "elsewhere"
    (here / "tiles").rename(elsewhere)
    notes = recognised(here / "tile_embeddings").notes
    assert "2 slides without coordinates: '007-A.v2', '008'" in notes
    recorded = str(elsewhere / "008.coordinates.npz")
    tell(here / "tile_embeddings" / "008.meta.json", coordinates_npz_path=recorded)
    source, rows = one(here / "tile_embeddings" / "008.npz")
    assert source.attributes["coordinates"] == recorded
    given = tmp_path / "given"
    given.mkdir()
    archive(given / "008.coordinates.npz", {"x": [7], "y": [8], "tile_index": [0]})
    source, rows = one(here / "tile_embeddings" / "008.npz", coordinates=given)
    assert rows.samples.select(["x", "y", "tile_size"]).to_pylist() == [
        {"x": 7.0, "y": 8.0, "tile_size": None}
    ]


def test_tiles_that_are_numbered_otherwise_than_by_row(tmp_path):
    folder = tmp_path / "tile_embeddings"
    folder.mkdir()
    vectors = features(1, 2, 4)
    np.savez(folder / "s.npz", features=vectors, tile_index=[2, 0])
    about = {"artifact_type": "tile_embeddings", "sample_id": "s", "num_tiles": 2, "feature_dim": 4}
    (folder / "s.meta.json").write_text(json.dumps(about))
    coordinates = {"x": [0, 0, 448], "y": [0, 448, 0], "tile_index": [0, 1, 2]}
    archive(tmp_path / "s.coordinates.npz", coordinates)
    source, rows = one(tmp_path)
    assert source.dtype == "float64"
    assert rows.samples.column_names == ["tile", "x", "y", "coord_unit", "tile_size"]
    assert rows.samples.column("x").to_pylist() == [448.0, 0.0]
    np.savez(folder / "s.npz", features=vectors, tile_index=[2, 3])
    source = recognised(tmp_path).sources[0]
    with raises("s.coordinates.npz has no tile of number 3", "s.npz"):
        source.read(0, 2)
    np.savez(folder / "s.npz", features=vectors, tile_index=[0, 1])  # as slide2vec always does
    with raises("s.npz has 2 vectors, but", "has 3 coordinates", "different tilings"):
        recognised(tmp_path)
    np.savez(folder / "s.npz", features=vectors, tile_index=[[0, 1]])
    with raises("array 'tile_index', is of shape (1, 2)", "expected 2 whole numbers"):
        recognised(tmp_path)


def test_sidecars_of_older_versions(tmp_path):
    """slide2vec 3 said less; hs2p 2 had no groups, and another name for the tissue."""
    np.savez(tmp_path / "s.npz", features=features(1, 2, 4))
    about = {"artifact_type": "tile_embeddings", "sample_id": "s", "format": "npz"}
    (tmp_path / "s.meta.json").write_text(json.dumps(about | {"feature_dim": 4, "num_tiles": 2}))
    coordinates = {"x": [0, 5], "y": [1, 2], "tile_index": [0, 1], "tissue_fraction": [0.5, 1]}
    archive(tmp_path / "s.coordinates.npz", {k: np.array(v) for k, v in coordinates.items()})
    flat = {"sample_id": "s", "num_tiles": 2, "tile_size_lv0": 512, "target_spacing_um": 0.5}
    (tmp_path / "s.coordinates.meta.json").write_text(json.dumps(flat))
    source, rows = one(tmp_path)
    assert rows.samples.column("tile_size").to_pylist() == [512.0, 512.0]
    assert rows.samples.column("tissue_fraction").to_pylist() == [0.5, 1.0]
    assert source.attributes["target_spacing_um"] == 0.5


def test_arrays_in_any_order_of_bytes_and_axes(tmp_path):
    vectors = features(1, 5, 3)
    about = {"artifact_type": "tile_embeddings", "sample_id": "s"}
    (tmp_path / "s.meta.json").write_text(json.dumps(about))
    for dtype in (">f4", "<f2", "<f8", "<i2", "<i8"):
        for layout in (np.ascontiguousarray, np.asfortranarray):
            np.savez_compressed(tmp_path / "s.npz", features=layout(vectors.astype(dtype)))
            source, rows = one(tmp_path)
            np.testing.assert_array_equal(rows.vectors, vectors.astype(dtype))
            np.testing.assert_array_equal(source.read(2, 4).vectors, vectors.astype(dtype)[2:4])
            assert source.dtype == rows.vectors.dtype.name == source.read(0, 0).vectors.dtype


def test_without_a_sidecar_the_user_says_what_it_is(run):
    folder = run("npz") / "tile_embeddings"
    (folder / "008.meta.json").unlink()
    there = "its arrays are 'features'", "If its vectors are 'features', say --as slide2vec, or"
    with raises("008.npz is of no writer that is known", *there):
        recognised(folder)
    source, _ = one(folder / "008.npz", Options(as_format="slide2vec"))
    assert (source.level, source.slide_id, source.n) == ("tile", "008", 1)
    np.savez(folder / "slide.npz", features=np.ones(3))
    source, _ = one(folder / "slide.npz", Options(as_format="slide2vec"))
    assert (source.level, source.slide_id, source.d) == ("slide", "slide", 3)


def test_sidecars_that_are_not_of_their_array(run):
    folder = run("npz") / "tile_embeddings"
    array, sidecar = folder / "008.npz", folder / "008.meta.json"
    for about in ({"num_tiles": 2}, {"feature_dim": 8}, {"feature_dtype": "fp16"}):
        tell(sidecar, **about)
        with raises(
            f"{array} holds (1, 4) of float32, but {sidecar} says", "embed the slide again"
        ):
            recognised(folder)
        tell(sidecar, num_tiles=1, feature_dim=4, feature_dtype="fp32")
    tell(sidecar, format="pt")
    with raises(f"{array} is not the array that {sidecar} describes, which is a .pt", "remove it"):
        recognised(folder)
    array.unlink()
    with raises(f"{sidecar} describes vectors (tile_embeddings)", "no 008.pt beside it"):
        recognised(folder)
    tell(sidecar, artifact_type="image_embeddings", num_tiles=0)
    with raises(f"{sidecar} describes vectors (image_embeddings)"):
        recognised(folder)


def test_grids_of_features_are_no_vectors(run):
    folder = run("slides") / "slide_embeddings"
    tell(folder / "007-A.v2.meta.json", artifact_type="dense_embeddings")
    with raises("007-A.v2.pt is a grid of features (dense_embeddings)", "Pool it"):
        recognised(folder)


def test_damaged_files(run):
    folder = run("npz") / "tile_embeddings"
    array, sidecar = folder / "007-A.v2.npz", folder / "007-A.v2.meta.json"
    whole = array.read_bytes()
    cut_short(array)
    with raises(f"{array} cannot be read; it is cut short, damaged"):
        recognised(folder)
    damaged = bytearray(whole)
    at = whole.index(b"features.npy") + 60
    damaged[at : at + 20] = bytes(20)
    array.write_bytes(damaged)
    with raises(str(array)):
        recognised(folder).sources[0].read(0, 3)
    for content, said in (
        (objects(), "array 'features', holds Python objects, which only pickle can read"),
        (
            npy(np.ones((3, 4)))[:-8],
            "is cut short or damaged: its header says shape (3, 4) of float64",
        ),
        (npy(np.array([["a"] * 4] * 3)), "is of dtype <U1; expected float16"),
        (npy(np.ones((3, 4), complex)), "is of dtype complex128"),
        (npy(np.ones(3, [("x", "f4")])), "array 'features',"),
        (b"text", "cannot be read"),
    ):
        archive(array, {"features": content})
        with raises(str(array), said):
            recognised(folder)
    archive(array, {"latents": np.ones((3, 4))})
    with raises(f"{array} has no array 'features'; its arrays are 'latents'"):
        recognised(folder)
    bomb(array, "features", (10**6, 128))
    with raises(f"{array}, array 'features', would unpack", "bytes to 512000128"):
        recognised(folder)
    array.write_bytes(whole)
    cut_short(sidecar)
    with raises(f"{sidecar} cannot be read as JSON", "cut short"):
        recognised(folder)
    sidecar.write_text("[1]")
    with raises(f"{sidecar} is JSON, but not an object"):
        recognised(folder)
    sidecar.write_text("[" * 100_000)
    with raises(f"{sidecar} cannot be read as JSON"):
        recognised(folder)


def test_coordinates_that_are_wrong(run):
    folder = run("npz")
    path = folder / "tiles" / "008.coordinates.npz"
    sidecar = path.with_name("008.coordinates.meta.json")
    for arrays, said in (
        ({"x": [0, 1], "y": [0], "tile_index": [0]}, "not one number per tile in every column"),
        ({"x": [[0]], "y": [[0]], "tile_index": [[0]]}, "x (1, 1) int64"),
        ({"x": ["a"], "y": [0], "tile_index": [0]}, "x (1,) <U1"),
        ({"x": [0, 1], "y": [0, 0], "tile_index": [0, 1]}, "has 2 tiles, but"),
    ):
        archive(path, arrays)
        with raises(str(path), said):
            recognised(folder)
    archive(path, {"x": [5], "y": [0], "tile_index": [0]})
    meta = json.loads(sidecar.read_text())
    meta["artifact"]["coordinate_space"] = "um"
    sidecar.write_text(json.dumps(meta))
    with raises(f"{sidecar}: the coordinates are in 'um'"):
        recognised(folder)
    sidecar.unlink()
    (folder / "tile_embeddings" / "007-A.v2.npz").unlink()
    (folder / "tile_embeddings" / "007-A.v2.meta.json").unlink()
    archive(path, {"x": [5, 5], "y": [0, 1], "tile_index": [0, 0]})
    np.savez(folder / "tile_embeddings" / "008.npz", features=np.ones((2, 4), np.float32))
    tell(folder / "tile_embeddings" / "008.meta.json", num_tiles=2)
    with raises(f"{path} numbers more than one tile alike"):
        recognised(folder).sources[0].read(0, 2)


def test_regions_with_coordinates_of_another_tiling(run):
    folder = run("regions")
    path = folder / "tiles" / "007-A.v2.coordinates.npz"
    path.with_name("007-A.v2.coordinates.meta.json").unlink()
    archive(path, {"x": [5], "y": [0], "tile_index": [0]})
    with raises("has 2 regions of 4 tiles, but", "has 1 square regions"):
        recognised(folder)
