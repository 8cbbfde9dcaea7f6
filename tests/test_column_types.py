"""Labels, vectors and connections of any type: every door takes the same ones."""

import datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import croma_sql

TAKEN = {
    "DATE": "DATE '2020-01-01' + i::INTEGER",
    "TIME": "TIME '01:02:03' + to_seconds(i)",
    "TIMESTAMP": "TIMESTAMP '2020-01-01' + to_days(i::INTEGER)",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_days(i::INTEGER)",
    "DECIMAL": "(i + 0.5)::DECIMAL(5, 2)",
    "BOOLEAN": "i = 1",
    "UUID": "('00000000-0000-0000-0000-00000000000' || i)::UUID",
    "ENUM": "(CASE i WHEN 0 THEN 'a' ELSE 'b' END)::ENUM('a', 'b')",
    "HUGEINT": "i::HUGEINT",
    "DOUBLE": "i + 0.5::DOUBLE",
    "VARCHAR": "i::VARCHAR",
}
REFUSED = {"STRUCT": "{'a': i}", "LIST": "[i]", "BLOB": "('\\xFF\\x0' || i)::BLOB"}
VECTORS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]])
COLUMNS = (list("aabb"), list("xyxy"), [1, 2, 3, 4])


def table(con, label):
    con.execute(f"""
        CREATE OR REPLACE TABLE t AS
        SELECT j AS sample_id, [sin(j * 7), cos(j * 3), sin(j * j)] AS embedding, {label} AS label,
            j % 3 AS confounder, j AS group_id
        FROM (SELECT j, j % 2 AS i FROM range(24) r(j))
    """)


def doors(con):
    """The margins of table t by each door, or its error."""
    frame = con.sql("FROM t ORDER BY sample_id").pl()
    names = ("label", "confounder", "group_id")
    asked = {
        "sql": lambda: con.sql("FROM croma_margins('t', m := 2) ORDER BY sample_id").pl()["margin"],
        "polars": lambda: frame.select(
            pl.col("embedding").croma.margin(*names, m=2, sample_id="sample_id")
        ).to_series(),
        "columns": lambda: croma_sql.margins(
            frame["embedding"], *(frame[name] for name in names), m=2
        )["margin"],
        "lists": lambda: croma_sql.margins(
            frame["embedding"].to_list(), *(frame[name].to_list() for name in names), m=2
        )["margin"],
    }
    return {name: _answer(ask) for name, ask in asked.items()}


def _answer(ask):
    try:
        return ask().to_list()
    except Exception as error:
        return str(error)


@pytest.fixture
def plain(con):
    table(con, "i")
    return doors(con)["sql"]


@pytest.mark.parametrize("kind", TAKEN)
def test_labels_of_every_type_that_can_be_told_apart(kind, con, plain):
    table(con, TAKEN[kind])
    assert doors(con) == dict.fromkeys(("sql", "polars", "columns", "lists"), plain)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_a_label_is_refused_by_every_door(kind, con):
    table(con, REFUSED[kind])
    for door, answer in doors(con).items():
        assert "column 'label' is of type" in answer, door
        assert "; expected text, numbers or booleans" in answer, door


def test_durations_are_labels_in_sql_and_polars(con, plain):
    table(con, "to_days(i::INTEGER)")
    sql = con.sql("FROM croma_margins('t', m := 2) ORDER BY sample_id").fetchall()
    assert [row[6] for row in sql] == plain
    frame = con.sql("SELECT * REPLACE (date_part('day', label) AS label) FROM t").pl()
    frame = frame.sort("sample_id").with_columns(pl.duration(days="label").alias("label"))
    margin = pl.col("embedding").croma.margin("label", "confounder", "group_id", m=2)
    assert frame.select(margin).to_series().to_list() == plain
    label = [datetime.timedelta(days=days % 2) for days in range(24)]
    found = croma_sql.margins(
        frame["embedding"], label, frame["confounder"], frame["group_id"], m=2
    )
    assert found["margin"].to_list() == plain


@pytest.mark.parametrize(
    "vectors",
    [
        pd.Series(list(VECTORS)),
        pd.Series([list(row) for row in VECTORS]),
        pd.Series(list(VECTORS), index=[7, 5, 3, 1]),
        pd.DataFrame(VECTORS),
        pl.DataFrame(VECTORS),
        np.array([*VECTORS, None], dtype=object)[:4],
    ],
)
def test_vectors_as_pandas_keeps_them(vectors):
    expected = croma_sql.margins(VECTORS, *COLUMNS, m=1)
    assert croma_sql.margins(vectors, *COLUMNS, m=1).equals(expected)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_vector_of_a_series(missing):
    vectors = pd.Series([*VECTORS, missing])
    columns = (list("aabba"), list("xyxyx"), [1, 2, 3, 4, 5])
    found = croma_sql.margins(vectors, *columns, m=1, on_bad_vectors="null")
    assert found["undefined_reason"].to_list() == [None] * 4 + ["bad_vector"]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (
            [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0, 2.0], [0.6, 0.8]],
            r"first in row\(s\) 2 \(length 3\)",
        ),
        (["a", "b", "c", "d"], "'embedding' is not a column of vectors of numbers, one per row"),
    ],
)
def test_series_that_are_no_vectors(vectors, message):
    with pytest.raises(croma_sql.CohortError, match=message):
        croma_sql.margins(pd.Series(vectors, dtype=object), *COLUMNS, m=1)


@pytest.mark.parametrize("thing", [None, "study.duckdb", duckdb])
def test_register_says_what_it_takes(thing):
    with pytest.raises(croma_sql.CromaSqlError) as caught:
        croma_sql.register(thing)
    assert str(caught.value) == (
        "register takes a connection of DuckDB, as duckdb.connect() opens one, and was given "
        f"{thing!r}"
    )
