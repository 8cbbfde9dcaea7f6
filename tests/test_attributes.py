"""Cohort attributes: which column is matched with what, and what is said of the rest."""

import datetime

import polars as pl
import pyarrow as pa
import pytest
from mistakes import raises
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.importers.attributes import joined, match_attributes
from croma_sql.importers.spellings import respelled
from croma_sql.warehouse.data import attributes
from croma_sql.warehouse.data.attributes import join_attributes

SLIDES = [f"{i:03d}" for i in range(1, 201)]


@pytest.fixture
def cohort():
    """Slides 001 to 200, of two tiles each, of patients p1 to p100."""
    return {
        "sample_id": pa.array([f"{slide}:{tile}" for slide in SLIDES for tile in range(2)]),
        "slide_id": pa.array(SLIDES),
        "patient": pa.array([f"p{i}" for i in range(1, 101)]),
    }


def test_what_did_not_match_is_said_in_numbers(tmp_path, cohort):
    path = tmp_path / "cohort.csv"
    rows = [f"{slide},{int(slide) % 2}" for slide in SLIDES[20:]]
    rows += [f"9{i:03d},1" for i in range(4)] + ["strange,0", ",1", ",0", rows[0]]
    path.write_text("\n".join(["slide_id,label", *rows]))
    matched = match_attributes(path, cohort)
    assert matched.report == (
        f"{path}, matched on slide_id: 180 of 200 slides; 20 slides have no row: '001', '002', "
        "'003', ...; 5 rows have no slide: '9000', '9001', '9002', ...; column 'slide_id' is empty "
        "in 2 (first: row 186, 187); 1 row repeats another"
    )
    assert matched.table.to_pydict() == {
        "slide_id": SLIDES[20:],
        "label": [int(slide) % 2 for slide in SLIDES[20:]],
    }


@pytest.mark.parametrize(
    ("columns", "key", "by"),
    [
        ({"slide_id": ["001"], "patient": ["p1"]}, "slide_id", "slide_id"),
        ({"PATIENT": ["p1"], "FILENAME": ["001.h5"]}, "slide_id", "FILENAME with slide_id"),
        ({"case_id": ["p1"], "slide": ["x"]}, "patient", "case_id with patient"),
        ({"sample_id": ["001"]}, "slide_id", "sample_id with slide_id"),
        ({"sample_id": ["001:0"], "patient": ["p1"]}, "sample_id", "sample_id"),
        ({"Slide Name": ["001"]}, "slide_id", "Slide Name with slide_id"),
        ({"image_path": [r"C:\scans\001.ome.tiff"]}, "slide_id", "image_path with slide_id"),
    ],
)
def test_the_column_is_found_by_its_name(cohort, columns, key, by):
    matched = match_attributes(pl.DataFrame(columns | {"label": ["a"]}), cohort)
    assert matched.key == matched.table.column_names[0] == key
    assert matched.report.startswith(f"the frame, matched on {by}: 1 of ")
    assert matched.table.column("label").to_pylist() == ["a"]


def test_an_attribute_that_samples_have_is_a_key_too(cohort):
    known = cohort | {"scanner": pa.array(["AT2", "GT450"])}
    frame = pl.DataFrame({"scanner": ["GT450", "P1000"], "vendor": ["Leica", "3DHISTECH"]})
    assert match_attributes(frame, known).report == (
        "the frame, matched on scanner: 1 of 2 values of scanner; 1 value of scanner has no row: "
        "'AT2'; 1 row has no value of scanner: 'P1000'"
    )


def test_the_column_named_is_matched_with_what_fits_best(cohort):
    frame = pl.DataFrame({"slide_id": ["x", "y"], "id": ["p1", "002"], "label": [1, 2]})
    known = {"patient": pa.array(["p1", "p2"]), "slide_id": pa.array(["002", "001"])}
    assert match_attributes(frame, known, on="id", taken=()).key == "patient"  # of equals the first
    assert match_attributes(frame, cohort | {"id": pa.array(["p1"])}, on="id").key == "id"
    with raises("the frame has no column 'ID'", "'slide_id', 'id', 'label'", "with --on"):
        match_attributes(frame, cohort, on="ID")


def test_slides_written_as_files(cohort):
    files = ["/data/scans/001.svs", r"D:\scans\002.NDPI", "003.ome.tif", " 004 ", "005.mrxs"]
    frame = pl.DataFrame({"wsi": files, "label": range(5)})
    matched = match_attributes(frame, cohort)
    assert matched.table.column("slide_id").to_pylist() == SLIDES[:5]
    assert "; 4 are written otherwise: '/data/scans/001.svs' is '001'" in matched.report


def test_names_with_dots_are_no_files():
    known = pa.array(["TCGA-AA.1234", "slide.v2", "2021/3"])
    values = pa.array(["TCGA-AA", "slide.v3", "3", "x/slide.v2", "y/slide.v2.svs"])
    assert respelled(values, known, paths=False) == {"y/slide.v2.svs": ["slide.v2"]}


