"""Which files of a source are vectors, of which slides, and where their tiles lie."""

import os
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from mistakes import cut_short, raises
from slide_files import (
    clam,
    clam_patches,
    grid,
    plain,
    stamp,
    tensor,
    trident,
    trident_patches,
    vectors,
)

from croma_sql.importers.finding import find
from croma_sql.importers.joining import join_coordinates
from croma_sql.importers.listing import Options
from croma_sql.importers.recognise import FORMATS, recognised
from croma_sql.importers.sources import Coordinates, Rows, SourceFile

STEMS, PATH_IDS = Options(), Options(slide_id="path")


def slides(source, options=STEMS, **more):
    return [file.slide_id for file in recognised(source, options, **more).sources]


def tiles(path, n=3, **said):
    return trident(path, vectors(n), grid(n), **said)


# files


def test_a_folder_with_all_that_lies_below_it(tmp_path):
    for name in ("b/2.h5", "a/deep/1.h5", "0.h5", ".hidden/x.h5", "__MACOSX/x.h5", "a/._1.h5"):
        tiles(tmp_path / name)
    for name in ("a/Thumbs.db", ".DS_Store", "a/log.txt", "b/2.json", "b/3.JSON", "README"):
        (tmp_path / name).touch()
    found = recognised(tmp_path)
    assert [file.slide_id for file in found.sources] == ["0", "1", "2"]
    assert found.notes == [
        "3 files of TRIDENT: tiles, encoder 'uni_v2', 512 px of level 0",
        "left alone: 2 .json, 1 without suffix, 1 .txt",
    ]
    assert slides(str(tmp_path / "a")) == ["1"]
    assert slides(tmp_path, PATH_IDS) == ["0", "a/deep/1", "b/2"]


def test_the_name_of_a_slide_is_that_of_its_file_as_written(tmp_path):
    for name in ("007.h5", "1.2.840.113.h5", "TCGA-AA-3.2f4a.svs.H5", "ü β.h5", "s_patches.h5"):
        tiles(tmp_path / name)
    assert sorted(slides(tmp_path)) == [
        *("007", "1.2.840.113", "TCGA-AA-3.2f4a.svs", "s_patches", "ü β"),
    ]


def test_globs(tmp_path, monkeypatch):
    for name in ("uni/a/1.h5", "uni/b/2.h5", "conch/1.h5", "uni/b/.x.h5"):
        tiles(tmp_path / name, encoder=name.partition("/")[0])
    (tmp_path / "uni/b/2.json").touch()
    assert slides(tmp_path / "uni/**/*.h5") == ["1", "2"]
    assert slides(f"{tmp_path}/[tu]ni/?") == ["1", "2"]
    assert slides(f"{tmp_path}/*/b/*.h5", PATH_IDS) == ["uni/b/2"]
    monkeypatch.chdir(tmp_path)
    assert slides("*/b/2.h5") == ["2"]
    assert [path.name for path in find("uni/b/2.h*").listing.paths] == [".x.h5", "2.h5", "2.json"]
    with raises("uni/*.pt matches no file"):
        recognised("uni/*.pt")


def test_what_exists_under_the_very_name_is_no_glob(tmp_path):
    tiles(tmp_path / "slides [20x]/s*.h5")
    tiles(tmp_path / "slides [20x]/s2.h5")
    assert slides(tmp_path / "slides [20x]") == ["s*", "s2"]
    assert slides(tmp_path / "slides [20x]/s*.h5") == ["s*"]


