"""PathoROB: what its own call wrote (writers/pathorob), its metadata, and what can be wrong."""

import shutil
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from mistakes import cut_short, raises
from numpy_files import archive, bomb, forge, npy, objects

from croma_sql.importers.listing import Options
from croma_sql.importers.recognise import recognised

WRITTEN = Path(__file__).parent / "writers" / "pathorob"
FEATURES, METADATA = WRITTEN / "features", WRITTEN / "metadata" / "tcga_2x2.csv"
COLUMNS = ["subset", "slide_id", "patch_id", "biological_class", "medical_center"]
HEADER = ",".join(COLUMNS)


@pytest.fixture
def dataset(tmp_path):
    """Make the metadata and one archive of two patches, both to be spoilt."""
    folder = tmp_path / "model" / "dataset"
    folder.mkdir(parents=True)
    archive(folder / "A_B.npz", {"a-1": np.ones(3), "b-1": np.arange(3.0)})
    (tmp_path / "m.csv").write_text(f"{HEADER}\nID,a,1,x,A B\nOOD,b,1,y,A B\n")
    return folder


def read(source, *samples, **given):
    found = recognised(source, Options(samples=samples, **given))
    rows = [file.read(0, file.n) for file in found.sources]
    return found, rows


def one(folder, **given):
    """Read the archive of the fixture with the metadata of the fixture."""
    found, (rows,) = read(folder, folder.parents[1] / "m.csv", **given)
    return found, rows


def test_patches_of_two_centres():
    found, (asterand, hopkins) = read(FEATURES, METADATA)
    assert found.notes == ["2 files of PathoROB: samples"]
    for file in found.sources:
        assert (file.format, file.level, file.slide_id) == ("pathorob", "sample", None)
        assert (file.n, file.d, file.dtype) == (2, 3, "float32")
        assert file.attributes == {"metadata": METADATA.name}
    dx1 = "TCGA-E9-A1R5-01Z-00-DX1"
    assert hopkins.samples.to_pylist() == [
        {
            "sample_id": f"{dx1}-0_0_521",
            "slide_id": dx1,
            "patch_id": "0_0_521",
            "biological_class": "breast",
            "medical_center": "Johns Hopkins",
            "subsets": ["BRCA-LUAD", "BRCA-COAD"],
        },
        {
            "sample_id": "TCGA-44-2655-01Z-00-DX1-007",
            "slide_id": "TCGA-44-2655-01Z-00-DX1",
            "patch_id": "007",
            "biological_class": "lung",
            "medical_center": "Johns Hopkins",
            "subsets": ["BRCA-LUAD"],
        },
    ]
    assert asterand.samples.column("sample_id").to_pylist()[1] == "002-1-2"
    assert asterand.samples.column("slide_id").to_pylist()[1] == "002"
    vectors = np.concatenate([hopkins.vectors, asterand.vectors])
    np.testing.assert_array_equal(vectors, (1 + np.arange(12).reshape(4, 3) / 8))
    part = found.sources[1].read(1, 2)
    np.testing.assert_array_equal(part.vectors, hopkins.vectors[1:])
    assert part.samples.equals(hopkins.samples.slice(1))
    assert found.sources[1].read(0, 0).vectors.shape == (0, 3)


def test_metadata_beside_the_archives_is_found_and_otherwise_asked_for(tmp_path):
    assert len(recognised(WRITTEN).sources) == 2
    with raises("Asterand.npz holds 2 vectors under keys such as", "--samples data/metadata/"):
        recognised(FEATURES)
    cohort = tmp_path / "cohort.csv"
    cohort.write_text("slide_id,age\n002,50\n")
    with raises("--samples data/metadata/<dataset>.csv"):
        recognised(FEATURES, Options(samples=[cohort]))


def test_metadata_that_is_not_utf8(dataset):
    metadata = dataset.parents[1] / "m.csv"
    metadata.write_bytes(f"{HEADER}\nID,a,1,x,Münster\n".encode("latin1"))
    with raises(f"{metadata} is not UTF-8"):
        one(dataset)
    with raises("--samples data/metadata/<dataset>.csv"):
        recognised(dataset.parents[1])


