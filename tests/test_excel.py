"""Excel workbooks: cells as they are displayed, and what Excel does to ids."""

import datetime
import re
import zipfile

import pyarrow as pa
import pytest
from mistakes import cut_short, raises
from openpyxl import Workbook, load_workbook

import croma_sql
from croma_sql.importers.attributes import match_attributes
from croma_sql.importers.tables import read_table

IDS = ("sample_id",)


@pytest.fixture
def write(tmp_path):
    """Write rows into sheets of a workbook, under formats by cell."""

    def write(formats=(), merged=(), **sheets):
        book = Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
            for cells in merged:
                sheet.merge_cells(cells)
            for cell, form in dict(formats).items():
                sheet[cell].number_format = form
        book.save(tmp_path / "cohort.xlsx")
        return tmp_path / "cohort.xlsx"

    return write


def test_cells_keep_what_they_are(root, write):
    day, moment = datetime.datetime(2024, 2, 3), datetime.datetime(2024, 2, 3, 4, 5)
    path = write(
        cohort=[
            [],
            ["sample_id", "n", "score", "known", "day", "scanned", "site", None, "mixed", "some"],
            ["007", 1, 0.5, True, day, moment, "NA", None, 1, "NA"],
            [None, ""],
            ["1e5", 2, 2, False, day, day, None, None, "b", 3],
            ["a b", 3, None, None, None, None, "Łódź", None, day, "#N/A"],
        ]
    )
    assert croma_sql.import_samples(root, path, dataset="d") == 3
    relation = croma_sql.connect(root).sql("SELECT * EXCLUDE (dataset) FROM samples")
    assert dict(zip(relation.columns, map(str, relation.types), strict=True)) == {
        "sample_id": "VARCHAR", "n": "BIGINT", "score": "DOUBLE", "known": "BOOLEAN", "day": "DATE",
        "scanned": "TIMESTAMP", "site": "VARCHAR", "mixed": "VARCHAR", "some": "BIGINT",
    }  # fmt: skip
    assert relation.fetchall() == [
        ("007", 1, 0.5, True, day.date(), moment, "NA", "1", None),
        ("1e5", 2, 2.0, False, day.date(), day, None, "b", 3),
        ("a b", 3, None, None, None, None, "Łódź", "2024-02-03", None),
    ]


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (7, "000", "007"),
        (1234, "000", "1234"),
        (7, '"S-"000', "S-007"),
        (12345, "00-000", "12-345"),
        (123456, r"00\/000", "123/456"),
        (7, "000;-000;0", "007"),
        (7, "[Red]000", "007"),
        (7, "General", "7"),
        (7, "0", "7"),
        (7, "0.00", "7"),
        (7.0, "#,##0", "7"),
        (12345678, "0.00E+00", "12345678"),
        (7.25, "General", "7.25"),
        ("007", "General", "007"),
        ("007", "@", "007"),
        (True, "General", "TRUE"),
    ],
)
def test_ids_are_text_as_displayed(write, value, form, shown):
    path = write({"A2": form}, cohort=[["sample_id", "n"], [value, 1]])
    assert read_table(path, IDS).to_pylist() == [{"sample_id": shown, "n": 1}]


def test_numbers_under_a_format_of_zeros_are_ids_in_any_column(write):
    path = write({"B2": "000"}, cohort=[["sample_id", "block"], ["a", 7], ["b", 1200]])
    assert read_table(path, IDS).column("block").to_pylist() == ["007", "1200"]


def test_merged_cells_have_one_value(write):
    path = write(
        merged=["A1:A2", "B1:B2", "B3:B4"],
        cohort=[["sample_id", "patient"], [], ["a", "p1"], ["b"], ["c", "p2"]],
    )
    assert read_table(path, IDS).column("patient").to_pylist() == ["p1", "p1", "p2"]


def test_the_sheet_with_ids_is_read(write):
    notes, cohort = [["about"], ["made in March"]], [["sample_id"], ["a"]]
    assert read_table(write(empty=[], notes=notes, cohort=cohort), IDS).to_pylist() == [
        {"sample_id": "a"}
    ]
    assert read_table(write(cohort=cohort, old=cohort), IDS).num_rows == 1
    assert read_table(write(notes=notes, cohort=cohort)).column_names == ["about"]
    with raises("cohort.xlsx has a column of ids in several sheets: 'one', 'two'", "to the front"):
        read_table(write(notes=notes, one=cohort, two=cohort), IDS)
    hidden = write(notes=notes, cohort=cohort)
    book = load_workbook(hidden)
    book["notes"].sheet_state = "hidden"
    book.save(hidden)
    assert read_table(hidden).column_names == ["sample_id"]


