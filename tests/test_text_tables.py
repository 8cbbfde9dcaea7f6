"""CSV and TSV as spreadsheets and other programs leave them."""

import pytest
from mistakes import raises

import croma_sql
from croma_sql.importers.tables import read_table

ROWS = [{"slide_id": "007", "note": 'two\r\nlines, "so"', "dose": 0.5}]
CONTENTS = {
    "byte order mark": '\ufeff"slide_id","note","dose"\r\n007,"two\r\nlines, ""so""",0.5\r\n',
    "semicolons": 'slide_id;note;dose\r\n007;"two\r\nlines, ""so""";0.5\r\n',
    "tabs": 'slide_id\tnote\tdose\n007\t"two\r\nlines, ""so"""\t0.5\n',
    "sep=": 'sep=;\r\nslide_id;note;dose\r\n007;"two\r\nlines, ""so""";.5\r\n',
    "blank lines": '\ufeff\r\n\r\nslide_id,note,dose\r\n\r\n007,"two\r\nlines, ""so""",0.5\r\n\r\n',
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_text_as_programs_write_it(tmp_path, content):
    path = tmp_path / "m.csv"
    path.write_bytes(content.encode())
    assert read_table(path, text=("slide_id",)).to_pylist() == ROWS


def test_a_name_of_several_lines(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes(b'"slide,\r\nas scanned";"a ""b"""\r\n007;1\r\n')
    assert read_table(path).to_pylist() == [{"slide,\r\nas scanned": "007", 'a "b"': 1}]
    path.write_bytes(b'"slide\nid",x,x\n007,1,2\n')
    with raises(str(path), "more than one column 'x'"):
        read_table(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_refused_with_the_cure(root, tmp_path, encoding):
    (tmp_path / "m.csv").write_bytes("sample_id\tsite\na\tŁódź\n".encode(encoding))
    with raises("m.csv is not UTF-8 but UTF-16", "'CSV UTF-8', or as .xlsx"):
        croma_sql.import_samples(root, tmp_path / "m.csv", dataset="d")
    assert not root.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sample_id,site\na,Łódź\n".encode("latin2"), "is not UTF-8 .*save it as 'CSV UTF-8'"),
        (b"sample_id,site\ra,b\rc,d\r", "ends its lines with CR alone.*'CSV UTF-8'"),
        (b"", "cannot be read"),
        (b"\r\n\r\n", "cannot be read"),
    ],
)
def test_text_that_cannot_be_read(tmp_path, content, message):
    (tmp_path / "m.csv").write_bytes(content)
    with pytest.raises(croma_sql.CromaSqlError, match=f"m.csv {message}"):
        read_table(tmp_path / "m.csv")
