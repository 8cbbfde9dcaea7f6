"""What cannot be resampled is refused by name, with a way to mend it."""

import re

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import croma_sql
from croma_sql import StatisticsError

FRAME = pl.DataFrame(
    {
        "encoder": ["a", "a", "b", "b"],
        "sample_id": [1, 2, 1, 2],
        "group_id": [1, 2, 1, 2],
        "margin": [0.1, 0.2, 0.3, 0.4],
        "text": ["x"] * 4,
        "yes": [True] * 4,
        "hole": [1, None, None, 2],
        "nan": [0.0, float("nan"), 1.0, 2.0],
        "infinite": [0.0, 1.0, float("inf"), 2.0],
        "n": [1] * 4,
        "object": pl.Series([object(), object(), 1, "x"], dtype=pl.Object),
    }
)
FUNCTIONS = [croma_sql.bootstrap, croma_sql.differences, croma_sql.rank_stability]
MISTAKES = [
    ({"value": "margn"}, r"no column 'margn'; it has 'encoder', 'sample_id', 'group_id', 'margin'"),
    ({"group": "slide"}, "no column 'slide'"),
    ({"subset": "subset"}, "no column 'subset'"),
    ({"by": ["text", "centre", "class"]}, "no column 'centre', 'class'"),
    ({"value": "text"}, "'text' is of type String; expected numbers"),
    ({"value": "yes"}, "'yes' is of type Boolean; expected numbers"),
    ({"value": "infinite"}, r"'infinite' is infinite in row 2 .*make it NULL"),
    (
        {"group": "hole"},
        r"'hole' is NULL in 2 of 4 rows \(1, 2, counted from 0\); every row belong",
    ),
    ({"group": "nan"}, r"'nan' is NULL in 1 of 4 rows \(1, "),
    ({"draws": 0}, "draws is 0; it is a whole number of at least 1"),
    ({"draws": 10.5}, "draws is 10.5"),
    ({"draws": True}, "draws is True"),
    ({"level": 0}, "level is 0; it lies between 0 and 1, as 0.95 does"),
    ({"level": 1.0}, "level is 1.0"),
    ({"level": 95}, "level is 95"),
    ({"level": float("nan")}, "level is nan"),
    ({"level": "0.95"}, "level is '0.95'"),
    ({"seed": -1}, "seed is -1; it is a whole number of at least 0"),
    ({"seed": None}, "seed is None"),
    ({"statistics": "median"}, "no statistic 'median'; there are 'croma', 'pooled_median', 'mean'"),
    ({"statistics": ["croma", "ltm"]}, "no statistic 'ltm'"),
    ({"statistics": ["q101"]}, "no statistic 'q101'"),
    ({"statistics": ["q-5"]}, "no statistic 'q-5'"),
    ({"statistics": [0.1]}, "no statistic 0.1"),
    ({"statistics": []}, "no statistic is asked for; there are"),
    ({"statistics": None}, "no statistic None"),
    ({"statistics": [["f0"]]}, r"no statistic \['f0'\]"),
    ({"threads": 0}, "threads is 0; it is a whole number of at least 1$"),
    ({"threads": True}, "threads is True; it is a whole number"),
    ({"threads": 1.5}, r"threads is 1\.5; it is a whole number"),
    (
        {"draws": 2**31},
        "draws is 2147483648; .* at least 1 and at most 1000000",
    ),
    (
        {"seed": 2**64},
        "seed is 1844.*; .* at least 0 and at most 9223372036854",
    ),
    ({"by": None}, "expected the name of a column or a list of names, not None"),
    ({"by": 5}, "expected the name of a column or a list of names, not 5"),
    ({"by": ["text", 1]}, r"expected the name of a column or a list of names, not \['text', 1\]"),
    ({"by": [["text"]]}, r"expected the name of a column or a list of names, not \[\['text'\]\]"),
    ({"by": pl.col("text")}, "expected the name of a column or a list of names, not <Expr"),
    ({"value": None}, "no column None; it has 'encoder'"),
    ({"group": None}, "no column None; it has 'encoder'"),
    ({"value": ["margin"]}, r"no column \['margin'\]; it has"),
    ({"group": ["group_id"]}, r"no column \['group_id'\]; it has"),
    ({"subset": ["text"]}, r"no column \['text'\]; it has"),
    ({"by": "object"}, "'object' holds Python objects, which cannot be told apart; make them text"),
    ({"group": "object"}, "'object' holds Python objects"),
    ({"subset": "object"}, "'object' holds Python objects"),
    ({"value": "object"}, "'object' is of type Object; expected numbers"),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("mistake", "message"), MISTAKES, ids=lambda told: re.sub(" at 0x[0-9A-F]+", "", str(told))
)
def test_a_mistake_is_told(function, mistake, message):
    with pytest.raises(StatisticsError, match=message):
        function(FRAME, **mistake)


