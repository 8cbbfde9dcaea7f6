"""Cells that stand for a missing value: one rule for text and numbers, in every kind of table."""

import openpyxl
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
from by_slide import write
from hypothesis import given, settings
from hypothesis import strategies as st
from mistakes import raises
from typer.testing import CliRunner

import croma_sql
from croma_sql.alike import alike, alike_told
from croma_sql.cli.app import app
from croma_sql.importers.missing import MISSING, Missing
from croma_sql.importers.tables import read_cells

SPELLINGS = ["NA", "nan", "NaN", "None", "<NA>", "N/A", "#N/A", "NULL", "null", "n/a", " NA "]
UNCLEAR = ["-", ".", "unknown", "Unknown", "--", "?", "[Not Available]"]
KEEPS = "--text COLUMN keeps the cells of a column as they are written"


def rows(cell, n=12):
    """Write a clinical table of text, whole numbers and numbers, with cells that are missing."""
    return {
        "slide": [f"P{i:02d}" for i in range(n)],
        "site": [cell if i in (4, 9) else ["Bern", "Graz", "Lund"][i % 3] for i in range(n)],
        "age": [cell if i in (2, 9) else str(40 + i) for i in range(n)],
        "mpp": [cell if i == 3 else f"{0.25 + 0.001 * i:.3f}" for i in range(n)],
    }


def written(folder, kind, columns):
    """Write a table as a kind of file, or give it as a frame; text stays text."""
    path = folder / f"clin.{kind}"
    frame = pl.DataFrame(columns)
    if kind in ("csv", "tsv"):
        frame.write_csv(path, separator="," if kind == "csv" else "\t")
    elif kind == "xlsx":
        book = openpyxl.Workbook()
        for row in [frame.columns, *frame.rows()]:
            book.active.append([float(x) if x.replace(".", "", 1).isdigit() else x for x in row])
        book.save(path)
    elif kind == "parquet":
        frame.write_parquet(path)
    elif kind == "feather":
        pa.feather.write_feather(frame.to_arrow().cast(_text(frame)), path)
    elif kind == "categories":
        return frame.with_columns(pl.col("site").cast(pl.Categorical))
    else:
        return frame.to_pandas() if kind == "pandas" else frame
    return path


def _text(frame):
    return pa.schema({name: pa.string() for name in frame.columns})


KINDS = ["csv", "tsv", "xlsx", "parquet", "feather", "polars", "pandas", "categories"]


