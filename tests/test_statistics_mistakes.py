"""What cannot be resampled is refused by name, with a way to mend it."""

import polars as pl
import pytest

import croma_sql
from croma_sql import CromaSqlError, StatisticsError

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
    ({"threads": 0}, "threads is 0; it is at least 1"),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=str)
def test_a_mistake_is_told(function, mistake, message):
    with pytest.raises(CromaSqlError, match=message):
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
