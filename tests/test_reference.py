"""The reference is that of the code."""

from reference import REFERENCE, reference


def test_the_reference_says_what_is_there():
    """Every view and macro is described, and run, to know its columns."""
    written = REFERENCE.read_text(encoding="utf-8")
    assert written == reference(), "run python tests/reference.py"
