"""HDF5 files of TRIDENT, CLAM, STAMP and others: what is read is what was written."""

import fcntl
import zlib

import h5py
import numpy as np
import pytest
from mistakes import raises
from slide_files import (
    STAMP,
    clam,
    clam_patches,
    grid,
    plain,
    stamp,
    stamp_encoded,
    trident,
    trident_patches,
    vectors,
)

from croma_sql.importers.listing import Options
from croma_sql.importers.recognise import recognised


def only(path, **options):
    (source,) = recognised(path, Options(**options)).sources
    return source


def assert_holds(source, written, coords=None, unit="px", tile_size=None):
    """Count, precision, a checksum, and the coordinates are those written; so is every part."""
    rows = source.read(0, source.n)
    assert (source.n, source.d) == written.shape
    assert source.dtype == rows.vectors.dtype == written.dtype
    assert zlib.crc32(rows.vectors) == zlib.crc32(written)
    assert rows.samples["tile"].to_pylist() == list(range(source.n))
    if coords is None:
        assert rows.samples.column_names == ["tile"]
    else:
        assert rows.samples["x"].to_pylist() == pytest.approx(coords[:, 0], rel=1e-9)
        assert rows.samples["y"].to_pylist() == pytest.approx(coords[:, 1], rel=1e-9)
        assert rows.samples["coord_unit"].to_pylist() == [unit] * source.n
        assert rows.samples["tile_size"].to_pylist() == [tile_size] * source.n
    middle = source.n // 2
    part = source.read(middle, source.n)
    assert np.array_equal(part.vectors, written[middle:])
    assert part.samples.equals(rows.samples.slice(middle))
    nothing = source.read(0, 0)
    assert (nothing.vectors.shape, nothing.vectors.dtype) == ((0, source.d), written.dtype)
    assert nothing.samples.schema.equals(rows.samples.schema)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_tiles_of_trident(tmp_path, dtype):
    path = trident(tmp_path / "TCGA-3L-AA1B-01Z.v2.h5", vectors(50, dtype=dtype), grid(50))
    source = only(path)
    assert (source.format, source.level, source.slide_id) == (
        *("trident", "tile", "TCGA-3L-AA1B-01Z.v2"),
    )
    assert source.attributes["encoder"] == "uni_v2"
    assert source.attributes["target_magnification"] == 20
    assert source.attributes["level0_width"] == 90_000
    assert (source.size, source.mtime_ns) == (path.stat().st_size, path.stat().st_mtime_ns)
    assert_holds(source, vectors(50, dtype=dtype), grid(50), tile_size=512.0)


def test_the_encoder_that_trident_does_not_know_is_not_called_none(tmp_path):
    path = trident(tmp_path / "s.h5", vectors(2), grid(2), encoder="None", config={"a": None})
    assert "encoder" not in only(path).attributes
    assert only(path).attributes["config"] == '{"a": null}'


@pytest.mark.parametrize("shape", [(0, 8), (0,)])
def test_a_slide_of_trident_without_tiles(tmp_path, shape):
    features = np.empty(shape, np.float32)
    source = only(trident(tmp_path / "s.h5", features, np.empty((0, 2), np.int64)))
    assert (source.level, source.n, source.d) == ("tile", 0, shape[-1])
    assert source.read(0, 0).vectors.shape == (0, shape[-1])


@pytest.mark.parametrize("tiles", [1, 3])
def test_the_vector_of_a_slide_is_one_although_its_tiles_are_many(tmp_path, tiles):
    """TRIDENT squeezes the coordinates too: those of one tile have one dimension."""
    written = vectors(1, dtype=np.float32)
    path = trident(tmp_path / "007.h5", written[0], grid(tiles).squeeze(), encoder=None)
    source = only(path)
    assert (source.level, source.slide_id, source.n, source.d) == ("slide", "007", 1, 8)
    rows = source.read(0, 1)
    assert np.array_equal(rows.vectors, written)
    assert rows.samples.shape == (1, 0)


def test_a_slide_vector_of_no_tiles(tmp_path):
    features, coords = np.empty(0, np.float32), np.empty((0, 2))
    source = only(trident(tmp_path / "s.h5", features, coords, encoder=None))
    assert (source.level, source.n, source.d) == ("slide", 0, 0)