def test_slides_in_folders():
    """--slide-id path puts folders before a slide's name; cohorts rarely know them."""
    known = {"slide_id": pa.array(["a/001", "a/002", "b/002", "b/003.svs"])}
    frame = pl.DataFrame({"slide": ["001", "b/002.svs", "003"], "label": [1, 2, 3]})
    assert match_attributes(frame, known).table.column("slide_id").to_pylist() == [
        "a/001",
        "b/002",
        "b/003.svs",
    ]
    with raises("column 'slide': '002' may be 'a/002' or 'b/002'; write ids as"):
        match_attributes(pl.DataFrame({"slide": ["001", "002"]}), known)


def test_leading_zeros_stay_and_lost_ones_are_named(tmp_path, cohort):
    path = tmp_path / "cohort.csv"
    path.write_text("slide_id,block\n001,01\n002,1\n")
    table = match_attributes(path, cohort).table
    assert table.to_pydict() == {"slide_id": ["001", "002"], "block": ["01", "1"]}
    some = pl.DataFrame({"slide_id": [1, 100]})
    with raises(
        "column 'slide_id' against 'slide_id' of the samples: ",
        "'1' is '001' there: leading",
        "as text",
    ):
        match_attributes(some, cohort)
    with raises("'1' is '001' there; '2' is '002' there (and 1 more)"):
        match_attributes(pl.DataFrame({"slide": [1, 2, 3]}), cohort)
    with raises("'007' is '7' there"):
        match_attributes(pl.DataFrame({"slide": ["007"]}), {"slide_id": pa.array(["7", "8"])})
    same = {"slide_id": pa.array(["7", "007"])}
    assert match_attributes(pl.DataFrame({"slide": ["7"]}), same).table.num_rows == 1


def test_rows_of_one_id(cohort):
    frame = pl.DataFrame({"case_id": ["p1", "p1", "p2"], "label": ["a", "a", "b"]})
    matched = match_attributes(frame, cohort)
    assert matched.table.to_pydict() == {"patient": ["p1", "p2"], "label": ["a", "b"]}
    assert matched.report.endswith("; 1 row repeats another")
    differ = frame.with_columns(slide=pl.Series(["x", "y", "z"]))
    with raises(
        "1 patients have rows that differ: 'p1'; 'p1' has 'x', 'y' in column 'slide'", "--on"
    ):
        match_attributes(differ, cohort, on="case_id")
    spelled = pl.DataFrame({"slide": ["001", "001.svs"], "label": ["a", None]})
    with raises("'001' has 'a', None in column 'label'"):
        match_attributes(spelled, cohort)


def test_nothing_matches(cohort):
    frame = pl.DataFrame({"slide": ["x1", "x2"], "case_id": ["q", None], "n": [1, 2]})
    with raises(
        "the frame matches none of the samples: 'slide' has 'x1', 'x2'; 'case_id' has 'q'",
        "'sample_id' '001:0', '001:1', '002:0', ...; 'slide_id' '001', '002', '003', ...",
        "--on",
    ):
        match_attributes(frame, cohort)
    with raises("has no column that is named as ids", "only 'n'", "--on"):
        match_attributes(frame.select("n"), cohort)


def test_names_that_are_taken(cohort):
    frame = pl.DataFrame({"case_id": ["p1"], "X": [1], "tile": [1]})
    with raises("the frame: the samples have 'X', 'tile' already", "rename or remove"):
        match_attributes(frame, cohort, taken=("x", "y", "tile"))
    with raises("the samples have 'Patient' already"):
        match_attributes(pl.DataFrame({"case_id": ["p1"], "Patient": ["p2"]}), cohort, "case_id")


def test_any_frame_is_matched(cohort):
    frame = pl.DataFrame({"slide": ["001", "002"], "label": ["a", None], "v": [[0.1], [0.2]]})
    sources = (
        frame,
        frame.with_columns(label=pl.col("label").cast(pl.Categorical)),
        frame.drop("v").to_pandas(),
        frame.to_arrow(),
    )
    for source in sources:
        table = match_attributes(source, cohort).table
        assert table.to_pydict() == {"slide_id": ["001", "002"], "label": ["a", None]}


def test_attributes_join_samples_in_their_order(cohort):
    matched = match_attributes(pl.DataFrame({"slide": ["002"], "label": ["b"], "n": [3]}), cohort)
    samples = pa.table({"sample_id": ["a", "b", "c"], "slide_id": ["001", "002", "002"]})
    assert joined(samples, matched).to_pydict() == {
        **samples.to_pydict(), "label": [None, "b", "b"], "n": [None, 3, 3],
    }  # fmt: skip
    assert joined(samples.slice(0, 0), matched).column_names == [
        *samples.column_names, "label", "n",
    ]  # fmt: skip