@pytest.mark.parametrize("function", FUNCTIONS[1:])
def test_a_mistake_in_a_comparison_is_told(function):
    with pytest.raises(StatisticsError, match="'encoder' is both what is compared and a level of"):
        function(FRAME, by="encoder")
    with pytest.raises(StatisticsError, match="no column 'model'"):
        function(FRAME, between="model")
    with pytest.raises(StatisticsError, match="no column 'tile'"):
        function(FRAME, paired_by="tile")
    with pytest.raises(StatisticsError, match="'text' does not tell the rows of a level apart"):
        function(FRAME, paired_by="text")
    for nothing in ([], ()):
        with pytest.raises(StatisticsError, match="paired_by names no column; name those that"):
            function(FRAME, paired_by=nothing)
    with pytest.raises(StatisticsError, match=r"expected the name of a column .*, not 5"):
        function(FRAME, paired_by=5)
    for option in ({"between": "object"}, {"paired_by": ["sample_id", "object"]}):
        with pytest.raises(StatisticsError, match="'object' holds Python objects"):
            function(FRAME, **option)
    for between in (None, ["encoder"], 5):
        with pytest.raises(StatisticsError, match=r"between is .*; it is the name of one column"):
            function(FRAME, between=between)


def test_a_column_may_not_be_two_in_the_result():
    message = r"column 'n' has the name of a column of the result; rename it"
    with pytest.raises(StatisticsError, match=message):
        croma_sql.bootstrap(FRAME, by=["n", "encoder"])
    with pytest.raises(StatisticsError, match=message):
        croma_sql.spearman(FRAME, by="n")
    with pytest.raises(StatisticsError, match="'rank' has the name"):
        croma_sql.rank_stability(FRAME.rename({"encoder": "rank"}), between="rank")


def test_nothing_to_compare():
    with pytest.raises(StatisticsError, match=r"'text' has fewer than two values$"):
        croma_sql.differences(FRAME, between="text")
    with pytest.raises(StatisticsError, match="fewer than two values at every level of 'encoder'"):
        croma_sql.differences(FRAME, between="text", by="encoder")


@pytest.mark.parametrize("frame", [5, "margins", {"a": [1, 2], "b": [1, 2, 3]}, None])
def test_what_is_no_frame(frame):
    with pytest.raises(StatisticsError, match=r"cannot be read as a frame|has no column"):
        croma_sql.bootstrap(frame)


MIXED = np.array([1, "x", 2, 3], dtype=object)
TWICE = pa.table([FRAME[name].to_arrow() for name in ("group_id", "margin", "n", "n")], [
    "group_id", "margin", "k", "k",
])  # fmt: skip


@pytest.mark.parametrize(
    "frame",
    [
        FRAME.drop("object").to_pandas().assign(mixed=MIXED),
        FRAME.drop("object").to_dict() | {"mixed": MIXED.tolist()},
    ],
)
def test_the_column_that_cannot_be_read_is_named(frame):
    for function, options in (
        (croma_sql.bootstrap, {"by": "mixed"}),
        (croma_sql.spearman, {}),
        (croma_sql.subgroups, {}),
    ):
        with pytest.raises(StatisticsError, match="cannot be read as a frame: column 'mixed': "):
            function(frame, **options)


@pytest.mark.parametrize(
    "frame",
    [
        TWICE,
        TWICE.to_batches()[0],
        TWICE.to_pandas(),
        duckdb.sql("SELECT 1 AS group_id, 0.5 AS margin, 1 AS k, 2 AS k"),
    ],
)
def test_a_column_that_is_there_twice_is_named(frame):
    for function, options in ((croma_sql.bootstrap, {"by": "k"}), (croma_sql.spearman, {})):
        with pytest.raises(StatisticsError, match=r"has column 'k' more than once.*; rename one"):
            function(frame, **options)


def test_columns_that_sql_cannot_tell_apart_are_named():
    """The first of them was taken, whichever was asked for."""
    relation = duckdb.sql("SELECT 1 AS group_id, 0.5 AS margin, 1 AS zone, 2 AS Zone")
    assert relation.columns == ["group_id", "margin", "zone", "Zone"]
    for name in ("zone", "Zone"):
        message = rf"column '{name}' more than once \(in SQL upper and lower case are one\); rename"
        with pytest.raises(StatisticsError, match=message):
            croma_sql.bootstrap(relation, by=name)


def test_a_query_that_fails_is_no_frame():
    lazy = FRAME.lazy().with_columns(pl.col("text").cast(pl.Int64))
    relation = duckdb.sql("SELECT 1 AS group_id, 0.5 AS margin, error('too bad') AS text")
    for frame, why in ((lazy, "conversion from `str` to `i64` failed"), (relation, "too bad")):
        with pytest.raises(StatisticsError, match=f"cannot be read as a frame: .*{why}"):
            croma_sql.bootstrap(frame, by="text")


def test_correlations_of_what_is_no_number():
    with pytest.raises(StatisticsError, match="'text' is of type String; expected numbers"):
        croma_sql.spearman(FRAME, ["text", "margin"])
    with pytest.raises(StatisticsError, match="no column 'x'"):
        croma_sql.spearman(FRAME, ["x", "margin"])
    with pytest.raises(StatisticsError, match="'infinite' is infinite in row 2"):
        croma_sql.spearman(FRAME)
    with pytest.raises(StatisticsError, match="takes two columns of numbers; there is only 'n'"):
        croma_sql.spearman(FRAME.select("text", "n"))
    with pytest.raises(StatisticsError, match="draws is 0"):
        croma_sql.spearman(FRAME, ["n", "margin"], draws=0)
    with pytest.raises(StatisticsError, match="'object' holds Python objects"):
        croma_sql.spearman(FRAME, ["n", "margin"], by="object")
    for names in (5, [5, 6], [["n"], "margin"]):
        with pytest.raises(StatisticsError, match="expected the name of a column or a list"):
            croma_sql.spearman(FRAME, names)
