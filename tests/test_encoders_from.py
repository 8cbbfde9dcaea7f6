"""Files of several encoders in one command: named by their paths, their writers or their arrays."""

import numpy as np
import polars as pl
import pytest
from by_slide import bring, samples, stored, table, vectors
from mistakes import raises
from slide_files import grid, plain, trident
from test_slides_command import run

import croma_sql

ENCODERS = ("uni_v1", "conch_v15", "virchow")


def job(folder):
    """What TRIDENT leaves of three encoders, of the same tiles."""
    for d, encoder in enumerate(ENCODERS, 8):
        for slide in ("s1", "s2"):
            path = folder / f"20x/features_{encoder}/{slide}.h5"
            trident(path, vectors(slide + encoder, 6, d), grid(6), encoder=encoder)
    return folder


def several(root, source, how, **options):
    return croma_sql.import_embeddings(root, source, encoder_from=how, dataset="d", **options)


@pytest.mark.parametrize(
    "how",
    ["attribute", "attribute:encoder", "path:features_{encoder}", "path:20x/features_{encoder}/*"],
)
def test_trident_with_three_encoders(tmp_path, root, how):
    imported = several(root, job(tmp_path / "job"), how)
    assert (imported.n, list(imported.encoders)) == (36, sorted(ENCODERS))
    for d, encoder in enumerate(ENCODERS, 8):
        assert (imported.encoders[encoder].n, imported.encoders[encoder].d) == (12, d)
        found = stored(root, encoder)
        for slide in ("s1", "s2"):
            written = vectors(slide + encoder, 6, d)
            assert [found[f"{slide}:{i}"] for i in range(6)] == [tuple(v.tolist()) for v in written]
    assert len(samples(root)) == 12
    again = several(root, tmp_path / "job", how)
    assert [one.slides.unchanged for one in again.encoders.values()] == [2, 2, 2]
    assert run("check", root) == f"{root} is whole\n"


def test_hive_partitions(tmp_path, root):
    for d, encoder in enumerate(("uni", "gigapath"), 4):
        for dataset in ("a", "b"):
            folder = tmp_path / f"emb/encoder={encoder}/dataset={dataset}"
            folder.mkdir(parents=True)
            ids = [f"{dataset}{i}" for i in range(5)]
            matrix = vectors(encoder + dataset, 5, d, np.float32)
            frame = {
                "sample_id": ids,
                "embedding": pl.Series(matrix, dtype=pl.Array(pl.Float32, d)),
            }
            pl.DataFrame(frame).write_parquet(folder / "part-0.parquet")
    several(root, tmp_path / "emb", "path:encoder")
    for d, encoder in enumerate(("uni", "gigapath"), 4):
        assert stored(root, encoder)["b3"] == tuple(
            vectors(encoder + "b", 5, d, np.float32)[3].tolist()
        )
    assert table(root, "SELECT count(*) FROM samples").item() == 10


def test_encoders_in_one_file(tmp_path, root):
    for slide in ("s1", "s2"):
        arrays = {f"{e}/features": vectors(slide + e, 5, d) for e, d in (("uni", 8), ("giga", 9))}
        plain(tmp_path / f"in/{slide}.h5", coordinates=grid(5), **arrays)
    with raises("or import all: --encoder-from 'array:{encoder}/features'"):
        bring(root, tmp_path / "in")
    several(root, tmp_path / "in", "array:{encoder}/features")
    assert stored(root, "giga")["s2:4"] == tuple(vectors("s2giga", 5, 9)[4].tolist())
    assert stored(root, "uni")["s2:4"] == tuple(vectors("s2uni", 5, 8)[4].tolist())
    assert samples(root)["x"].to_list() == grid(5)[:, 0].tolist() * 2


def test_one_encoder_that_fails_loses_no_other(tmp_path, root):
    folder = job(tmp_path / "job")
    (folder / "20x/features_uni_v1/s2.h5").write_bytes(b"damaged")
    to = "--to", root, "--dataset", "d", "--encoder-from", "path:features_{encoder}"
    said = run("import", "embeddings", folder, *to, code=1)
    assert f"12 vectors of 9 float16 values as encoder 'conch_v15', dataset 'd' of {root}" in said
    assert (
        "2 encoders imported, 1 not: encoder 'uni_v1': " in said and "s2.h5 is not a whole" in said
    )
    assert len(stored(root, "virchow")) == 12 and not stored(root, "uni_v1")
    trident(folder / "20x/features_uni_v1/s2.h5", vectors("new", 6), grid(6), encoder="uni_v1")
    said = run("import", "embeddings", folder, *to)
    assert said.count("2 sources: 2 unchanged") == 2 and said.count("2 sources: 2 new") == 1


def test_what_names_no_encoder(tmp_path, root):
    folder = job(tmp_path / "job")
    with raises("no file of vectors has an encoder by 'path:encoder', of 6 files. Say path:NAME"):
        several(root, folder, "path:encoder")
    with raises("encoders cannot be named from 'encoder'. Say path:NAME for folders"):
        several(root, folder, "encoder")
    with raises("no HDF5 file has an array like '{encoder}/features'"):
        several(root, folder, "array:{encoder}/features")
    trident(folder / "20x/features_x/s1.h5", vectors("s1", 6), grid(6), encoder="None")
    with raises("3 encoders imported, 1 not: 1 file of no encoder: ", "features_x/s1.h5"):
        several(root, folder, "attribute")
    for given in ({}, {"encoder": "a", "encoder_from": "attribute"}):
        with raises("give the name of the encoder with --encoder (Python: encoder=), or where"):
            croma_sql.import_embeddings(root, folder, dataset="d", **given)