@pytest.mark.parametrize("cell", SPELLINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_value_is_one_in_every_table(tmp_path, kind, cell):
    cells = read_cells(written(tmp_path, kind, rows(cell)), ("slide",))
    table = pl.DataFrame(cells.table)
    gone = {"site": [4, 9], "age": [2, 9], "mpp": [3]}
    assert {name: table[name].is_null().arg_true().to_list() for name in gone} == gone
    numbers = kind in ("csv", "tsv", "xlsx")
    assert table["age"].dtype == (pl.Int64 if numbers and kind != "xlsx" else table["age"].dtype)
    assert table["age"].dtype.is_numeric() == table["mpp"].dtype.is_numeric() == numbers
    assert [(one.column, one.cell, one.n, one.rows) for one in cells.found] == [
        ("site", cell.strip(), 2, 12), ("age", cell.strip(), 2, 12), ("mpp", cell.strip(), 1, 12),
    ]  # fmt: skip


@pytest.mark.parametrize("cell", UNCLEAR)
@pytest.mark.parametrize("kind", KINDS)
def test_an_unclear_cell_is_text_until_it_is_named(tmp_path, kind, cell):
    source = written(tmp_path, kind, rows(cell))
    cells = read_cells(source, ("slide",))
    assert cells.table.column("site").null_count == cells.table.column("age").null_count == 0
    odd = "no number" if kind in ("csv", "tsv", "xlsx") else "unclear"
    assert [(one.column, one.n, one.kind) for one in cells.found] == [
        ("site", 2, "unclear"), ("age", 2, odd), ("mpp", 1, odd),
    ]  # fmt: skip
    named = read_cells(source, ("slide",), Missing([cell])).table
    assert [named.column(name).null_count for name in ("site", "age", "mpp")] == [2, 2, 1]
    if kind in ("csv", "tsv", "xlsx"):
        assert pl.DataFrame(named).schema["age"].is_numeric()


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx", "parquet", "polars"])
def test_an_empty_cell_is_missing(tmp_path, kind):
    table = read_cells(written(tmp_path, kind, rows("")), ("slide",)).table
    assert [table.column(name).null_count for name in ("site", "age", "mpp")] == [2, 2, 1]


def test_missing_cells_are_those_of_pandas(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("id,cell\n" + "".join(f'{i},"{cell}"\n' for i, cell in enumerate(MISSING)))
    import pandas

    assert pandas.read_csv(path)["cell"].isna().all()
    assert read_cells(path).table.column("cell").null_count == len(MISSING)


@pytest.fixture
def slides(tmp_path):
    """Vectors of the slides of the clinical table."""
    for slide in rows("")["slide"]:
        write(tmp_path / "feats", slide, 2)
    return tmp_path / "feats"


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.output.splitlines()


def test_every_import_says_what_it_read_as_missing(root, tmp_path, slides):
    table = written(tmp_path, "csv", rows("NA"))
    to = ["--to", root, "--dataset", "d"]
    assert run("import", "embeddings", slides, *to, "--encoder", "e", "--samples", table)[3:] == [
        f"{table}, matched on slide with slide_id: 12 of 12 slides",
        "column 'site': 'NA' in 2 of 12 rows read as missing",
        "column 'age': 'NA' in 2 of 12 rows read as missing",
        "column 'mpp': 'NA' in 1 of 12 rows read as missing",
        KEEPS,
    ]
    written(tmp_path, "csv", rows("-"))
    join = ["import", "samples", table, *to, "--on", "slide"]
    assert run(*join, "--missing", "-", "--text", "site")[2:] == [
        "column 'age': '-' in 2 of 12 rows read as missing",
        "column 'mpp': '-' in 1 of 12 rows read as missing",
        KEEPS,
    ]
    with croma_sql.connect(root) as con:
        query = "SELECT site, count(*), count(age), typeof(any_value(age)) FROM samples"
        found = con.sql(f"{query} GROUP BY site ORDER BY site").fetchall()
    assert found == [("-", 4, 2, "BIGINT"), ("Bern", 6, 6, "BIGINT"), ("Graz", 6, 6, "BIGINT"),
                     ("Lund", 8, 6, "BIGINT")]  # fmt: skip


def test_unclear_cells_are_said_with_the_option(root, tmp_path):
    table = written(tmp_path, "csv", rows("-"))
    done = croma_sql.import_samples(root, table, dataset="d", sample_id="slide")
    assert (done.n, done.notes) == (12, [
        "column 'site': '-' in 2 of 12 rows is text; --missing - reads it as missing",
        "column 'age': '-' in 2 of 12 rows is no number, so the column is text; --missing - reads "
        "it as missing",
        "column 'mpp': '-' in 1 of 12 rows is no number, so the column is text; --missing - reads "
        "it as missing",
    ])  # fmt: skip
    frame = pl.DataFrame({"encoder": ["a", "b", "c"], "params": ["1", "--", "NA"]})
    frame.write_csv(tmp_path / "encoders.csv")
    assert run("import", "encoders", tmp_path / "encoders.csv", "--to", root)[1:] == [
        "column 'params': 'NA' in 1 of 3 rows read as missing",
        KEEPS,
        "column 'params': '--' in 1 of 3 rows is text; --missing=-- reads it as missing",
    ]
    again = run("import", "encoders", tmp_path / "encoders.csv", "--to", root, "--missing=--")
    assert (
        again[1] == "column 'params': '--' in 1 of 3 rows and 'NA' in 1 of 3 rows read as missing"
    )


def test_vectors_of_a_table_with_attributes_follow_the_rule(root, tmp_path):
    frame = pl.DataFrame(
        {"sample_id": ["a", "b", "c"], "site": ["NA", "Bern", "bern"], "v": [[1.0, 2.0]] * 3}
    )
    (tmp_path / "parts").mkdir()
    frame.write_parquet(tmp_path / "parts" / "one.parquet")
    done = croma_sql.import_embeddings(root, tmp_path / "parts", encoder="e", dataset="d")
    assert list(done.notes[-3:]) == [
        "column 'site': 'NA' in 1 of 3 rows read as missing",
        KEEPS,
        "column 'site': 'Bern' and 'bern' differ only in capitals (1 and 1 rows)",
    ]
    manifest = tmp_path / "m.csv"
    frame.select("sample_id", "site").write_csv(manifest)
    whole = frame.select("sample_id", embedding="v")
    done = croma_sql.import_embeddings(root, whole, encoder="e", dataset="d", samples=manifest)
    assert done.notes[0] == "column 'site': 'NA' in 1 of 3 rows read as missing"


def test_ids_are_never_missing_but_an_empty_one_is_refused(root):
    frame = pl.DataFrame({"tile": ["NA", "null", "c"], "patient": ["NA", "p", "p"]})
    done = croma_sql.import_samples(root, frame, dataset="d", sample_id="tile")
    assert done.notes[0] == "column 'patient': 'NA' in 1 of 3 rows read as missing"
    assert done.notes[2].endswith("are an id as written; ids are never read as missing")
    with croma_sql.connect(root) as con:
        assert con.sql("SELECT * EXCLUDE dataset FROM samples ORDER BY ALL").fetchall() == [
            ("NA", None), ("c", "p"), ("null", "p"),
        ]  # fmt: skip
    with raises("column 'tile' is empty in 1 of 2 rows (first: row 2); every sample needs an id"):
        croma_sql.import_samples(root, pl.DataFrame({"tile": ["a", " "]}), dataset="d",
                                 sample_id="tile")  # fmt: skip


def test_a_column_to_keep_that_is_not_there(root):
    frame = pl.DataFrame({"sample_id": ["a"], "country": ["NA"]})
    with raises("the frame has no column 'land' to keep as text; its columns are 'sample_id', 'c"):
        croma_sql.import_samples(root, frame, dataset="d", text=["country", "land"])
    assert croma_sql.import_samples(root, frame, dataset="d", text="country").notes == []
    with croma_sql.connect(root) as con:
        assert con.sql("SELECT country FROM samples").fetchall() == [("NA",)]  # Namibia


def test_many_columns_are_said_in_short():
    frame = pl.DataFrame({f"c{i}": ["NA", "x"] for i in range(12)})
    from croma_sql.importers.missing import told

    notes = told(read_cells(frame).found)
    assert len(notes) == 12
    assert notes[10:] == ["2 more columns have such cells: 'c10', 'c11'", KEEPS]


TEXT = st.one_of(
    st.sampled_from([*SPELLINGS, *UNCLEAR, "", "007", "1.10", "1.1", "5", "1e5", "Łódź", "a "]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6),
)


@settings(max_examples=60, deadline=None)
@given(cells=st.lists(TEXT, min_size=1, max_size=8))
def test_text_loses_nothing_but_missing_cells(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("t") / "m.csv"
    frame = pl.DataFrame({"id": [f"i{i}" for i in range(len(cells))], "a": cells})
    frame.write_csv(path, quote_style="always")
    read = read_cells(path, ("id",))
    column = pl.DataFrame(read.table)["a"]
    for before, after in zip(cells, column, strict=True):
        if before.strip() in MISSING:
            assert after is None
        else:
            assert after == before if column.dtype == pl.String else float(before) == after
    listed = sum(one.n for one in read.found if one.kind == "missing")
    assert listed == sum(cell.strip() in MISSING - {""} for cell in cells)
    stay = read_cells(path, ("id",), Missing(text=["a"])).table.column("a").to_pylist()
    assert [cell or "" for cell in stay] == cells


def test_values_that_look_like_one_are_said_and_stay(root):
    scanners = ["A"] * 12 + ["A "] * 3 + ["B", "b"]
    frame = pl.DataFrame({"sample_id": [f"s{i}" for i in range(17)], "scanner": scanners})
    done = croma_sql.import_samples(root, frame, dataset="d")
    assert done.notes == [
        "column 'scanner': 'A' and 'A ' differ only in spaces (12 and 3 rows)",
        "column 'scanner': 'B' and 'b' differ only in capitals (1 and 1 rows)",
    ]
    with croma_sql.connect(root) as con:
        assert con.sql("SELECT count(DISTINCT scanner) FROM samples").fetchall() == [(4,)]


def test_alike_values_of_any_kind():
    assert alike(pa.array(["A", "B", None])) == []
    [group] = alike(pa.array(["Łódź", "Ło\u0301dz\u0301", "Łódź"]))
    assert (group.rows, group.differ) == ((2, 1), "encoded accents")
    [group] = alike(pa.array(["New  York", "new york", "New\u00a0York"]))
    assert group.differ == "spaces and capitals"
    many = pa.array([f"{c}{i}" for i in range(6) for c in "aA"])
    assert alike_told("label", many)[-1] == "label: 3 more groups of values alike"