@pytest.fixture
def warehouse(root):
    """Tiles of slides 007 and 008, with a label; and a dataset of its own."""
    samples = pl.DataFrame(
        {
            "sample_id": ["007:0", "007:1", "008:0", "s"],
            "slide_id": ["007", "007", "008", None],
            "x": [0.0, 1.0, 2.0, 3.0],
            "label": [1, 2, 3, 4],
        }
    )
    croma_sql.import_samples(root, samples, dataset="d")
    croma_sql.import_samples(root, pl.DataFrame({"sample_id": ["o"], "day": [1]}), dataset="other")
    return root


def rows(root, columns):
    with croma_sql.connect(root) as con:
        return con.sql(f"SELECT {columns} FROM samples WHERE dataset = 'd' ORDER BY x").fetchall()


def test_attributes_join_the_samples_that_are_there(warehouse, tmp_path):
    path = tmp_path / "cohort.csv"
    path.write_text("slide,site,label\n007.svs,Oslo,0.5\n009,Bergen,1\n")
    done = join_attributes(warehouse, path, dataset="d", on="slide")
    assert (done.n, done.report) == (
        4,
        f"{path}, matched on slide with slide_id: 1 of 2 slides; 1 slide has no row: '008'; 1 row "
        "has no slide: '009'; 1 is written otherwise: '007.svs' is '007'",
    )
    assert rows(warehouse, "sample_id, slide_id, label, site") == [
        ("007:0", "007", 0.5, "Oslo"),
        ("007:1", "007", 0.5, "Oslo"),
        ("008:0", "008", 3.0, None),
        ("s", None, 4.0, None),
    ]
    frame = pl.DataFrame({"site": ["Oslo"], "country": ["Norway"]})
    assert croma_sql.import_samples(warehouse, frame, dataset="d", on="site") == 4
    assert rows(warehouse, "country") == [("Norway",), ("Norway",), (None,), (None,)]
    assert croma_sql.check(warehouse) == []


def test_joining_is_the_same_in_any_batches(warehouse, monkeypatch):
    frame = pl.DataFrame({"sample_id": ["s", "007:1"], "n": [1, None], "label": [None, 9]})
    monkeypatch.setattr(attributes, "BATCH_ROWS", 1)
    join_attributes(warehouse, frame, dataset="d")
    assert rows(warehouse, "n, label") == [(None, 1), (None, 9), (None, 3), (1, None)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"X": [1.0]}, "the samples have 'X' already"),
        ({"Label": [1]}, "columns 'label', 'Label' have one name in SQL"),
        ({"label": ["a"]}, "column 'label' is string, but the samples have it already as int64"),
        ({"dataset": ["a"]}, "'dataset' is a name that the warehouse uses itself"),
        ({"day": [datetime.date(2024, 1, 2)]}, "'day' is date32.* but int64 in dataset 'other'"),
    ],
)
def test_attributes_that_do_not_fit_are_refused_and_nothing_is_written(warehouse, columns, message):
    before = {path: path.read_bytes() for path in warehouse.rglob("*.parquet")}
    with pytest.raises(croma_sql.CromaSqlError, match=message):
        join_attributes(warehouse, pl.DataFrame({"slide_id": ["007"], **columns}), dataset="d")
    with raises("no samples of dataset 'e', only of 'd', 'other'"):
        join_attributes(warehouse, pl.DataFrame({"slide_id": ["007"]}), dataset="e")
    assert {path: path.read_bytes() for path in warehouse.rglob("*.parquet")} == before


def test_samples_whose_ids_have_lost_their_zeros_do_not_replace_those_of_vectors(root):
    tiles = pl.DataFrame({"sample_id": ["007", "008"], "embedding": [[1.0, 2.0], [2.0, 1.0]]})
    croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", samples=tiles)
    with raises(
        "2 vectors of encoder 'e' would lose their sample", "'007' is '7' there", "leading zeros"
    ):
        croma_sql.import_samples(root, pl.DataFrame({"sample_id": [7, 8]}), dataset="d")
    croma_sql.import_samples(root, pl.DataFrame({"sample_id": [17, 18]}), dataset="e")
    padded = tiles.with_columns(sample_id=pl.Series(["017", "018"]))
    with raises("2 of 2 vectors have no sample in dataset 'e'", "'017' is '17' there"):
        croma_sql.import_embeddings(root, padded, encoder="e", dataset="e")


def test_attributes_are_joined_on_the_command_line(warehouse, tmp_path):
    path = tmp_path / "cohort.tsv"
    path.write_text("slide\tsite\n007\tOslo\n008\tBergen\n")
    options = ["--to", str(warehouse), "--dataset", "d", "--on", "slide"]
    done = CliRunner().invoke(app, ["import", "samples", str(path), *options])
    assert done.output == (
        f"attributes of 4 samples in dataset 'd' of {warehouse}\n"
        f"{path}, matched on slide with slide_id: 2 of 2 slides\n"
    )
    assert rows(warehouse, "site") == [("Oslo",), ("Oslo",), ("Bergen",), (None,)]