def test_tiles_of_clam(tmp_path):
    path, _ = clam(tmp_path, "slide-01", vectors(70, dtype=np.float32), grid(70))
    source = only(path)
    assert (source.format, source.level, source.slide_id) == ("clam", "tile", "slide-01")
    assert source.attributes == {}
    assert_holds(source, vectors(70, dtype=np.float32), grid(70))


def test_tiles_of_clam_know_their_size_where_its_patches_are_given(tmp_path):
    clam(tmp_path / "features", "s", vectors(5, dtype=np.float32), grid(5, 1024))
    clam_patches(tmp_path / "patches", "s", grid(5, 1024))
    (source,) = recognised(tmp_path / "features/h5_files", coordinates=tmp_path / "patches").sources
    assert_holds(source, vectors(5, dtype=np.float32), grid(5, 1024), tile_size=1024.0)
    assert source.attributes["patch_level"] == 1
    assert source.attributes["downsample"] == "[4.0001, 4.0003]"
    assert source.attributes["coordinates"] == str(tmp_path / "patches/s.h5")


def test_features_that_trident_made_at_clams_coordinates(tmp_path):
    path = trident(tmp_path / "s.h5", vectors(3), grid(3))
    with h5py.File(path, "a") as file:
        for name in list(file["coords"].attrs):
            del file["coords"].attrs[name]
        file["coords"].attrs.update({"patch_size": 256, "patch_level": 1, "downsample": (2.0, 2.0)})
    assert_holds(only(path), vectors(3), grid(3), tile_size=512.0)


def test_tiles_of_stamp_are_in_micrometres(tmp_path):
    coords = grid(40, 256.0) + 0.25
    source = only(stamp(tmp_path / "s.h5", vectors(40), coords))
    assert (source.format, source.level) == ("stamp", "tile")
    assert source.attributes == STAMP
    assert_holds(source, vectors(40), coords, "um", 256.0)


def test_tiles_of_stamp_2(tmp_path):
    said = {"extractor": "ctranspath", "unit": "um", "tile_size": 224.0}
    source = only(stamp(tmp_path / "s.h5", vectors(40), grid(40, 224), said))
    assert_holds(source, vectors(40), grid(40, 224), "um", 224.0)


def test_tiles_of_the_oldest_stamp(tmp_path):
    """They say no unit; 224 pixels were 256 µm."""
    source = only(stamp(tmp_path / "s.h5", vectors(40), grid(40, 224), {"extractor": "ctranspath"}))
    assert_holds(source, vectors(40), grid(40, 256.0), "um", 256.0)


@pytest.mark.parametrize("coords", [grid(40, 300), np.zeros((1, 2)), np.full((3, 2), np.nan)])
def test_coordinates_of_which_stamp_says_nothing_have_no_unit(tmp_path, coords):
    n = len(coords)
    rows = only(stamp(tmp_path / "s.h5", vectors(n), coords, {"extractor": "e"})).read(0, n)
    assert rows.samples["coord_unit"].null_count == rows.samples["tile_size"].null_count == n
    np.testing.assert_array_equal(rows.samples["x"].to_numpy(), coords[:, 0])


@pytest.mark.parametrize("shape", [(8,), (1, 8)])
def test_vectors_of_slides_and_patients_of_stamp(tmp_path, shape):
    written = vectors(1, dtype=np.float32)
    slide = only(stamp_encoded(tmp_path / "slide/0042.h5", written.reshape(shape), "slide"))
    patient = only(stamp_encoded(tmp_path / "patient/0042.h5", written.reshape(shape), "patient"))
    assert (slide.level, slide.slide_id, slide.n) == ("slide", "0042", 1)
    assert (patient.level, patient.slide_id, patient.n) == ("sample", None, 1)
    assert patient.read(0, 1).samples.to_pydict() == {"sample_id": ["0042"]}
    assert patient.read(0, 0).samples.to_pydict() == {"sample_id": []}
    for source in (slide, patient):
        assert source.attributes["encoder"] == "titan"
        assert np.array_equal(source.read(0, 1).vectors, written)


def test_the_encoded_slides_of_a_stamp_that_did_not_say_so(tmp_path):
    said = {"version": "2.1.0", "encoder": "chief", "precision": "torch.float32"}
    source = only(stamp(tmp_path / "s.h5", vectors(1), said=said))
    assert (source.level, source.n, source.d) == ("slide", 1, 8)