def test_formulas_have_the_value_they_were_saved_with(tmp_path, write):
    path = write(cohort=[["sample_id", "n", "none"], ["a", "=1+1", None], ["b", 3, None]])
    with raises(f"{path}, sheet 'cohort': formulas in 'B2' have no value", "save it"):
        read_table(path, IDS)
    saved = tmp_path / "saved.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(saved, "w") as new:
        for name in old.namelist():  # as Excel saves it: with the value beside the formula
            new.writestr(name, old.read(name).replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>"))
    assert read_table(saved, IDS).column("n").to_pylist() == [2, 3]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no rows: every sheet is empty"),
        (
            [["Cohort of 2024"], ["sample_id", "n"], ["a", 1]],
            "column B has no name in the first row with cells, 1.*leave one row of names",
        ),
        ([["sample_id", "n", "n"], ["a", 1, 2]], "more than one column 'n'; rename or remove"),
        ([["sample_id"], [datetime.datetime(2024, 4, 3)]], "dates in 'A2'.*3-4.*as text"),
        ([["sample_id"], [12345678901234567890]], "more than 15 digits in 'A2'.*as text"),
        ([["sample_id", "n"], ["a", "#REF!"]], r"column 'n' has errors in 'B2' \('#REF!'\)"),
    ],
)
def test_sheets_that_are_refused(root, write, rows, message):
    path = write(cohort=rows)
    with pytest.raises(croma_sql.CromaSqlError, match=f"(?s){re.escape(str(path))}.*{message}"):
        croma_sql.import_samples(root, path, dataset="d")
    assert not root.exists()


def test_merged_names_are_refused(write):
    path = write(
        merged=["A1:A2", "B1:C1"],
        cohort=[["sample_id", "tumour"], [None, "grade", "size"], ["a", 1, 2]],
    )
    with raises("more than one column 'tumour'", "split merged cells"):
        read_table(path, IDS)


def test_files_that_are_no_workbooks(root, tmp_path, write):
    path = write(cohort=[["sample_id"], *([f"s{i}"] for i in range(100))])
    cut_short(path)
    with raises(f"{path} is not a readable Excel workbook", "cut short, under a password"):
        croma_sql.import_samples(root, path, dataset="d")
    path.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))  # what a password makes of it
    with raises(f"{path} is not a readable Excel workbook"):
        croma_sql.import_samples(root, path, dataset="d")
    for suffix in (".xls", ".ods"):
        with raises(f"m{suffix}: sheets are read from .xlsx", "save it as .xlsx or CSV"):
            croma_sql.import_samples(root, tmp_path / f"m{suffix}", dataset="d")
    with raises("none.xlsx does not exist"):
        croma_sql.import_samples(root, tmp_path / "none.xlsx", dataset="d")


def test_ids_that_excel_took_for_numbers_are_never_matched_by_halves(write):
    path = write(cohort=[["slide_id", "label"], [7, "a"], [8, "b"], [100, "c"]])
    with raises(
        f"{path}: column 'slide_id' against", "'7' is '007' there; '8' is '008' there",
        "leading zeros are lost, as Excel drops them", "(000)",
    ):  # fmt: skip
        match_attributes(path, {"slide_id": pa.array(["007", "008", "100"])})
    zeros = write({"A2": "000", "A3": "000"}, cohort=[["slide_id", "label"], [7, "a"], [8, "b"]])
    assert match_attributes(zeros, {"slide_id": pa.array(["007", "008"])}).table.to_pylist() == [
        {"slide_id": "007", "label": "a"},
        {"slide_id": "008", "label": "b"},
    ]


def test_encoders_from_a_workbook(root, write):
    rows = [["encoder", "is_control", "size"], ["UNI", False, 1], ["DINO", True, None]]
    assert croma_sql.import_encoders(root, write(encoders=rows)) == 2
    found = croma_sql.connect(root).sql("FROM encoders ORDER BY encoder").fetchall()
    assert found == [("DINO", True, None), ("UNI", False, 1)]