def test_one_subset_per_patch_is_text_and_other_columns_come_along(dataset):
    metadata = dataset.parents[1] / "m.csv"
    metadata.write_text(f"{HEADER},tss\nID,a,1,x,A B,07\nOOD,b,1,y,A B,\n")
    _, rows = one(dataset)
    assert rows.samples.select(["subset", "tss"]).to_pylist() == [
        {"subset": "ID", "tss": "07"},
        {"subset": "OOD", "tss": None},
    ]
    reduced = metadata.with_name("reduced.csv")
    reduced.write_text(f"{HEADER}\nx-AB,a,1,x,A B\n")
    _, (rows,) = read(dataset, metadata, reduced)
    assert rows.samples.column("subsets").to_pylist() == [["ID", "x-AB"], ["OOD"]]
    assert rows.samples.column("tss").to_pylist() == ["07", None]
    metadata.write_text("slide_id,patch_id,biological_class,medical_center\na,1,x,A\nb,1,y,A\n")
    _, rows = one(dataset)
    assert rows.samples.column_names == ["sample_id", *COLUMNS[1:]]


def test_vectors_and_rows_that_do_not_meet_are_counted(dataset):
    metadata = dataset.parents[1] / "m.csv"
    metadata.write_text(f"{HEADER}\nID,a,1,x,A B\nID,c,1,y,C\nID,d,1,y,C\n")
    found, rows = one(dataset)
    assert found.notes[1:] == [
        f"1 vector without a row in '{metadata}', so without attributes: 'b-1'",
        f"2 rows of '{metadata}' without a vector: 'c-1', 'd-1'",
    ]
    assert rows.samples.column("slide_id").to_pylist() == ["a", None]
    metadata.write_text(f"{HEADER}\nID,c,1,x,A B\n")
    with raises("no key of 2 vectors, such as 'a-1', is the <slide_id>-<patch_id> of a row of"):
        one(dataset)


def test_a_change_of_the_metadata_is_a_change_of_the_source(dataset):
    metadata = dataset.parents[1] / "m.csv"
    (before,) = one(dataset)[0].sources
    metadata.write_text(metadata.read_text().replace("OOD", "OUT"))
    found, rows = one(dataset)
    assert rows.samples.column("subset").to_pylist() == ["ID", "OUT"]
    assert found.sources[0].mtime_ns > before.mtime_ns


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["ID,a,1,x,A", "ID,a,1,y,A"], ["1 patches have rows that differ", "'biological_class'"]),
        (["ID,a-b,1,x,A", "ID,a,b-1,x,A"], ["differ in column 'slide_id', 'patch_id': 'a-b-1'"]),
        (["ID,a,1,x,A", "ID,,1,x,A"], ["lacks slide_id or patch_id in row(s) 2"]),
    ],
)
def test_metadata_that_contradicts_itself(dataset, rows, said):
    (dataset.parents[1] / "m.csv").write_text("\n".join([HEADER, *rows]))
    with raises("m.csv", *said):
        one(dataset)


def test_metadata_with_a_column_of_sample_ids(dataset):
    (dataset.parents[1] / "m.csv").write_text(f"{HEADER},sample_id\nID,a,1,x,A,s\n")
    with raises("m.csv has a column 'sample_id'", "rename it"):
        one(dataset)


def test_a_patch_in_two_archives(dataset):
    shutil.copy(dataset / "A_B.npz", dataset / "C.npz")
    with raises("2 patches stand in more than one archive: 'a-1', 'b-1'", "<model>/<dataset>"):
        one(dataset)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8"])
def test_vectors_however_they_are_stored(dataset, compression, dtype):
    vectors = {key: np.arange(3.0).astype(dtype) + i for i, key in enumerate(("b-1", "a-1"))}
    archive(dataset / "A_B.npz", vectors, compression)
    found, rows = one(dataset)
    assert rows.samples.column("sample_id").to_pylist() == ["b-1", "a-1"]  # as in the archive
    np.testing.assert_array_equal(rows.vectors, list(vectors.values()))
    assert found.sources[0].dtype == rows.vectors.dtype.name