def test_tiles_of_kronos_have_no_coordinates(tmp_path):
    source = only(plain(tmp_path / "s.h5", patch_embeddings=vectors(4)))
    assert (source.format, source.level) == ("h5", "tile")
    assert_holds(source, vectors(4))


def test_a_plain_matrix_under_another_name(tmp_path):
    path = plain(tmp_path / "s.hdf5", **{"tiles/uni": vectors(4), "coords": grid(4)})
    source = only(path, embedding="tiles/uni")
    assert (source.format, source.slide_id) == ("h5", "s")
    assert_holds(source, vectors(4), grid(4))


def test_a_batch_of_one_in_front(tmp_path):
    path = plain(tmp_path / "s.h5", features=vectors(4)[None], coords=grid(4)[None])
    assert_holds(only(path), vectors(4), grid(4))


@pytest.mark.parametrize(("unit", "known"), [("µm", "um"), ("pixels", "px"), ("mm", None)])
def test_coordinates_that_are_no_whole_numbers(tmp_path, unit, known):
    path = plain(tmp_path / "s.h5", features=vectors(4), coords=grid(4) / 3)
    with h5py.File(path, "a") as file:
        file["coords"].attrs["unit"] = unit
    assert_holds(only(path), vectors(4), grid(4) / 3, known)


def test_other_numbers_become_floats(tmp_path):
    for dtype, kept in (
        (">f2", "float16"),
        (">f8", "float64"),
        ("i1", "float32"),
        ("i8", "float64"),
    ):
        written = np.arange(12).reshape(3, 4).astype(dtype)
        source = only(plain(tmp_path / "s.h5", features=written))
        assert source.dtype == kept
        rows = source.read(1, 3)
        assert rows.vectors.dtype == np.dtype(kept)
        assert np.array_equal(rows.vectors, written[1:])


@pytest.mark.parametrize("filters", [{"compression": "gzip"}, {"compression": "lzf"}], ids=str)
def test_compressed_vectors(tmp_path, filters):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("features", data=vectors(90), chunks=(8, 3), shuffle=True, **filters)
    assert_holds(only(tmp_path / "s.h5"), vectors(90))


def test_attributes_of_any_type_become_text_and_numbers(tmp_path):
    path = plain(tmp_path / "s.h5", features=vectors(2))
    with h5py.File(path, "a") as file:
        file.attrs["mpp"] = np.float32(0.25)
        file.attrs["count"] = np.uint8(3)
        file.attrs["fixed"] = np.bytes_("f")
        file.attrs["pair"] = (1, 2)
        file.attrs["names"] = ["a", "b"]
        file.attrs["unknown"] = np.nan
        file.attrs["true"] = True
        file.attrs["not_utf8"] = np.bytes_(b"\xff")
        file.attrs["empty"] = h5py.Empty("f4")
        file.attrs["reference"] = file.ref
        file.attrs["long"] = np.zeros(1000)
    assert only(path).attributes == {
        "mpp": 0.25,
        "count": 3,
        "fixed": "f",
        "pair": "[1, 2]",
        "names": '["a", "b"]',
        "unknown": "nan",
        "true": True,
        "not_utf8": "\ufffd",
    }


def test_coordinates_of_trident_without_vectors(tmp_path):
    path = trident_patches(tmp_path / "patches", "a.b", grid(3))
    with raises("holds no vectors, only coordinates of 1 slide"):
        recognised(path)


# what cannot be read


@pytest.mark.parametrize(
    ("features", "coords", "parts"),
    [
        (vectors(4), grid(3), ["has 4 vectors in 'features', but 3 coordinates"]),
        (vectors(4), np.zeros((4, 3)), ["'coords' is of shape (4, 3)", "expected (n, 2)"]),
        (vectors(4).astype("S4"), grid(4), ["'features' is of dtype |S4; expected numbers"]),
        (vectors(4) * 1j, grid(4), ["'features' is of dtype complex"]),
        (np.ones((4, 2), bool), grid(4), ["'features' is of dtype bool"]),
        (vectors(4).reshape(2, 2, 8), grid(4), ["is of shape (2, 2, 8); expected (n, d)"]),
        (np.zeros((4, 0)), grid(4), ["is of shape (4, 0)"]),
        (np.float32(3), grid(4), ["is of shape (); expected (n, d)"]),
        (h5py.Empty("f4"), grid(4), ["is of shape None; expected (n, d)"]),
    ],
)
def test_vectors_that_are_no_matrix(tmp_path, features, coords, parts):
    path = plain(tmp_path / "s.h5", features=features, coords=coords)
    with raises(str(path), *parts):
        recognised(path)


