"""Columns before the features of a vector are coordinates, or refused: never taken for features."""

import numpy as np
import polars as pl
import pytest
import torch
from by_slide import bring, samples, stored, table
from mistakes import raises
from slide_files import plain, tensor

from croma_sql.importers.leading import Edges, edges

RNG = np.random.default_rng(0)
D = 24
PLACES = np.stack([np.full(12, 16), np.arange(12) % 4 + 100, np.arange(12) // 4 + 100], 1)
FEATURES = RNG.standard_normal((12, D)).astype(np.float32)
TOGETHER = np.hstack([PLACES, FEATURES]).astype(np.float32)


def plism(folder, *slides, vectors=TOGETHER):
    for slide in slides:
        (folder / slide).mkdir(parents=True)
        np.save(folder / slide / "features.npy", vectors)
    return folder


def assert_split(root, slide, level=True):
    found = stored(root)
    vectors = np.array([found[f"{slide}:{i}"] for i in range(12)], np.float32)
    np.testing.assert_array_equal(vectors, FEATURES)
    frame = samples(root).filter(slide_id=slide).sort("tile")
    assert frame.select("x", "y").to_numpy().tolist() == PLACES[:, 1:].tolist()
    if level:
        assert (frame["level"].dtype, set(frame["level"])) == (pl.Int64, {16})


def test_plism_is_read_by_its_layout(tmp_path, root):
    slides = "GIVH_AT2_to_GMH_S60.tif", "GMH_S60_to_GMH_S60.tif"
    imported = bring(root, plism(tmp_path / "h0_mini", *slides))
    assert (imported.n, imported.d, imported.dtype) == (24, D, "float32")
    assert imported.notes == [
        "2 files of PLISM: tiles, 'level,x,y' before the features",
        "x and y of PLISM are columns and rows of tiles at a Deep Zoom level (coord_unit 'tile')",
    ]
    for slide in slides:
        assert_split(root, slide)
    assert set(samples(root)["coord_unit"]) == {"tile"}
    again = bring(root, tmp_path / "h0_mini")
    assert again.slides.unchanged == 2


def test_plism_of_float16(tmp_path, root):
    bring(root, plism(tmp_path / "h0", "s", vectors=TOGETHER.astype(np.float16)))
    assert stored(root)["s:3"] == tuple(FEATURES[3].astype(np.float16).tolist())
    assert samples(root)["x"].to_list() == PLACES[:, 1].tolist()


def writers(folder):
    """The same array in every kind of file that holds a bare one."""
    folder.mkdir()
    np.save(folder / "s.npy", TOGETHER)
    plain(folder / "s.h5", features=TOGETHER)
    tensor(folder / "s.pt", torch.from_numpy(TOGETHER))
    np.savez(folder / "s.npz", features=TOGETHER)
    wide = {f"f{i}": column for i, column in enumerate(TOGETHER.T)}
    pl.DataFrame(wide).write_csv(folder / "s.csv")
    pl.DataFrame(wide).write_parquet(folder / "s.parquet")
    return folder


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("s.npy", "npy"), ("s.h5", None), ("s.pt", None), ("s.npz", "slide2vec"),
        ("s.csv", "csv"), ("s.parquet", "parquet"),
    ],
)  # fmt: skip
def test_every_reader_of_bare_arrays(tmp_path, root, name, kind):
    path = writers(tmp_path / "in") / name
    with raises(
        f"{path}: the first 3 columns of the vectors hold whole numbers only, unlike the other 24",
        "--leading-columns level,x,y (Python: leading_columns=). If they are features all the",
        "same, say --leading-columns none",
    ):
        bring(root, path, as_format=kind)
    assert not root.exists()
    imported = bring(root, path, as_format=kind, leading_columns=["level", "x", "y"])
    assert "leading columns x and y have no unit, as level 0 may be another" in imported.notes
    assert (imported.n, imported.d) == (12, D)
    assert_split(root, "s")
    assert bring(root, path, as_format=kind, leading_columns=()).d == D + 3


