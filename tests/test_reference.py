"""The reference is that of the code."""

from reference import REFERENCE, connection, queries, reference


def test_the_reference_says_what_is_there():
    """Every view and macro is described, and run, to know its columns."""
    written = REFERENCE.read_text(encoding="utf-8")
    assert written == reference(), "run python tests/reference.py"


def test_queries_in_headers_run(tmp_path):
    found = queries()
    assert len(found) == 15
    with connection(tmp_path / "W") as con:
        for name, query in found:
            assert con.sql(query).fetchall(), name
