"""What cannot be compared is told, in the words of the user, from Python and from SQL."""

import numpy as np
import polars as pl
import pytest
from acquired import samples
from test_consistency_doors import from_python, from_sql

import croma_sql

MISTAKES = {
    "unit is NULL": (
        {"unit": pl.when(pl.int_range(pl.len()) == 4).then(None).otherwise("unit")},
        r"column 'unit' is NULL in 1 of \d+ rows \(first: row",
    ),
    "one unit": ({"unit": pl.lit("p0")}, "column 'unit' has one value, 'p0'"),
    "one acquisition": (
        {"acquisition": pl.lit("AT2")},
        "column 'acquisition' has one value, 'AT2'",
    ),
    "no complete unit": (
        {"unit": pl.col("unit") + pl.col("acquisition")},
        "36 of 36 units in 'unit' are not under every 'acquisition': 'p0scanner 0' has no",
    ),
    "vectors that cancel": (
        {"embedding": pl.when(pl.int_range(pl.len()).over("unit", "acquisition") == 0)
            .then(pl.lit([1.0] * 8, pl.Array(pl.Float64, 8)))
            .otherwise(pl.lit([-1.0] * 8, pl.Array(pl.Float64, 8)))},
        r"\d+ mean vectors? (is|are) zero or not finite, so that there is no direction: 'p",
    ),
    "vectors that overflow": (
        {"embedding": pl.lit([1.7e308] * 8, pl.Array(pl.Float64, 8))},
        r"\d+ mean vectors? (is|are) zero or not finite, .* too long to be added up",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_rows_are_told(con, mistake):
    columns, told = MISTAKES[mistake]
    frame = samples(9, most=2, dtype=np.float64).with_columns(**columns)
    with pytest.raises(croma_sql.CohortError, match=told):
        from_python(frame)
    con.register("scans", frame)
    with pytest.raises(Exception, match=told):
        from_sql(con, "croma_unit_pairs")


OPTIONS = {
    "incomplete": ("maybe", "incomplete is 'maybe'; it can be 'error', 'drop' or 'pairwise'"),
    "on_bad_vectors": ("null", "on_bad_vectors is 'null'; it can be 'error' or 'drop'"),
    "permutations": (-1, "permutations is -1; it is a whole number, 0 or more"),
    "seed": (0.5, "seed is 0.5; it is a whole number, 0 or more"),
    "a great seed": (2**40, "seed is 1099511627776; it is a whole number up to 2147483646"),
    "depth": (12, "depth is 12, but of 12 units each has 11 others"),
    "threads": (0, "threads is 0; it is at least 1"),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_out_of_range_are_told(option):
    value, told = OPTIONS[option]
    with pytest.raises(croma_sql.CohortError, match=told):
        from_python(samples(10), **{option.split()[-1]: value})


ASKED = {
    "croma_unit_pairs('scans', incomplete := NULL)": "incomplete is NULL; leave it out",
    "croma_unit_pairs('scans', unit := 'slide')": "slide",
    "croma_acquisition_pairs('scans', permutations := -1)": "permutations is -1; it is a whole",
    "croma_acquisition_pairs('scans', permutations := 1.5)": "permutations is 1.5; it is a whole",
    "croma_acquisition_pairs('scans', seed := NULL)": "seed is NULL; leave it out",
    "croma_acquisition_pairs('scans', seed := 99999999999999999999999)": (
        "seed is 99999999999999999999999; it is a whole number up to 2147483646"
    ),
    "croma_iok('scans', k := 12)": "k is 12, but of 12 units each has 11 others; leave k out to",
    "croma_iok('two', k := 2)": "k is 2, but of 2 units each has 1 other; leave k out",
    "croma_iok('scans', k := 99999999999)": "croma_iok: k is 99999999999; it is a whole number, 1",
    "croma_iok('scans', k := 99999999999999999999999)": "k is 99999999999999999999999; it is",
    "croma_iok('scans', k := [1, 0])": r"croma_iok: k is \[1, 0\]; it is a whole number, 1 or more",
    "croma_units('scans', \"by\" := 'acquisition')": "scope 'scanner .': column 'acquisition' has",
}


@pytest.mark.parametrize("query", ASKED)
def test_sql_tells_what_cannot_be_asked(con, query):
    con.register("scans", samples(10))
    con.register("two", samples(10, units=2))
    with pytest.raises(Exception, match=ASKED[query]):
        con.sql(f"FROM {query}").fetchall()


def test_too_many_units_to_permute_are_refused():
    n = 5001
    vectors = np.tile(np.arange(1.0, n + 1)[:, None], (2, 2))
    names = np.tile(np.arange(n), 2), np.repeat(["a", "b"], n)
    with pytest.raises(croma_sql.CohortError, match=r"5001 units are too many to permute: .*= 0"):
        croma_sql.consistency(vectors, *names)


def test_columns_of_other_lengths_are_told():
    frame = samples(11)
    with pytest.raises(croma_sql.CohortError, match="'unit' has 3 rows but there are"):
        croma_sql.consistency(frame["embedding"], ["a", "b", "c"], frame["acquisition"])
