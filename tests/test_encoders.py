"""Attributes of encoders: what goes in, what is refused, and the views that have them."""

import shutil

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mistakes import SELECT, import_tiles, raises, tiles

import croma_sql

ATTRIBUTES = pl.DataFrame(
    {
        "encoder": ["e", "it's", "elsewhere"],
        "is_control": [False, True, None],
        "family": ["uni", None, "paige"],
        "parameters": [681, 86, None],
    }
)
QUERY = "SELECT encoder, is_control, family, parameters FROM encoders ORDER BY encoder"
ROWS = [("e", False, "uni", 681), ("elsewhere", False, "paige", None), ("it's", True, None, 86)]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two benchmarks under two encoders, "it's" the better one: it has the label as a dimension."""
    root = tmp_path_factory.mktemp("study") / "w"
    frame = tiles(80)
    label = 9 * frame["label"].str.tail(1).cast(pl.Float64)
    better = frame.select("sample_id", pl.concat_list(pl.col("embedding").arr.to_list(), label))
    import_tiles(root, frame)
    import_tiles(root, better, encoder="it's", samples=None)
    croma_sql.add_benchmark(root, "all", SELECT)
    croma_sql.add_benchmark(root, "some", f"{SELECT} WHERE group_id <> 'slide3'")
    croma_sql.score(root, on_undefined="null")
    return root


@pytest.fixture
def scored(study, root):
    return shutil.copytree(study, root)


def rows(root, query):
    with croma_sql.connect(root) as con:
        return con.sql(query).fetchall()


# What goes in


def test_attributes_from_any_source(root, tmp_path):
    paths = {kind: tmp_path / f"encoders.{kind}" for kind in ("csv", "parquet")}
    ATTRIBUTES.write_csv(paths["csv"])
    ATTRIBUTES.write_parquet(paths["parquet"])
    spreadsheet = tmp_path / "spreadsheet.csv"
    spreadsheet.write_text(
        "parameters;Is_Control;family;encoder\n681; FALSE;uni;e\n86;True;;it's\n;;paige;elsewhere\n"
    )
    sources = {
        "frame": ATTRIBUTES,
        "pandas": pd.DataFrame(ATTRIBUTES.to_dict(as_series=False)),
        "categories": ATTRIBUTES.with_columns(pl.col("encoder", "family").cast(pl.Categorical)),
        "numbers": ATTRIBUTES.with_columns(pl.col("is_control").cast(pl.Float64)),
        "text": ATTRIBUTES.with_columns(pl.col("is_control").cast(pl.String)),
        "spreadsheet": spreadsheet,
        **paths,
    }
    for name, source in sources.items():
        target = root.with_name(name)
        assert croma_sql.import_encoders(target, source) == 3
        assert rows(target, QUERY) == ROWS, name
        assert croma_sql.check(target) == []


def test_encoders_imported_again_are_replaced(root):
    croma_sql.import_encoders(root, ATTRIBUTES)
    croma_sql.import_encoders(
        root, pl.DataFrame({"model": ["f"], "corpus": ["x"]}), encoder="model"
    )
    assert rows(root, "FROM encoders") == [("f", False, "x")]


def test_every_encoder_there_is_has_a_row(root):
    import_tiles(root)
    croma_sql.import_encoders(root, ATTRIBUTES[1:])
    assert rows(root, QUERY) == [("e", False, None, None), *ROWS[1:]]
    assert croma_sql.check(root) == []
    told = croma_sql.info(root).encoder_attributes
    assert (told.n, told.controls, told.without_vectors) == (2, ["it's"], ["it's", "elsewhere"])
    assert told.attributes == ["family", "parameters"]


def test_a_table_of_another_writer_needs_no_control_column(root):
    croma_sql.create_warehouse(root)
    ATTRIBUTES.drop("is_control").write_parquet(root / "encoders.parquet")
    assert rows(root, QUERY) == [(e, False, *rest) for e, _, *rest in ROWS]
    assert croma_sql.check(root) == []
    assert croma_sql.info(root).encoder_attributes.controls == []


# What is refused


def test_names_that_repeat_or_are_missing(root, tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("model,family\nUNI,a\nCONCH,b\nUNI,c\n")
    with raises(f"{path} has no column 'encoder'", "'model', 'family'", "--encoder"):
        croma_sql.import_encoders(root, path)
    with raises(f"{path}: column 'model' is not unique: 1 encoder(s)", "'UNI'", "one row for each"):
        croma_sql.import_encoders(root, path, encoder="model")
    path.write_text("model,family\nUNI,a\n,b\n")
    with raises(f"{path}: column 'model' is empty in 1 of 2 rows (first: row 2)"):
        croma_sql.import_encoders(root, path, encoder="model")
    path.write_text("model,family\n")
    with raises(f"{path} has no rows"):
        croma_sql.import_encoders(root, path, encoder="model")
    with raises("columns 'encoder', 'Encoder' have one name in SQL", "becomes 'encoder'"):
        croma_sql.import_encoders(
            root, pl.DataFrame({"model": ["a"], "Encoder": 1}), encoder="model"
        )
    assert not root.exists()


@pytest.mark.parametrize("value", ["perhaps", 2, 0.5, "yes", [True]])
def test_controls_that_are_neither_true_nor_false(root, value):
    frame = pl.DataFrame({"encoder": ["a", "b"], "is_control": pl.Series([value, None])})
    with raises("the frame: column 'is_control'"):
        croma_sql.import_encoders(root, frame)
    if not isinstance(value, list):
        with raises("neither true nor false for 'a' (", str(value), "write true, false or nothing"):
            croma_sql.import_encoders(root, frame)


def test_check_names_what_is_wrong_with_the_table(root):
    croma_sql.create_warehouse(root)
    path = root / "encoders.parquet"
    for table, problem in (
        (pa.table({"model": ["a"]}), "column 'encoder' is missing or is not text"),
        (pa.table({"encoder": [1]}), "column 'encoder' is missing or is not text"),
        (pa.table({"encoder": ["a", "a"]}), "column 'encoder' is not unique"),
        (pa.table({"encoder": ["a", None]}), "column 'encoder' is empty in 1 of 2 rows"),
        (pa.table({"encoder": ["a"], "is_control": ["true"]}), "'is_control' is not boolean"),
    ):
        pq.write_table(table, path)
        (found,) = croma_sql.check(root)
        assert str(path) in found
        assert problem in found


def test_check_sees_a_flipped_bit(root):
    """In the data; or the bit is one that changes nothing of what is read."""
    croma_sql.import_encoders(root, ATTRIBUTES)
    path = root / "encoders.parquet"
    intact, content = path.read_bytes(), pq.read_table(path)
    footer = len(intact) - 8 - int.from_bytes(intact[-8:-4], "little")
    for position in range(4, footer, 3):
        damaged = bytearray(intact)
        damaged[position] ^= 4
        path.write_bytes(damaged)
        if not any(str(path) in problem for problem in croma_sql.check(root)):
            assert pq.read_table(path).equals(content), position


def test_a_link_to_a_table_elsewhere_is_refused(root, tmp_path):
    croma_sql.create_warehouse(root)
    ATTRIBUTES.write_parquet(tmp_path / "mine.parquet")
    (root / "encoders.parquet").symlink_to(tmp_path / "mine.parquet")
    for use in (croma_sql.connect, croma_sql.info):
        with raises("encoders.parquet is a link to", "outside of the warehouse"):
            use(root)
    with raises("outside of the warehouse"):
        croma_sql.import_encoders(root, ATTRIBUTES)


# The views


def test_encoders_are_ranked_and_controls_only_shown(scored):
    ranking = (
        "SELECT encoder, croma_rank, ltm10_rank, on_frontier FROM encoder_ranking ORDER BY ALL"
    )
    means = (
        "SELECT encoder, n_benchmarks, mean_rank, on_frontier FROM encoder_mean_ranks ORDER BY 1"
    )
    assert rows(scored, ranking) == [("e", 2, 2, False)] * 2 + [("it's", 1, 1, True)] * 2
    assert rows(scored, means) == [("e", 2, 2, False), ("it's", 2, 1, True)]
    croma_sql.import_encoders(scored, ATTRIBUTES)
    assert rows(scored, ranking) == [("e", 1, 1, True)] * 2 + [("it's", None, None, False)] * 2
    assert rows(scored, means) == [("e", 2, 1, True), ("it's", 2, None, False)]
    for view in ("encoder_ranking", "encoder_mean_ranks"):
        found = rows(scored, f"SELECT DISTINCT encoder, is_control, family, parameters FROM {view}")
        assert sorted(found) == [ROWS[0], ROWS[2]]
    with croma_sql.connect(scored) as con:
        summary = con.sql("SELECT benchmark, encoder, croma, ltm10 FROM encoder_summary").fetchall()
        shown = con.sql("SELECT benchmark, encoder, croma, ltm10 FROM encoder_ranking").fetchall()
        boost = con.sql("SELECT encoder, boost FROM croma_boost('encoder_ranking', 'all', 'some')")
        odds = {row[:2]: (1 + row[2]) / (1 - row[2]) for row in summary}
        assert sorted(shown) == sorted(summary)
        assert dict(boost.fetchall()) == {
            encoder: pytest.approx(odds["all", encoder] / odds["some", encoder])
            for encoder in ("e", "it's")
        }


def test_mean_ranks_of_some_benchmarks(scored):
    found = rows(
        scored,
        "WITH results AS (FROM encoder_ranking WHERE benchmark = 'some') "
        "SELECT encoder, n_benchmarks FROM croma_mean_ranks('results') ORDER BY mean_rank",
    )
    assert found == [("it's", 1), ("e", 1)]


def test_attributes_may_go_by_any_name_of_ours(scored):
    """Where a view has a column of that name itself, the attribute is left out."""
    with croma_sql.connect(scored) as con:
        views = con.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        before = {view: con.sql(f"FROM {view}").columns for (view,) in views}
    names = {name for columns in before.values() for name in columns}
    frame = ATTRIBUTES.select(
        "encoder", *(pl.lit("theirs").alias(name) for name in names - {"encoder", "is_control"})
    )
    croma_sql.import_encoders(scored, frame)
    with croma_sql.connect(scored) as con:
        for view, columns in before.items():
            found = con.sql(f"FROM {view}")
            assert found.columns[: len(columns)] == columns
            found.fetchall()
        kinds = con.sql("SELECT DISTINCT typeof(croma) FROM encoder_ranking")
        assert kinds.fetchall() == [("DOUBLE",)]
