"""Folders of croma: what its own calls wrote (writers/croma), and manifests that do not fit."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mistakes import cut_short, raises
from numpy_files import npy, objects

import croma_sql
from croma_sql.importers.formats.manifests import fingerprints
from croma_sql.importers.listing import Options
from croma_sql.importers.recognise import recognised

WRITTEN = Path(__file__).parent / "writers" / "croma"
COLUMNS = ["sample_id", "image_path", "label", "confounder", "group_id"]


@pytest.fixture
def tileset(tmp_path):
    """Copy the tileset, to spoil it."""
    return Path(shutil.copytree(WRITTEN, tmp_path / "tileset"))


def one(source, **given):
    (found,) = recognised(source, Options(**given)).sources
    return found, found.read(0, found.n)


def vectors(n=3):
    return (1 + np.arange(4 * n).reshape(n, 4) / 8).astype(np.float32)


@pytest.mark.parametrize("source", [WRITTEN, WRITTEN / "Mascaret.npy"])
def test_rows_of_the_matrix_are_rows_of_the_manifest(source):
    found, rows = one(source)
    assert (found.format, found.level, found.slide_id) == ("croma", "sample", None)
    assert (found.n, found.d, found.dtype) == (3, 4, "float32")
    np.testing.assert_array_equal(rows.vectors, vectors())
    assert rows.samples.to_pylist() == [
        dict(zip(COLUMNS, cells, strict=True))
        for cells in (
            ("007", "tiles/007.png", "1", "RUMC", "case.1"),
            ("008", "tiles/008.png", "0", "NA", "case.1"),
            ("s-9.a", 'tiles/"s-9",\n a.png', "0", "RUMC", "case-2"),
        )
    ]
    part = found.read(1, 3)
    np.testing.assert_array_equal(part.vectors, rows.vectors[1:])
    assert part.samples.equals(rows.samples.slice(1))
    about = found.attributes
    assert (about["model"], about["checkpoint_revision"]) == ("Mascaret", "a" * 40)
    assert json.loads(about["extraction_contract"])["model_id"] == "owner/model"


def test_a_change_of_the_manifest_is_a_change_of_the_source(tileset):
    before, _ = one(tileset)
    manifest = tileset / "manifest.csv"
    manifest.write_text(manifest.read_text().replace("case-2", "case-22"))
    (tileset / "Mascaret.npy.json").unlink()
    after, rows = one(tileset)
    assert after.size == before.size + 1
    assert rows.samples.column("group_id").to_pylist()[-1] == "case-22"


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_manifests_as_spreadsheets_save_them(tileset, separator, end, bom):
    (tileset / "Mascaret.npy.json").unlink()
    rows = [["sample_id", "label", "site"], ["007", "1", '"a\nb"'], ["8", "0", "ü"], ["9", "0", ""]]
    text = end.join(separator.join(row) for row in rows) + end
    (tileset / "manifest.csv").write_bytes((bom + text).encode())
    _, read = one(tileset)
    assert read.samples.to_pydict() == {
        "sample_id": ["007", "8", "9"],
        "label": ["1", "0", "0"],
        "site": ["a\nb", "ü", None],
    }


def test_manifests_that_do_not_fit(tileset):
    manifest, matrix = tileset / "manifest.csv", tileset / "Mascaret.npy"
    whole, header = manifest.read_text(), ",".join(COLUMNS)
    for rows, said in (
        (2, f"{matrix} has 3 vectors, but {manifest} has 2 rows"),
        (4, f"{matrix} has 3 vectors, but {manifest} has 4 rows"),
    ):
        lines = [f"s{i},{i}.png,a,b,g" for i in range(rows)]
        manifest.write_text("\n".join([header, *lines]))
        with raises(said, "not of one extraction"):
            recognised(tileset)
    manifest.write_text("\n".join([header, "s,0.png,a,b,g", "s,1.png,a,b,g", "t,2.png,a,b,g"]))
    with raises(f"{manifest} has 1 sample_id(s) in more than one row: 's'"):
        recognised(tileset)
    manifest.write_text("\n".join([header, "s,0.png,a,b,g", ",1.png,a,b,g", "t,2.png,a,b,g"]))
    with raises(f"{manifest} has no sample_id in row(s) 2"):
        recognised(tileset)
    manifest.write_text(whole.replace("sample_id", "id"))
    with raises(f"{matrix} holds an array of shape (3, 4), and {manifest} the columns 'id'"):
        recognised(tileset)
    manifest.write_text(whole.replace("case-2", "case-3"))
    with raises(f"{manifest} is not the manifest of {matrix}", "another fingerprint (d1d5c05c0bb9"):
        recognised(tileset)
    (tileset / "Mascaret.npy.json").unlink()
    assert one(tileset)[0].n == 3
    manifest.write_text(whole.replace("sample_id", "id"))
    with raises(
        f"{matrix}: its rows seem to be those of {manifest}, which has no column 'sample_id'"
    ):
        recognised(tileset)
    manifest.unlink()
    with raises(f"{matrix}: the manifest it was made of, manifest.csv, is not beside it"):
        recognised(tileset, Options(as_format="croma"))


def test_sidecars_of_another_matrix(tileset):
    sidecar, matrix = tileset / "Mascaret.npy.json", tileset / "Mascaret.npy"
    about = json.loads(sidecar.read_text())
    for said in ({"output_shape": [3, 8]}, {"output_dtype": "float16"}):
        sidecar.write_text(json.dumps(about | said))
        with raises(f"{matrix} holds [3, 4] of float32, but {sidecar} says", "extract again"):
            recognised(tileset)
    before = {
        "n_samples": 3,
        "embedding_dim": 4,
        "extract": "precomputed",
        "mixed_precision": False,
    }
    older = before | {"manifest_fingerprint": about["manifest_fingerprint"], "model_id": "m"}
    sidecar.write_text(json.dumps(older))
    assert one(tileset)[0].attributes["model_id"] == "m"
    sidecar.write_text(json.dumps(older | {"n_samples": 4}))
    with raises(f"{sidecar} says [4, 4]"):
        recognised(tileset)


def test_several_models_of_one_folder(tileset):
    np.save(tileset / "Phaet.npy", np.ones((3, 2)))
    with raises(f"{tileset} holds 2 models: 'Mascaret.npy', 'Phaet.npy'", "giving the .npy file"):
        recognised(tileset)
    source, _ = one(tileset / "Phaet.npy")
    assert (source.d, source.dtype) == (2, "float64")
    assert one(tileset / "Mascaret.npy")[0].d == 4


def test_damaged_matrices(tileset):
    matrix, whole = tileset / "Mascaret.npy", (tileset / "Mascaret.npy").read_bytes()
    for content, said in (
        (objects(), f"{matrix} holds Python objects"),
        (whole[:-4], f"{matrix} is cut short or damaged: its header says shape (3, 4) of float32"),
        (whole[:30], f"{matrix} cannot be read"),
        (b"text", f"{matrix} cannot be read"),
        (whole.replace(b"(3, 4)", b"(3, 4("), f"{matrix} cannot be read"),
        (npy(np.ones((3, 4))), f"{matrix} holds [3, 4] of float64, but"),
        (npy(np.ones(3)), f"{matrix} holds an array of shape (3,)"),
    ):
        matrix.write_bytes(content)
        with raises(said):
            recognised(tileset)
    (tileset / "Mascaret.npy.json").rename(tileset / "aside.json")
    matrix.write_bytes(npy(np.array([["a"]] * 3)))
    with raises(f"{matrix} is of dtype <U1; expected float16"):
        recognised(tileset)
    matrix.write_bytes(whole)
    source, _ = one(tileset)
    cut_short(matrix)
    with raises(str(matrix), "cut short"):
        source.read(0, 3)


def test_fingerprints_are_those_of_the_scripts():
    """The first digest stands in croma's tests (tests/test_embedding_artifacts.py)."""
    cells = [["s0", "s1"], ["0.png", "1.png"], ["A", "B"], ["X", "Y"], ["g0", "g1"]]
    manifest = pa.table(dict(zip(COLUMNS, cells, strict=True)))
    expected = "a0f6ad0283bf29e08eff11bb730ca1e790f6cb74faf825d195631a0a44ac989b"
    assert fingerprints(manifest) == {expected}
    assert fingerprints(manifest.drop_columns("group_id")) == set()