def test_other_leading_columns_are_attributes(tmp_path, root):
    tmp_path.joinpath("in").mkdir()
    np.save(tmp_path / "in/s.npy", np.hstack([PLACES[:, 1:] * 256, FEATURES]))
    with raises("the first 2 columns of the vectors hold", "--leading-columns x,y"):
        bring(root, tmp_path / "in")
    notes = bring(root, tmp_path / "in", leading_columns=["x", "y"]).notes
    assert "leading columns x and y count as px of level 0" in notes
    assert table(root, "SELECT DISTINCT coord_unit FROM samples").rows() == [("px",)]
    bring(root, tmp_path / "in", dataset="e", prefix="e", leading_columns=["row", "col"])
    assert samples(root, "e")["row"].to_list() == (PLACES[:, 1] * 256.0).tolist()
    assert samples(root, "e")["x"].null_count() == 12


def test_one_table_of_all_samples(tmp_path, root):
    ids = pl.DataFrame({"sample_id": [f"t{i}" for i in range(12)]})
    with raises("the array: the first 3 columns of the vectors hold", "Save the vectors without"):
        bring(root, TOGETHER, samples=ids)
    with raises("the array: the last 3 columns of the vectors hold whole", "leading_columns=()"):
        bring(root, TOGETHER[:, ::-1], samples=ids)
    assert bring(root, TOGETHER, samples=ids, leading_columns=()).d == D + 3
    with raises("is imported as a whole, for which 'leading_columns' has no meaning"):
        bring(root, TOGETHER, samples=ids, leading_columns=["a"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x"], "one is x or y, and the other is missing"),
        (["a", "a"], "give each a name of its own"),
        (["a", " "], "give each a name of its own"),
        (["tile", "x", "y"], "'tile', which an import writes itself; give it another name"),
        (list(map(str, range(27))), "no feature would be left"),
        (["a", "b", "c", "level"], "'level' holds numbers that are not whole"),
    ],
)
def test_names_that_do_not_do(tmp_path, root, names, message):
    np.save(tmp_path / "s.npy", TOGETHER)
    with raises(message):
        bring(root, tmp_path / "s.npy", as_format="npy", leading_columns=names)


COUNTS = RNG.poisson(3, (40, 64)).astype(np.float32)
RELU = np.maximum(RNG.standard_normal((40, 64)), 0).astype(np.float32)
LARGE = (RNG.standard_normal((40, 64)) * 5).astype(np.float16)
LARGE[:, :2] = RNG.uniform(2048, 9000, (40, 2))  # of float16 all whole from 2048 on


@pytest.mark.parametrize(
    "features",
    [
        COUNTS, COUNTS / 3, RELU, LARGE, LARGE.astype(np.float32), RELU[:1], RELU[:, ::-1][:3],
        np.hstack([np.zeros((40, 2)), RELU]), np.hstack([np.ones((40, 1)), RELU]),
        np.hstack([RELU[:, :9], COUNTS]), np.hstack([COUNTS[:, :30], RELU]),
        np.hstack([COUNTS % 2, RELU]), np.full((3, 9), np.nan), np.empty((0, 9)), np.eye(20),
        RNG.integers(0, 255, (20, 30)).astype(float), RELU.round(1),
    ],
)  # fmt: skip
def test_features_are_features(features):
    assert edges(features) == Edges(0, 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [3, 40])
def test_places_are_found_among_rectified_features(dtype, n):
    places = np.stack([np.full(n, 17), np.arange(n) % 9 + 31, np.arange(n) // 9 + 50], 1)
    assert edges(np.hstack([places, RELU[:n]]).astype(dtype)) == Edges(3, 0)
    assert edges(np.hstack([RELU[:n], places]).astype(dtype)) == Edges(0, 3)