def test_several_vectors_of_one_slide(tmp_path):
    with raises("'feats' is of shape (3, 8); expected one vector"):
        recognised(stamp_encoded(tmp_path / "s.h5", vectors(3), "slide"))


def test_a_file_without_vectors_says_what_is_in_it(tmp_path):
    path = plain(tmp_path / "s.h5", **{"a/weights": np.zeros((2, 3)), "bias": np.zeros(3)})
    with raises(
        f"{path} holds no vectors under 'features' or 'feats'",
        "'a/weights (2, 3) float64', 'bias (3,) float64'",
        "--embedding",
    ):
        recognised(path)
    with raises("holds no vectors under 'uni'", "a/weights"):
        recognised(path, Options(embedding="uni"))
    with raises("empty.h5 holds no datasets. Leave it out"):
        recognised(plain(tmp_path / "empty.h5"))


def test_files_that_are_cut_short(tmp_path):
    path = trident(tmp_path / "s.h5", vectors(300), grid(300))
    whole = path.read_bytes()
    for size in (*range(0, len(whole), len(whole) // 40), len(whole) - 1):
        path.write_bytes(whole[:size])
        with raises(f"{path} is not a whole HDF5 file", "cut short", "Write or copy it again"):
            recognised(path)


def test_a_file_that_is_cut_short_after_it_was_recognised(tmp_path):
    path = trident(tmp_path / "s.h5", vectors(300), grid(300))
    source = only(path)
    path.write_bytes(path.read_bytes()[:3000])
    with raises(f"{path} is not a whole HDF5 file"):
        source.read(0, 300)
    trident(path, vectors(200), grid(200))
    with raises(f"{path} cannot be read: it has changed meanwhile"):
        source.read(0, 300)
    path.unlink()
    with raises(f"{path} does not exist"):
        source.read(0, 300)


@pytest.mark.parametrize("sign", [b"TREE", b"SNOD", b"HEAP", b"OHDR", b"\x89HDF"])
def test_damaged_files(tmp_path, sign):
    path = trident(tmp_path / "s.h5", vectors(20), grid(20))
    whole = path.read_bytes()
    if sign == b"OHDR":  # of files of the newest kind, whose headers have checksums
        with h5py.File(path, "w", libver="latest") as file:
            file["features"] = vectors(20)
        whole = path.read_bytes()
    assert sign in whole
    path.write_bytes(whole.replace(sign, b"????"))
    with raises(str(path)):
        source = only(path)
        source.read(0, source.n)


def test_vectors_that_were_never_written(tmp_path):
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("features", (10**9, 1024), np.float16, chunks=(1, 1024))
    with raises("s.h5: of the 1000000000 vectors in 'features' some were never written"):
        recognised(tmp_path / "s.h5")


def test_vectors_that_lie_in_other_files(tmp_path):
    """They could be any file of the machine, read as numbers."""
    secret = plain(tmp_path / "secret/features.h5", features=vectors(4))
    links = tmp_path / "links"
    links.mkdir()
    with h5py.File(links / "link.h5", "w") as file:
        file["features"] = h5py.ExternalLink(secret, "features")
    with h5py.File(links / "raw.h5", "w") as file:
        file.create_dataset("features", (4, 8), np.float16, external=[(secret, 0, 64)])
    with h5py.File(links / "virtual.h5", "w") as file:
        layout = h5py.VirtualLayout((4, 8), np.float16)
        layout[:] = h5py.VirtualSource(secret, "features", (4, 8))
        file.create_virtual_dataset("features", layout)
    for name in ("link", "raw", "virtual"):
        with raises(f"{name}.h5 cannot be read: it keeps 'features' in another file"):
            recognised(links / f"{name}.h5")


def test_a_file_that_is_being_written(tmp_path):
    path = trident(tmp_path / "s.h5", vectors(3), grid(3))
    with path.open("rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)  # as the HDF5 library does when it writes
        with raises(f"{path} is open in another program, which may still be writing it"):
            recognised(path)
