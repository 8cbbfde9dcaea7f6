"""Layouts of Hugging Face, TIAToolbox, HEST and wsi-toolbox, with what is beside the vectors."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from by_slide import bring, samples, stored, table
from mistakes import raises
from slide_files import grid, plain, tensor, vectors

from croma_sql.importers.arrow_files import read_arrow
from croma_sql.importers.recognise import recognised


def assert_vectors(root, written, name, encoder="e"):
    found = stored(root, encoder)
    assert [found[name.format(i)] for i in range(len(written))] == [
        tuple(vector.tolist()) for vector in written
    ]


# Hugging Face


def frame(n=20):
    return pa.table(
        {
            "tile_id": [f"t{i:02}" for i in range(n)],
            "site": [f"S{i % 3}" for i in range(n)],
            "embedding": pa.array(list(vectors(n, dtype=np.float32)), pa.list_(pa.float32())),
        }
    )


def saved(folder, shards=1, table=None):
    """What datasets.Dataset.save_to_disk leaves."""
    folder.mkdir()
    table = frame() if table is None else table
    each = len(table) // shards
    for i in range(shards):
        path = folder / f"data-{i:05}-of-{shards:05}.arrow"
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table.slice(i * each, each), max_chunksize=7)
    (folder / "dataset_info.json").write_text(json.dumps({"features": {}}))
    (folder / "state.json").write_text(json.dumps({"_data_files": []}))
    return folder


@pytest.mark.parametrize("shards", [1, 2])
def test_streams_of_hugging_face(tmp_path, root, shards):
    imported = bring(root, saved(tmp_path / "hf", shards), sample_id="tile_id")
    assert (imported.n, imported.d, imported.dtype) == (20, 8, "float32")
    assert_vectors(root, vectors(20, dtype=np.float32), "t{:02}")
    sites = samples(root).sort("sample_id")["site"].to_list()
    assert sites == [f"S{i % 3}" for i in range(20)]


def test_one_stream_and_one_file(tmp_path, root):
    path = saved(tmp_path / "hf") / "data-00000-of-00001.arrow"
    bring(root, path, samples=path, sample_id="tile_id")
    assert_vectors(root, vectors(20, dtype=np.float32), "t{:02}")
    with pa.ipc.new_file(tmp_path / "file.arrow", frame().schema) as file:
        file.write_table(frame())
    for one in (path, tmp_path / "file.arrow"):
        assert read_arrow(one, ["embedding", "tile_id"]).equals(
            frame().select(["embedding", "tile_id"])
        )


def test_files_of_one_table_are_no_slides(tmp_path, root):
    folder = saved(tmp_path / "hf", 2)
    with raises("data-00000-of-00002.arrow is one of several files of a table", "--sample-id"):
        bring(root, folder)
    (folder / "data-00001-of-00002.arrow").unlink()
    notes = bring(root, folder, sample_id="tile_id").notes
    assert f"1 file of a table missing: {str(folder / 'data-00001-of-00002.arrow')!r}" in notes


@pytest.mark.parametrize("keep", [0, 3, 500, -8])
def test_a_stream_that_is_cut_short(tmp_path, keep):
    path = saved(tmp_path / "hf") / "data-00000-of-00001.arrow"
    path.write_bytes(path.read_bytes()[:keep])
    with raises(str(path), "cut short"):
        recognised(path)


def test_a_damaged_arrow_file_does_not_end_the_process(tmp_path):
    views = pa.array(["longer than twelve characters"] * 5, pa.string_view())
    with pa.ipc.new_file(tmp_path / "bad.arrow", pa.schema({"s": pa.string_view()})) as file:
        file.write_table(pa.table({"s": views}))
    content = bytearray((tmp_path / "bad.arrow").read_bytes())
    at = content.index(b"long", content.index(b"long") - 100)  # prefix of the first view
    content[at + 4 : at + 8] = (758198317).to_bytes(4, "little")  # its buffer
    (tmp_path / "bad.arrow").write_bytes(content)
    code = "import croma_sql; croma_sql.import_samples('W', 'bad.arrow', dataset='d')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    assert "bad.arrow is not a readable Arrow file or stream" in done.stderr


# TIAToolbox


def toolbox(folder):
    folder.mkdir()
    for i in range(3):
        left, top = grid(9 + i, 512).T
        np.save(folder / f"{i}.position.npy", np.stack([left, top, left + 256, top + 256], 1))
        np.save(folder / f"{i}.features.0.npy", vectors(9 + i, seed=i))
    (folder / "file_map.dat").write_bytes(pickle.dumps([["/wsi/CASE.svs", "0"]]))
    return folder


@pytest.mark.parametrize("only", ["", "*.features.0.npy"])
def test_positions_of_tiatoolbox_are_coordinates(tmp_path, root, only):
    folder = toolbox(tmp_path / "wsi")
    (tmp_path / "names.csv").write_text("slide_id,case\n0,A\n1,B\n2,C\n")
    imported = bring(root, folder / only, samples=tmp_path / "names.csv")
    assert (imported.n, imported.d) == (30, 8)
    assert any(
        f"{folder / 'file_map.dat'} is not read, as it is a pickle" in n for n in imported.notes
    )
    for i in range(3):
        assert_vectors(root, vectors(9 + i, seed=i), f"{i}:{{}}")
        rows = samples(root).filter(slide_id=str(i))
        assert rows.select("x", "y").to_numpy().tolist() == grid(9 + i, 512).tolist()
        assert set(rows["case"]) == {"ABC"[i]}
    assert set(samples(root)["tile_size"]) == {256.0}
    assert samples(root)["coord_unit"].null_count() == 30  # px of a resolution nobody tells


def test_positions_that_do_not_fit(tmp_path, root):
    folder = toolbox(tmp_path / "wsi")
    np.save(folder / "1.position.npy", np.zeros((4, 4)))
    with raises("1.features.0.npy has 10 vectors, but", "1.position.npy has 4 coordinates"):
        bring(root, folder)
    np.save(folder / "1.position.npy", np.zeros((10, 3)))
    with raises("1.position.npy holds an array of shape (10, 3)", "(n, 4): left, top, right"):
        bring(root, folder)


# HDF5 and PyTorch


@pytest.mark.parametrize(
    "name", ["coordinates", "coord", "locations", "positions", "xy", "centroids"]
)
def test_coordinates_under_other_names(tmp_path, root, name):
    plain(tmp_path / "h5/s.h5", features=vectors(6), **{name: grid(6)}, other=np.zeros((6, 3)))
    tensor(tmp_path / "pt/t.pt", {"features": torch.zeros(6, 8) + 0.5, name: torch.tensor(grid(6))})
    assert f"coordinates from '{name}'" in bring(root, tmp_path / "h5").notes[0]
    bring(root, tmp_path / "pt", dataset="t")
    for dataset in ("d", "t"):
        rows = samples(root, dataset)
        assert rows.select("x", "y").to_numpy().tolist() == grid(6).tolist()
        assert set(rows["coord_unit"]) == {"px"}


def test_what_is_perhaps_no_coordinates(tmp_path):
    two = {"features": vectors(6), "a": grid(6), "b": grid(6)}
    (source,) = recognised(plain(tmp_path / "s.h5", **two)).sources
    assert source.read(0, 6).samples.column_names == ["tile"]
    classes = {"features": vectors(6), "probabilities": np.full((6, 2), 0.5)}
    (source,) = recognised(plain(tmp_path / "s.h5", **classes)).sources
    assert source.read(0, 6).samples.column_names == ["tile"]
    with raises("s.h5 has 6 vectors in 'features', but 5 coordinates"):
        recognised(plain(tmp_path / "s.h5", features=vectors(6), xy=grid(5)))


def test_several_encoders_in_a_file(tmp_path, root):
    for slide in ("S0", "S1"):
        plain(
            tmp_path / f"in/{slide}.h5",
            **{
                "patches": np.zeros((5, 2, 2, 3), "u1"),
                "coordinates": grid(5),
                "uni/features": vectors(5),
                "gigapath/features": vectors(5, 12, seed=1),
                "gigapath/coordinates": grid(5) + 1,
            },
        )
    with raises("holds vectors of several encoders, 'gigapath/features', 'uni/features'. Name one"):
        bring(root, tmp_path / "in")
    bring(root, tmp_path / "in", embedding="uni/features")
    assert_vectors(root, vectors(5), "S0:{}")
    assert samples(root)["x"].to_list() == [*grid(5)[:, 0].tolist()] * 2
    bring(
        root, tmp_path / "in", encoder="g", dataset="g", prefix="g", embedding="gigapath/features"
    )
    assert samples(root, "g")["x"].to_list() == [*(grid(5)[:, 0] + 1).tolist()] * 2
    with h5py.File(tmp_path / "in/S0.h5", "a") as file:
        del file["gigapath"]
    (source,) = recognised(tmp_path / "in/S0.h5").sources
    assert source.attributes["vectors_array"] == "uni/features"


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
@pytest.mark.parametrize("kind", ["S", "text"])
def test_barcodes_are_an_attribute_that_tables_are_joined_by(tmp_path, root, shape, kind):
    codes = np.array([f"{i:03}x{i % 3:03}" for i in range(6)])
    written = codes.astype("S") if kind == "S" else codes.astype(h5py.string_dtype())
    path = plain(
        tmp_path / "SMP1.h5", embeddings=vectors(6), coords=grid(6), barcodes=written.reshape(shape)
    )
    pl.DataFrame({"barcode": codes[:5], "region": list("abcde")}).write_csv(tmp_path / "spots.csv")
    imported = bring(root, path, samples=tmp_path / "spots.csv", on="barcode")
    assert "text from 'barcodes'" in imported.notes[0]
    assert any("matched on barcode with barcodes: 5 of 6" in note for note in imported.notes)
    rows = table(root, "SELECT sample_id, barcodes, region FROM samples ORDER BY tile").rows()
    regions = [*"abcde", None]
    assert rows == [(f"SMP1:{i}", codes[i], regions[i]) for i in range(6)]


def test_text_that_is_not_of_the_tiles_is_left(tmp_path):
    path = plain(
        tmp_path / "s.h5", features=vectors(6), note=np.array([b"one"]), tile=np.array([b"t"] * 6)
    )
    (source,) = recognised(Path(path)).sources
    assert source.read(0, 6).samples.column_names == ["tile"]