@pytest.mark.parametrize(
    "cells",
    [
        ["007", "8", "-1"], ["1.10", "2", "1e3"], ["1", "", "3"], ["True", "false", "TRUE"],
        ["True", "", "FALSE"], ["NA", "a ", "None"], ["", "NA", "null"], ["1_0", "2", "3"],
        ["0.1", "100000000000000000000", "3"], ["a", "1", "True"], ["1.0", "2.0", "3.0"],
    ],
)  # fmt: skip
def test_fingerprints_of_cells_that_pandas_reads_otherwise(tmp_path, cells):
    """As croma's input_fingerprint does: str() of what pandas.read_csv has made of a cell."""
    path = tmp_path / "manifest.csv"
    rows = [f"s{i},0.png,{cell},c,g" for i, cell in enumerate(cells)]
    path.write_text("\n".join([",".join(COLUMNS), *rows]))
    frame = pd.read_csv(path)[["sample_id", "label", "confounder", "group_id", "image_path"]]
    as_pandas = [[str(value).strip() for value in row] for row in frame.itertuples(index=False)]
    written = dict.fromkeys(COLUMNS, ["x"] * 3) | {"label": [row[1] for row in as_pandas]}
    expected = fingerprints(pa.table(written))
    given = dict.fromkeys(COLUMNS, ["x"] * 3) | {"label": [cell or None for cell in cells]}
    assert fingerprints(pa.table(given)) & expected


def test_the_file_of_a_model_has_its_ids_beside_it(tmp_path):
    croma_sql.import_embeddings(tmp_path, WRITTEN / "Mascaret.npy", encoder="m", dataset="d")
    with croma_sql.connect(tmp_path) as con:
        found = con.sql("SELECT sample_id, label FROM samples").fetchall()
    assert found == [("007", "1"), ("008", "0"), ("s-9.a", "0")]


def test_the_manifest_may_be_given_too(tmp_path):
    croma_sql.import_embeddings(
        tmp_path, WRITTEN, encoder="m", dataset="d", samples=WRITTEN / "manifest.csv"
    )
    with croma_sql.connect(tmp_path) as con:
        found = con.sql("SELECT sample_id, label FROM samples").fetchall()
    assert found == [("007", "1"), ("008", "0"), ("s-9.a", "0")]
