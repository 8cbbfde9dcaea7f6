"""Rows that cannot be scored together, whichever door they come through: the message says why."""

import re

import duckdb
import numpy as np
import polars as pl
import pytest
from mistakes import ids, margins_of, raises, tiles, with_holes

import croma_sql
from croma_sql import CromaSqlError


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_vectors_without_direction(value):
    frame = with_holes(value)
    with raises(
        "2 of 40 vectors in 'embedding'", "'s3', 's7'", "on_bad_vectors = 'drop'", "'null'"
    ):
        margins_of(frame)
    assert len(margins_of(frame, on_bad_vectors="drop")) == 38
    kept = margins_of(frame, on_bad_vectors="null")
    assert kept.filter(undefined_reason="bad_vector")["sample_id"].to_list() == ["s3", "s7"]
    assert kept["margin"][3] is None


def test_vector_that_is_missing():
    frame = tiles()
    hole = pl.when(pl.col("sample_id") == "s5").then(None).otherwise(pl.col("embedding"))
    with raises("1 of 40 vectors in 'embedding' are NULL", "'s5'"):
        margins_of(frame.with_columns(embedding=hole))


@pytest.mark.parametrize(
    ("column", "name"), [("label", "label"), ("confounder", "confounder"), ("group_id", "group")]
)
def test_null_cells(column, name):
    frame = tiles().with_columns(pl.col(column).replace({tiles()[column][0]: None}))
    n = frame[column].null_count()
    with raises(f"column '{name}' is NULL in {n} of 40 rows: 's0'", "Fill the cells in"):
        margins_of(frame)


def test_repeated_and_missing_ids():
    with raises(
        "'sample_id' is not unique: 1 value(s)", "'s1'", "by := 'encoder'", ".over('encoder')"
    ):
        margins_of(tiles(sample_id=["s1", "s1", *ids(40)[2:]]))
    with raises("'sample_id' is NULL in 1 of 40 rows", "row 4"):
        margins_of(tiles(sample_id=[*ids(4), None, *ids(40)[5:]]))


@pytest.mark.parametrize("column", ["label", "confounder"])
def test_one_label_or_confounder_only(column):
    other = {"label": "OS", "confounder": "SO"}[column]
    with raises(f"column '{column}' has one value in all 40 rows", f"no sample has an {other}"):
        margins_of(tiles(**{column: ["same"] * 40}))


def test_columns_of_another_length():
    frame = tiles()
    with raises("'label' has 39 rows but there are 40 vectors"):
        croma_sql.margins(
            frame["embedding"], frame["label"][:39], frame["confounder"], frame["group_id"]
        )


def test_vectors_of_different_dimensions():
    lists = [[1.0] * 3] * 38 + [[1.0] * 2] * 2
    with raises(
        "vectors of different lengths: 3 in most rows", "2 of 40 rows differ", "38, 39", "2, 2"
    ):
        margins_of(tiles(embedding=lists))


@pytest.mark.parametrize(
    ("embeddings", "parts"),
    [
        (np.zeros(4), ("'embedding' has 1 dimension(s)", "shape (4,)")),
        (np.array([["a"]]), ("dtype <U1", "expected float16, float32, float64")),
        ([[1.0], [1.0, 2.0]], ("not an (n, d) array of numbers",)),
        (pl.Series(["a", "b"]), ("type string", "expected a list of numbers")),
        (pl.Series([["a"], ["b"]]), ("lists of string", "expected numbers")),
    ],
)
def test_vectors_that_are_none(embeddings, parts):
    with raises(*parts):
        croma_sql.margins(embeddings, [1, 2], [1, 2], [1, 2])


def test_vectors_that_are_all_missing():
    frame = tiles().with_columns(embedding=pl.lit(None, pl.List(pl.Float32)))
    with raises("40 of 40 vectors in 'embedding' are NULL"):
        margins_of(frame)
    nothing = margins_of(frame, on_bad_vectors="null")
    assert nothing["undefined_reason"].unique().to_list() == ["bad_vector"]


@pytest.mark.parametrize("label", [[1, "a"] * 20, np.zeros((40, 2)), 7, np.ones(40, complex)])
def test_columns_that_are_none(label):
    with raises("'label' cannot be read as a column"):
        croma_sql.margins(tiles()["embedding"], label, tiles()["confounder"], tiles()["group_id"])


@pytest.mark.parametrize("m", [0, -1, 2.5, "5", None, float("nan"), float("inf")])
def test_m_that_is_no_number_of_neighbours(m):
    with raises(f"m is {m!r}", "a whole number of at least 1"):
        margins_of(tiles(), m=m)


def test_whole_numbers_of_any_type_will_do():
    assert margins_of(tiles(), m=np.int64(2)).equals(margins_of(tiles(), m=2.0))


def test_unknown_options():
    for threads in (0, -1, 2.5, "2"):
        with raises(f"threads is {threads!r}", "at least 1"):
            margins_of(tiles(), threads=threads)
    with raises("on_bad_vectors is 'ignore'", "'error', 'drop' or 'null'"):
        margins_of(tiles(), on_bad_vectors="ignore")
    with raises("on_bad_vectors is 'drop'", "keeps its rows"):
        pl.col("e").croma.margin("a", "b", "c", on_bad_vectors="drop")


def test_sql_and_polars_say_the_same_with_the_users_column_names(con):
    frame = with_holes(np.nan).rename({"embedding": "vector"})
    con.register("t", frame)
    message = r"2 of 40 vectors in 'vector' are NULL, hold NaN or inf, or are all zero: 's3', 's7'"
    with pytest.raises(duckdb.InvalidInputException, match=message):
        con.sql("FROM croma_margins('t', embedding := 'vector')").fetchall()
    expression = pl.col("vector").croma.margin(
        "label", "confounder", "group_id", sample_id="sample_id"
    )
    with pytest.raises(CromaSqlError, match=message):
        frame.select(expression)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("FROM croma_margins('nowhere')", "Table with name nowhere does not exist"),
        ("FROM croma_margins('t', label := 'grade')", 'Could not find key "grade" in struct'),
        ("FROM croma_margins('t', m := 0)", "m is 0; it is the number of neighbours"),
        ("FROM croma_margins('t', m := NULL)", "m is NULL; leave it out"),
        ("FROM croma_margins('t', embedding := 'label')", "'label' is of type string"),
        (
            "FROM croma_margins('t', m := 2.5)",
            "m is Decimal('2.5'); it is the number of neighbours",
        ),
        ("FROM croma_margins('t', by := 'label')", "scope 'class"),
        ("FROM croma_margins('t', by := 'label')", "'label' has one value in all"),
        ("FROM croma_neighbours('t', on_bad_vectors := 'x')", "on_bad_vectors is 'x'"),
    ],
)
def test_calls_in_sql(con, call, message):
    con.register("t", tiles())
    with pytest.raises(duckdb.Error, match=re.escape(message)):
        con.sql(call).fetchall()