def test_damaged_and_hostile_archives(dataset):
    path = dataset / "A_B.npz"
    sound = np.ones(3)
    for arrays, *said in (
        ({"a-1": sound, "b-1": np.ones(4)}, "different lengths: 1 of 2 differ", "'b-1'"),
        ({"a-1": objects(), "b-1": sound}, "array 'a-1', holds Python objects", "pickle"),
        ({"a-1": np.ones((1, 3))}, "is of no writer that is known"),
        ({"a-1": np.array(["a"])}, "is of no writer that is known"),
        ({}, "is of no writer that is known"),
    ):
        archive(path, arrays)
        with raises(str(path), *said):
            one(dataset)
    archive(path, {"a-1": sound})
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 6] = 99  # the version that is needed to unpack it
    path.write_bytes(content)
    with raises(f"{path} cannot be read", "zip file version 9.9"):
        one(dataset)
    bomb(path, "a-1", (10**8,))
    with raises(f"{path}, array 'a-1', would unpack", "bytes to 400000128"):
        one(dataset)


def test_vectors_that_are_damaged_behind_the_first(dataset):
    path = dataset / "A_B.npz"
    float16 = npy(np.ones(12, np.float16))[:-24] + bytes(24)
    for second, said in (
        (float16, "array 'b-1' is not float64 of shape (3,), as the others are"),
        (objects()[:152].ljust(152), "array 'b-1' is not float64 of shape (3,)"),
    ):
        archive(path, {"a-1": np.ones(3), "b-1": second})
        with raises(str(path), said):
            one(dataset)
    archive(path, {"a-1": np.ones(3), "b-1": npy(np.ones(300))}, zipfile.ZIP_DEFLATED)
    forge(path, 152, "b-1")  # which unpacks to more than it says
    with raises(str(path), "b-1.npy does not have the checksum"):
        one(dataset)
    archive(path, {"a-1": np.ones(3), "b-1": np.full(3, 2.0)})
    content = bytearray(path.read_bytes())
    content[content.rindex(np.full(3, 2.0).tobytes())] ^= 1
    path.write_bytes(content)
    with raises(str(path), "b-1.npy does not have the checksum"):
        one(dataset)
    cut_short(path)
    with raises(str(path), "cut short"):
        one(dataset)
    archive(path, {"a-1": np.ones(3), "b-1": np.ones(3)}, zipfile.ZIP_LZMA)
    with raises(str(path), "packed as numpy does not"):
        one(dataset)


def test_two_arrays_of_one_name(dataset):
    path = dataset / "A_B.npz"
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "w") as file:
        for _ in range(2):
            file.writestr("a-1.npy", npy(np.ones(3)))
    with raises(f"{path} holds more than one array named 'a-1'"):
        one(dataset)


def test_the_real_patches(shared, tmp_path):
    """Ids of TCGA hold dashes: 8,160 keys, one archive per centre, are told apart by metadata."""
    patches = pl.read_parquet(shared / "pathorob_metadata" / "tcga_4x4.parquet")
    patch = pl.col("sample_id").str.split("/").list.last().alias("patch_id")
    patches = patches.select(
        "subset", pl.col("group_id").alias("slide_id"), patch,
        pl.col("label").alias("biological_class"), "medical_center",
    )  # fmt: skip
    patches.write_csv(tmp_path / "tcga_4x4.csv")
    numbered = patches.with_row_index().with_columns(
        key=pl.concat_str("slide_id", "patch_id", separator="-")
    )
    for (centre,), rows in numbered.group_by("medical_center"):
        vectors = {key: np.full(2, i, np.float16) for key, i in rows.select("key", "index").rows()}
        np.savez(tmp_path / f"{centre.replace(' ', '_')}.npz", **vectors)
    found, read_rows = read(tmp_path)
    assert found.notes == ["8 files of PathoROB: samples", "left alone: 1 .csv"]
    rows = pl.concat([pl.DataFrame(rows.samples) for rows in read_rows])
    index = np.concatenate([rows.vectors[:, 0] for rows in read_rows])
    assert rows.height == 8160
    assert index.dtype == np.float16
    expected = numbered.sort("medical_center", "index").select(COLUMNS)
    assert rows.select(COLUMNS).sort(COLUMNS).equals(expected.sort(COLUMNS))
    of_key = dict(numbered.select("key", "index").rows())
    np.testing.assert_array_equal(index, [np.float16(of_key[key]) for key in rows["sample_id"]])