def test_links_are_followed_and_may_lead_in_circles(tmp_path):
    tiles(tmp_path / "elsewhere/1.h5")
    (tmp_path / "features").mkdir()
    (tmp_path / "features/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "features/linked/again").symlink_to(tmp_path / "features")
    assert slides(tmp_path / "features") == ["1"]
    (tmp_path / "features/dead.h5").symlink_to(tmp_path / "nothing.h5")
    with raises("dead.h5 does not exist"):
        recognised(tmp_path / "features")


def test_a_store_of_zarr_is_one_thing(tmp_path):
    for name in ("a.zarr/zarr.json", "a.zarr/c/0/0.npy", "b/c.ZARR/.zgroup"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for source in (tmp_path, tmp_path / "**", f"{tmp_path}/*"):
        assert [path.name for path in find(source).paths] == ["a.zarr", "c.ZARR"]
    assert find(tmp_path / "a.zarr").paths == [tmp_path / "a.zarr"]


def test_pipes_are_not_waited_for(tmp_path):
    tiles(tmp_path / "s.h5")
    os.mkfifo(tmp_path / "pipe.h5")
    assert slides(tmp_path) == slides(tmp_path / "*.h5") == ["s"]
    with raises("pipe.h5 does not exist"):
        recognised(tmp_path / "pipe.h5")


@pytest.fixture
def bucket(tmp_path):
    """A file system that is not this machine's, as URLs of object storage are."""
    storage = fsspec.filesystem("memory")
    for name in ("features/a/1.h5", "features/2.h5", "features/.x.h5", "patches/2_patches.h5"):
        local = tmp_path / Path(name).name
        if name.startswith("patches"):
            trident_patches(tmp_path, "2", grid(3))
        else:
            tiles(local)
        storage.pipe(f"/bucket/{name}", local.read_bytes())
    storage.pipe("/bucket/features/3.pt", tensor(tmp_path / "3.pt", vectors(4)).read_bytes())
    storage.pipe("/bucket/features/z.zarr/zarr.json", b"{}")
    yield "memory://bucket"
    storage.store.clear()


def test_urls(bucket):
    assert slides(f"{bucket}/features/**/*.h5", PATH_IDS) == ["2", "a/1"]
    assert slides(f"{bucket}/features/2.h5", coordinates=f"{bucket}/patches") == ["2"]
    assert [path.name for path in find(f"{bucket}/features").paths] == [
        *("2.h5", "3.pt", "1.h5", "z.zarr"),
    ]
    for name, n in (("2.h5", 3), ("3.pt", 4)):
        (source,) = recognised(f"{bucket}/features/{name}").sources
        assert np.array_equal(source.read(1, n).vectors, vectors(n)[1:])
    with raises("memory://bucket/none does not exist"):
        recognised(f"{bucket}/none")


def test_a_suffix_that_lies(tmp_path):
    tiles(tmp_path / "1.h5").rename(tmp_path / "1.pt")
    tensor(tmp_path / "2.pt", vectors(3)).rename(tmp_path / "2.h5")
    tiles(tmp_path / "3.h5").rename(tmp_path / "3.features")
    assert slides(tmp_path) == ["1", "2"]
    assert slides(tmp_path / "3.features") == ["3"]
    (tmp_path / "4.features").write_text("what")
    with raises("4.features is of no kind that embeddings are read from"):
        recognised(tmp_path / "4.features")


def test_nothing_to_import(tmp_path):
    with raises(f"{tmp_path} holds no vectors"):
        recognised(tmp_path)
    with raises("nowhere does not exist"):
        recognised(tmp_path / "nowhere")
    trident_patches(tmp_path, "1", grid(3))
    (tmp_path / "log.txt").touch()
    with raises(f"{tmp_path} holds no vectors, only coordinates of 1 slide, 1 .txt"):
        recognised(tmp_path)


def test_a_format_that_the_user_names(tmp_path):
    path = plain(tmp_path / "1.h5", feats=vectors(3), coords=grid(3))
    tensor(tmp_path / "2.pt", vectors(3))
    (source,) = recognised(path, Options(as_format="trident")).sources
    assert source.format == "trident"
    assert source.read(0, 3).samples["coord_unit"].to_pylist() == ["px"] * 3
    found = recognised(tmp_path, Options(as_format="h5"))
    assert [file.slide_id for file in found.sources] == ["1"]
    assert found.notes[-1] == "left alone: 1 .pt"
    for source in (path, tmp_path / "2.pt"):
        with raises(f"{source} holds no vectors of the format 'npy' (.npy)"):
            recognised(source, Options(as_format="npy"))
    with raises("holds no vectors of the format 'lazyslide' (.zarr, .h5ad), only 1 .h5, 1 .pt"):
        recognised(tmp_path, Options(as_format="lazyslide"))
    with raises(f"{path} holds no vectors of the format 'anndata' (.h5ad, .zarr, .h5, .hdf5)"):
        recognised(path, Options(as_format="anndata"))
    with raises("the format 'tridnet' is not known; --as can be ", ", ".join(FORMATS)):
        recognised(path, Options(as_format="tridnet"))


def test_coordinates_that_are_none(tmp_path):
    path = plain(tmp_path / "in/1.h5", feats=vectors(3))
    (tmp_path / "thumbnails").mkdir()
    (tmp_path / "thumbnails/1.jpg").touch()
    for where in (tmp_path / "thumbnails", tmp_path / "thumbnails/1.jpg"):
        with raises(f"{where} holds no coordinates; they are read from the patches of TRIDENT"):
            recognised(path, coordinates=where)


def test_files_that_cannot_be_read_are_named_together(tmp_path):
    for i in range(6):
        tiles(tmp_path / f"{i}.h5")
    for i in (1, 2, 3, 4, 5):
        cut_short(tmp_path / f"{i}.h5")
    with raises("1.h5 is not a whole HDF5 file", "(4 more: ", "2.h5'", "3.h5'", "4.h5', ...)"):
        recognised(tmp_path)


def test_a_name_that_is_no_text(tmp_path):
    tiles(tmp_path / "slide.h5").rename(tmp_path / os.fsdecode(b"sl\xefde.h5"))
    with raises("the name is not UTF-8; rename the file"):
        recognised(tmp_path)
    tiles(tmp_path / "slide.h5")
    odd = tmp_path / os.fsdecode(b"sl\xefde.h5")
    odd.rename(odd.with_suffix(".txt"))
    assert recognised(tmp_path).notes[-1] == "left alone: 1 .txt"


# what belongs together


def test_two_encoders_are_not_imported_as_one(tmp_path):
    for encoder in ("uni_v2", "conch_v15"):
        tiles(tmp_path / f"features_{encoder}/1.h5", encoder=encoder)
    tiles(tmp_path / "features_uni_v2/2.h5")
    with raises(
        "holds vectors of more than one encoder",
        "'conch_v15' (1 file, first ",
        "'uni_v2' (2 files, first ",
        "giving the folder of each or a glob",
    ):
        recognised(tmp_path)
    stamp(tmp_path / "features_uni_v2/3.h5", vectors(3), grid(3))
    with raises("'uni_v2' (2 files", "'uni2-1a2b3c4d' (1 file"):
        recognised(tmp_path / "features_uni_v2")


def test_tiles_and_slides_are_not_imported_as_one(tmp_path):
    tiles(tmp_path / "tiles/1.h5")
    trident(tmp_path / "slides/1.h5", vectors(1)[0], grid(3), encoder=None)
    with raises("holds vectors of slides (1 file, first ", "and of tiles (1 file, first "):
        recognised(tmp_path)


def test_two_slides_of_one_name_are_refused_or_told_apart(tmp_path):
    for name in ("a/1.h5", "b/1.h5", "b/2.h5"):
        tiles(tmp_path / name)
    with raises(
        "holds 1 slide(s) more than once: '1'; '1' is in ", "a/1.h5'", "b/1.h5'", "--slide-id path"
    ):
        recognised(tmp_path)
    assert slides(tmp_path, PATH_IDS) == ["a/1", "b/1", "b/2"]


@pytest.mark.parametrize("options", [STEMS, PATH_IDS])
def test_of_the_two_files_that_clam_writes_of_a_slide_one_is_taken(tmp_path, options):
    for i in range(3):
        clam(tmp_path, str(i), vectors(4, dtype=np.float32, seed=i), grid(4))
    tensor(tmp_path / "pt_files/only.pt", vectors(4, dtype=np.float32))
    found = recognised(tmp_path, options)
    assert [file.path.name for file in found.sources] == ["0.h5", "1.h5", "2.h5", "only.pt"]
    assert "left out: 3 .pt, the .h5 of the same slide has the same vectors" in found.notes


def test_a_tensor_with_other_vectors_is_no_copy(tmp_path):
    clam(tmp_path, "1", vectors(4, dtype=np.float32), grid(4))
    for other in (
        vectors(4, dtype=np.float32, seed=1),
        vectors(3, dtype=np.float32),
        vectors(4, 9),
    ):
        tensor(tmp_path / "pt_files/1.pt", other)
        with raises("more than once: '1'", "different encoders or magnifications"):
            recognised(tmp_path)


def test_slides_without_tiles_are_told(tmp_path):
    for i in range(5):
        tiles(tmp_path / f"{i}.h5", n=0 if i else 3)
    assert recognised(tmp_path).notes[1] == "4 slides have no tiles: '1', '2', '3', ..."


# coordinates


@pytest.fixture
def without_coordinates(tmp_path):
    for slide in ("1", "2", "3"):
        tensor(tmp_path / f"features/{slide}.pt", vectors(3))
    return tmp_path / "features"


def test_coordinates_are_joined_by_slide(tmp_path, without_coordinates):
    for slide in ("2", "3", "4", "5"):
        trident_patches(tmp_path / "patches", slide, grid(3) + int(slide))
    found = recognised(without_coordinates, coordinates=tmp_path / "patches")
    assert found.notes[1:] == [
        "coordinates joined to 2 slides",
        "1 slide without coordinates: '1'",
        "2 slides with coordinates but no vectors: '4', '5'",
    ]
    none, two, _ = found.sources
    assert none.read(0, 3).samples.column_names == ["tile"]
    rows = two.read(1, 3)
    assert np.array_equal(rows.vectors, vectors(3)[1:])
    assert rows.samples.to_pydict() == {
        "tile": [1, 2],
        "x": [514.0, 2.0],
        "y": [2.0, 514.0],
        "coord_unit": ["px", "px"],
        "tile_size": [512.0, 512.0],
    }
    assert two.attributes["target_magnification"] == 20
    assert two.attributes["coordinates"] == str(tmp_path / "patches/2_patches.h5")
    assert two.read(0, 0).samples.schema == rows.samples.schema


def test_coordinates_below_the_source_are_joined_too(tmp_path, without_coordinates):
    clam_patches(tmp_path / "features/patches", "1", grid(3))
    clam_patches(tmp_path / "features/patches", "2", grid(3), level=0, downsample=(1.0, 1.0))
    found = recognised(without_coordinates)
    assert found.notes[1] == "coordinates joined to 2 slides"
    sizes = [source.read(0, 1).samples["tile_size"][0].as_py() for source in found.sources[:2]]
    assert sizes == [1024.0, 256.0]
    trident_patches(tmp_path / "given", "1", grid(3))
    found = recognised(without_coordinates, coordinates=tmp_path / "given")
    assert found.sources[0].read(0, 1).samples["tile_size"].to_pylist() == [512.0]
    assert found.notes[1] == "coordinates joined to 2 slides"


def test_of_several_tilings_the_one_that_fits_is_taken(tmp_path, without_coordinates):
    trident_patches(tmp_path / "patches/10x", "1", grid(2), patch_size_level0=1024)
    trident_patches(tmp_path / "patches/20x", "1", grid(3))
    found = recognised(without_coordinates, coordinates=tmp_path / "patches")
    assert found.sources[0].read(0, 1).samples["tile_size"].to_pylist() == [512.0]
    trident_patches(tmp_path / "patches/5x", "1", grid(3))
    with raises("1.pt has 3 vectors, and its slide has coordinates in 3 files: 2 in ", "3 in "):
        recognised(without_coordinates, coordinates=tmp_path / "patches")


def test_coordinates_of_another_number_are_refused(tmp_path, without_coordinates):
    path = trident_patches(tmp_path / "patches", "1", grid(4))
    with raises("1.pt has 3 vectors, but ", "1_patches.h5 has 4 coordinates", "--coordinates"):
        recognised(without_coordinates, coordinates=path)


def test_coordinates_are_not_joined_to_vectors_that_have_their_own(tmp_path):
    tiles(tmp_path / "features/1.h5")
    trident_patches(tmp_path / "patches", "1", grid(9))
    found = recognised(tmp_path)
    assert found.notes == ["1 file of TRIDENT: tiles, encoder 'uni_v2', 512 px of level 0"]
    assert "coordinates" not in found.sources[0].attributes


def test_a_size_is_not_taken_from_other_coordinates(tmp_path):
    clam(tmp_path, "1", vectors(3, dtype=np.float32), grid(3))
    clam_patches(tmp_path / "patches", "1", grid(3) + 1)
    (source,) = recognised(tmp_path / "h5_files", coordinates=tmp_path / "patches").sources
    assert source.read(0, 3).samples["tile_size"].null_count == 3


def test_a_place_without_coordinates(tmp_path, without_coordinates):
    with raises("features holds no coordinates; they are read from the patches of TRIDENT"):
        recognised(without_coordinates, coordinates=without_coordinates)


def numbered(*numbers):
    """A slide whose vectors are those of some of the tiles that its coordinates number."""
    samples = pa.table({"tile": range(len(numbers)), "tile_index": pa.array(numbers, pa.int32())})

    def read(start, stop):
        return Rows(samples.slice(start, stop - start), vectors(len(numbers))[start:stop])

    return SourceFile(Path("s.npz"), "any", "tile", "s", len(numbers), 8, "float16", 1, 1, read)


def places(*numbers):
    n = len(numbers)
    table = {"x": [10.0 * i for i in numbers], "y": [0.0] * n, "coord_unit": ["px"] * n}
    table |= {"tile_size": [5.0] * n, "tile_index": numbers}
    return Coordinates(Path("s.h5"), "any", "s", n, lambda: pa.table(table))


def test_tiles_that_are_numbered_are_found_by_number():
    (source,), _ = join_coordinates([numbered(7, 3, 4)], [places(3, 4, 5, 7)], [])
    assert source.read(0, 3).samples["x"].to_pylist() == [70.0, 30.0, 40.0]
    assert source.read(1, 2).samples["x"].to_pylist() == [30.0]
    assert "tile_index" not in source.read(0, 0).samples.column_names
    (source,), _ = join_coordinates([numbered(7, 3, 9)], [places(3, 4, 5, 7)], [])
    with raises("s.h5 has no tile of number 9, which s.npz has a vector of (1 such tiles)"):
        source.read(0, 3)
    with raises("s.npz has 3 vectors, but s.h5 has 2 coordinates"):
        join_coordinates([numbered(7, 3, 9)], [places(3, 7)], [])
