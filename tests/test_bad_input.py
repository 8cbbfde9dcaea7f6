"""Every mistake is answered in the user's words: what, where, which rows, how to mend it."""

import datetime
import re

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cohorts import random_cohort

import croma_sql
from croma_sql import CromaSqlError

SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"


def tiles(n=40, **columns):
    frame = random_cohort(0, n=n, groups=8).frame().with_columns(sample_id=pl.Series(ids(n)))
    return frame.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def ids(n):
    return [f"s{i}" for i in range(n)]


def raises(*parts):
    """The message holds these parts, in this order."""
    return pytest.raises(CromaSqlError, match="(?s)" + ".*".join(re.escape(part) for part in parts))


def with_holes(value, rows=(3, 7)):
    frame = tiles()
    vectors = frame["embedding"].to_numpy().copy()
    vectors[list(rows)] = value
    return frame.with_columns(embedding=pl.Series(vectors, dtype=pl.Array(pl.Float64, 16)))


def margins_of(frame, **options):
    columns = ("embedding", "label", "confounder", "group_id")
    given = {"sample_id": frame["sample_id"]} | options
    return croma_sql.margins(*(frame[column] for column in columns), **given)


# The cohort, whichever door it came through


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
    ("column", "name"), [("label", "label"), ("confounder", "confounder"), ("group_id", "group_id")]
)
def test_null_cells(column, name):
    frame = tiles().with_columns(pl.col(column).replace({tiles()[column][0]: None}))
    n = frame[column].null_count()
    with raises(f"column '{name}' is NULL in {n} of 40 rows: 's0'", "IS NOT NULL"):
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


@pytest.mark.parametrize("m", [0, -1, 2.5, "5", None])
def test_m_that_is_no_number_of_neighbours(m):
    with raises(f"m is {m!r}", "a whole number of at least 1"):
        margins_of(tiles(), m=m)


def test_unknown_options():
    with raises("threads is 0", "at least 1"):
        margins_of(tiles(), threads=0)
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


# Files and frames


@pytest.fixture
def root(tmp_path):
    return tmp_path / "warehouse"


def import_tiles(root, frame=None, **options):
    frame = tiles() if frame is None else frame
    given = {"encoder": "e", "dataset": "d", "samples": frame} | options
    return croma_sql.import_embeddings(root, frame, **given)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-100])


def test_files_that_are_not_what_they_say(root, tmp_path):
    parquet, npy, text = tmp_path / "a.parquet", tmp_path / "a.npy", tmp_path / "b.parquet"
    tiles().write_parquet(parquet)
    np.save(npy, np.ones((40, 3)))
    text.write_text("sample_id,embedding")
    cut_short(parquet)
    cut_short(npy)
    options = {"encoder": "e", "dataset": "d", "samples": tiles()}
    for path in (parquet, text):
        with raises(
            str(path), "not a readable Parquet file", "cut short", "Write or copy it again"
        ):
            croma_sql.import_embeddings(root, path, **options)
    with raises(str(npy), "cannot be read"):
        croma_sql.import_embeddings(root, npy, **options)
    with raises(str(tmp_path / "none.npy"), "does not exist"):
        croma_sql.import_embeddings(root, tmp_path / "none.npy", **options)
    with raises("a.xyz: embeddings are read from .npy, .parquet"):
        croma_sql.import_embeddings(root, "a.xyz", **options)
    with raises("a.xyz: samples are read from .csv, .tsv"):
        croma_sql.import_samples(root, "a.xyz", dataset="d")
    assert not root.exists()


def test_a_file_that_is_damaged_in_the_middle(root, tmp_path):
    path = tmp_path / "a.parquet"
    tiles(400).write_parquet(path)
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2 : len(damaged) // 2 + 200] = bytes(200)
    path.write_bytes(damaged)
    with raises(f"{path} is not a readable Parquet file"):
        import_tiles(root, path, samples=tiles(400))
    assert not list(root.rglob("*.parquet"))


def test_pickled_arrays_are_not_loaded(root, tmp_path):
    path = tmp_path / "objects.npy"
    np.save(path, np.array([[object()]]), allow_pickle=True)
    with raises(str(path), "cannot be read", "Python objects"):
        croma_sql.import_embeddings(root, path, encoder="e", dataset="d", samples=tiles())


def test_columns_missing_or_ambiguous(root, tmp_path):
    path = tmp_path / "tiles.parquet"
    tiles().rename({"embedding": "vector"}).write_parquet(path)
    with raises(f"{path} has no column 'embedding'", "'vector'", "--embedding"):
        import_tiles(root, path, samples=tiles())
    with raises("no column 'tile'", "its columns are 'sample_id'", "--sample-id"):
        croma_sql.import_samples(root, path, dataset="d", sample_id="tile")
    twice = pa.table([pa.array(["a"]), pa.array(["b"])], names=["sample_id", "sample_id"])
    with raises("more than one column 'sample_id'"):
        croma_sql.import_samples(root, twice, dataset="d")
    with raises("columns 'Centre', 'centre' have one name in SQL", "rename"):
        croma_sql.import_samples(
            root, pl.DataFrame({"sample_id": ["a"], "Centre": [1], "centre": [2]}), dataset="d"
        )
    with raises("column 'dataset' is a name that the warehouse uses itself"):
        croma_sql.import_samples(
            root, pl.DataFrame({"sample_id": ["a"], "dataset": [1]}), dataset="d"
        )


def test_ids_that_repeat_or_are_empty(root, tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("sample_id,centre\na,1\nb,2\na,3\n")
    with raises(f"{path}: column 'sample_id' is not unique: 1 id(s)", "'a'"):
        croma_sql.import_samples(root, path, dataset="d")
    path.write_text("sample_id,centre\na,1\n,2\n")
    with raises(f"{path}: column 'sample_id' is empty in 1 of 2 rows (first: row 2)"):
        croma_sql.import_samples(root, path, dataset="d")
    croma_sql.import_samples(root, pl.DataFrame({"sample_id": ["a", "b"]}), dataset="one")
    with raises("1 sample_id(s) are already in dataset 'one': 'b'", "unique in a warehouse"):
        croma_sql.import_samples(root, pl.DataFrame({"sample_id": ["b", "c"]}), dataset="two")


def test_vectors_and_samples_that_do_not_match(root, tmp_path):
    with raises("dataset 'd' has no samples yet", "--samples"):
        import_tiles(root, samples=None)
    with raises("1 of 40 vectors have no sample in dataset 'd': 's39'", "Add the samples"):
        import_tiles(root, samples=tiles()[:39])
    with raises("2 of 40 samples of dataset 'd' have no vector: 's38', 's39'"):
        import_tiles(root, tiles()[:38], samples=tiles())
    path = tmp_path / "vectors.npy"
    np.save(path, np.ones((39, 3)))
    with raises(f"{path} has 39 vectors but 40 ids were given", "row i"):
        import_tiles(root, path, samples=tiles())
    import_tiles(root)
    with raises(f"{path} holds vectors without ids", "--samples FILE"):
        import_tiles(root, path, samples=None)
    with raises("vectors of encoder 'e' would lose their sample in dataset 'd'", "'s30'"):
        croma_sql.import_samples(root, tiles()[:30], dataset="d")


def test_dimensions_that_differ_within_an_encoder(root, tmp_path):
    import_tiles(root)
    other = tiles(sample_id=[f"t{i}" for i in range(40)], embedding=[[1.0, 2.0]] * 40)
    with raises("vectors of 2 dimensions", "has 16 in dataset 'd'", "another encoder name"):
        import_tiles(root, other, dataset="d2")


def test_missing_vectors_at_the_head_of_a_list_column(root, tmp_path):
    """Their dimension is that of the first vector there is, however far below."""
    path = tmp_path / "v.parquet"
    vectors = [None] * 5000 + [[1.0, 2.0]] * 10
    frame = pl.DataFrame({"sample_id": ids(5010), "embedding": vectors})
    frame.write_parquet(path)
    with raises("of the first", "vectors are NULL"):
        import_tiles(root, path, samples=frame)
    done = import_tiles(root, path, samples=frame, on_bad_vectors="null")
    assert (done.n, done.d, done.bad) == (5010, 2, 5000)
    assert import_tiles(root, path, samples=frame, on_bad_vectors="drop").n == 10
    for nothing in (None, []):
        empty = frame.with_columns(embedding=pl.Series([nothing] * 5010, dtype=pl.List(pl.Float32)))
        with raises("'embedding' holds no vector at all"):
            import_tiles(root, empty, samples=frame)
    other = tmp_path / "other"
    with raises("not one of the 40 vectors has a direction"):
        import_tiles(other, with_holes(0.0, range(40)), on_bad_vectors="drop")
    np.save(tmp_path / "empty.npy", np.zeros((40, 0)))
    with raises("empty.npy holds an array of shape (40, 0)"):
        import_tiles(root, tmp_path / "empty.npy", samples=tiles())


def test_vectors_of_another_length_are_named_by_their_row_in_the_file(root, tmp_path):
    path = tmp_path / "v.parquet"
    vectors = [[1.0, 2.0]] * 5000 + [[1.0]] + [[1.0, 2.0]] * 20
    pl.DataFrame({"sample_id": ids(5021), "embedding": vectors}).write_parquet(path)
    with raises(f"{path}: 'embedding' holds vectors of different lengths", "row(s) 5000"):
        import_tiles(root, path, samples=pl.DataFrame({"sample_id": ids(5021)}))


def test_attributes_that_sql_cannot_put_into_one_column(root):
    one = pl.DataFrame({"sample_id": ["a"], "v": [1]})
    croma_sql.import_samples(root, one, dataset="one")
    for value in (datetime.date(2026, 1, 1), True, {"a": 1}):
        other = pl.DataFrame({"sample_id": ["b"], "v": [value]})
        with raises("column 'v' is", "but int64 in dataset 'one'", "text will do"):
            croma_sql.import_samples(root, other, dataset="two")
    croma_sql.import_samples(root, pl.DataFrame({"sample_id": ["b"], "V": ["x"]}), dataset="two")
    assert sorted(croma_sql.connect(root).sql("SELECT v FROM samples").fetchall()) == [
        ("1",),
        ("x",),
    ]


def test_options_of_importing_and_scoring(root):
    with raises("on_bad_vectors is 'Error'"):
        import_tiles(root, on_bad_vectors="Error")
    import_tiles(root)
    with raises("on_undefined is 'eror'"):
        croma_sql.score(root, on_undefined="eror")
    with raises("m is 5.5"):
        croma_sql.score(root, m=5.5)
    with raises("threads is 0"):
        croma_sql.score(root, threads=0)


def test_bad_vectors_on_import(root):
    frame = with_holes(np.inf)
    with raises("the frame: 2 of the first 40 vectors", "'s3', 's7'", "--on-bad-vectors drop"):
        import_tiles(root, frame)
    assert import_tiles(root, frame, encoder="dropped", on_bad_vectors="drop").n == 38
    assert import_tiles(root, frame, encoder="null", on_bad_vectors="null").bad == 2
    croma_sql.add_benchmark(root, "b", SELECT)
    (dropped,) = croma_sql.score(root, encoder="dropped", on_undefined="null")
    assert (dropped.n, dropped.left_out) == (38, 2)
    with raises("2 bad_vector ('s3', 's7')"):
        croma_sql.score(root, encoder="null")
    (null,) = croma_sql.score(root, encoder="null", on_undefined="null")
    assert (null.n, null.left_out) == (40, 0)
    assert croma_sql.check(root) == []


# Benchmarks and scoring


@pytest.mark.parametrize(
    ("select", "parts"),
    [
        ("SELECT 1; SELECT 2", ("has 2 statements",)),
        ("", ("has 0 statements",)),
        ("-- nothing but a comment", ("has 0 statements",)),
        ("DROP TABLE samples", ("is not a SELECT", "Only SELECT statements")),
        ("INSERT INTO samples SELECT 1", ("is not a SELECT",)),
        ("COPY samples TO 'x.csv'", ("is not a SELECT",)),
        ("ATTACH 'x.db'", ("is not a SELECT",)),
        ("SELEC 1", ("is not a SELECT", "syntax error")),
        ("SELECT label FROM samples", ("gives no 'sample_id', 'confounder', 'group_id'",)),
        (SELECT.replace("group_id", "group_id, 1 AS x"), ("gives 'x' too", "margins has them all")),
        (SELECT + " WHERE false", ("gives no rows",)),
        (SELECT.replace("label", "nullif(label, 'class0') AS label"), ("label is NULL in",)),
        (SELECT + " UNION ALL " + SELECT, ("40 sample(s) more than once", "column subset")),
        (SELECT.replace("samples", "cells"), ("fails", "cells does not exist")),
        (SELECT.replace("group_id", "centre"), ("fails", '"centre" not found')),
        (SELECT.replace("group_id", "group_id, label"), ("each once",)),
        (SELECT.replace("label", "[1] AS label"), ("column 'label' is of type list",)),
        (SELECT.replace("label", "'nan'::DOUBLE AS label"), ("label is NULL in 40 of 40 rows",)),
        (
            SELECT.replace("sample_id", "'x' || sample_id AS sample_id"),
            ("40 sample_id(s) that no",),
        ),
    ],
)
def test_benchmarks_that_are_none(root, select, parts):
    import_tiles(root)
    with raises("benchmark 'b'", *parts):
        croma_sql.add_benchmark(root, "b", select)
    assert not (root / "benchmarks").exists()


@pytest.mark.parametrize(
    "source",
    [
        "read_csv('/etc/passwd')",
        "read_text('/etc/passwd')",
        "glob('/*')",
        "'{warehouse}/samples/d.parquet'",
        "query('FROM ''/etc/passwd''')",
        "duckdb_secrets()",
        "parquet_metadata('{warehouse}/samples/d.parquet')",
    ],
)
def test_a_benchmark_reads_nothing_but_the_samples(root, source):
    """A warehouse from someone else is data."""
    import_tiles(root)
    select = f"{SELECT} WHERE (SELECT count(*) > 0 FROM {source.format(warehouse=root)})"
    (root / "benchmarks").mkdir()
    (root / "benchmarks" / "theirs.sql").write_text(select)
    with raises("benchmark 'theirs' fails"):
        croma_sql.score(root)
    assert any("theirs" in problem for problem in croma_sql.check(root))


def test_a_benchmark_does_not_see_python_variables(root):
    import_tiles(root)
    secret = pl.DataFrame({"x": [1]})
    with raises("secret does not exist"):
        croma_sql.add_benchmark(root, "b", SELECT + " WHERE (SELECT x FROM secret) = 1")
    assert secret.height == 1


def test_links_out_of_a_warehouse_are_refused(root, tmp_path):
    import_tiles(root)
    outside = tmp_path / "outside.parquet"
    tiles(sample_id=[f"t{i}" for i in range(40)]).drop("embedding").write_parquet(outside)
    croma_sql.add_benchmark(root, "b", SELECT)
    (root / "samples" / "link.parquet").symlink_to(outside)
    for use in (croma_sql.connect, croma_sql.info, croma_sql.score):
        with raises("link.parquet is a link", "outside of the warehouse", "put the file itself"):
            use(root)
    (problem,) = croma_sql.check(root)
    assert "link.parquet is a link" in problem


def test_a_marker_or_folder_that_is_a_link_out_is_refused(root, tmp_path):
    import_tiles(root)
    (root / "scores").symlink_to(tmp_path)
    croma_sql.add_benchmark(root, "b", SELECT)
    with raises("is a link", "reads and writes nothing outside"):
        croma_sql.score(root, on_undefined="null")
    (root / "warehouse.json").rename(tmp_path / "theirs.json")
    (root / "warehouse.json").symlink_to(tmp_path / "theirs.json")
    with raises("warehouse.json is a link", "outside of the warehouse"):
        croma_sql.connect(root)


@pytest.mark.parametrize("name", ["*.parquet", "?evil.parquet", "[.]evil.parquet", ".evil.parquet"])
def test_names_that_a_warehouse_does_not_write_are_not_read(root, tmp_path, name):
    """To DuckDB such a name is a pattern, and what it matches may lead outside."""
    import_tiles(root)
    secret = tmp_path / "secret.parquet"
    pl.DataFrame({"sample_id": ["secret"]}).write_parquet(secret)
    (root / "samples" / name).write_bytes((root / "samples" / "d.parquet").read_bytes())
    if name != ".evil.parquet":
        (root / "samples" / ".evil.parquet").symlink_to(secret)
    assert croma_sql.connect(root).sql("SELECT count(*) FROM samples").fetchall() == [(40,)]
    assert any(f"{name} is not a file that a warehouse has" in p for p in croma_sql.check(root))


def test_a_folder_in_the_place_of_a_file_is_not_read(root):
    import_tiles(root)
    folder = root / "samples" / "e.parquet"
    folder.mkdir()
    pl.DataFrame({"sample_id": ["x"]}).write_parquet(folder / "part.parquet")
    assert croma_sql.connect(root).sql("SELECT count(*) FROM samples").fetchall() == [(40,)]
    assert croma_sql.import_samples(root, pl.DataFrame({"sample_id": ["x"]}), dataset="f") == 1


def test_too_few_typed_neighbours(root):
    frame = tiles(confounder=["rare"] * 3 + ["usual"] * 37, group_id=ids(40))
    import_tiles(root, frame)
    croma_sql.add_benchmark(root, "b", SELECT)
    reasons = margins_of(frame)["undefined_reason"].value_counts().rows()
    with raises(
        "benchmark 'b', encoder 'e': 40 of 40 samples have no margin at m = 5", "--on-undefined"
    ):
        croma_sql.score(root)
    assert sum(n for reason, n in reasons if reason is not None) == 40
    croma_sql.score(root, on_undefined="null")
    stored = croma_sql.connect(root).sql(
        "SELECT undefined_reason, count(*) FROM margins GROUP BY 1"
    )
    assert sorted(stored.fetchall()) == sorted(reasons)
    with raises("40 of 40 samples have no margin"):
        croma_sql.score(root)


def test_samples_without_a_vector_of_an_encoder(root):
    import_tiles(root)
    more = pl.DataFrame({"sample_id": ["x1", "x2"], "label": ["class0", "class1"]}).with_columns(
        confounder=pl.lit("centre0"), group_id=pl.lit("slide99")
    )
    croma_sql.import_samples(root, more, dataset="later")
    croma_sql.add_benchmark(root, "b", SELECT)
    with raises("encoder 'e': 2 of 42 samples have no vector: 'x1', 'x2'", "narrow"):
        croma_sql.score(root)


def test_scoring_what_is_not_there(root):
    croma_sql.create_warehouse(root)
    with raises("has no benchmark yet"):
        croma_sql.score(root)
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    with raises("has no benchmark 'c'; it has 'b'"):
        croma_sql.score(root, benchmark="c")
    with raises("has no encoder 'f'; it has 'e'"):
        croma_sql.score(root, encoder="f")
    with raises("m is 3", "at least 5"):
        croma_sql.score(root, m=3)


# The warehouse


def test_no_warehouse_and_a_newer_one(tmp_path, root):
    for use in (croma_sql.connect, croma_sql.info, croma_sql.check, croma_sql.score):
        with raises(f"{tmp_path} is not a warehouse", "warehouse.json"):
            use(tmp_path)
    croma_sql.create_warehouse(root)
    (root / "warehouse.json").write_text('{"format": 2}')
    with raises("has format 2", "reads 1 to 1", "Update croma_sql"):
        croma_sql.connect(root)
    (root / "warehouse.json").write_text("{")
    with raises("warehouse.json cannot be read"):
        croma_sql.connect(root)


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with raises(f"{tmp_path} exists and is not a warehouse", "new or empty folder"):
        croma_sql.create_warehouse(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["encoder=old", "slide=1", "a*", "b?", "c[1]"])
def test_a_path_that_sql_would_read_as_a_pattern_or_a_column(tmp_path, name):
    for use in (croma_sql.create_warehouse, croma_sql.connect):
        with raises(f"{name}/w cannot be a warehouse", f"{name!r}", "as a pattern or as a column"):
            use(tmp_path / name / "w")


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with raises("cannot write", "Not a directory", "Nothing was changed"):
        croma_sql.create_warehouse(tmp_path / "file" / "warehouse")


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 300])
def test_names_that_no_file_can_have(root, name):
    with raises(repr(name)[:20], "of a" if len(name) < 300 else "too long"):
        import_tiles(root, encoder=name)


def test_damaged_samples_are_named_by_check_and_a_sentence_elsewhere(root):
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    cut_short(root / "samples" / "d.parquet")
    for use in (croma_sql.connect, croma_sql.score):
        with raises("files of the warehouse cannot be read", "croma-sql check"):
            use(root)
    problems = croma_sql.check(root)
    assert any("samples/d.parquet is not a readable Parquet file" in p for p in problems)


TARGETS = [
    "samples/d.parquet",
    "embeddings/encoder=e/d.parquet",
    "scores/typed_neighbours/benchmark=b/encoder=e/typed_neighbours.parquet",
]


@pytest.mark.parametrize("target", TARGETS)
def test_check_sees_a_flipped_bit(root, target):
    """In the data; or the bit is one that changes nothing of what is read."""
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, on_undefined="null")
    path = root / target
    intact, content = path.read_bytes(), pl.read_parquet(path)
    footer = len(intact) - 8 - int.from_bytes(intact[-8:-4], "little")
    for position in range(4, footer, footer // 40):
        damaged = bytearray(intact)
        damaged[position] ^= 4
        path.write_bytes(damaged)
        if not any(str(path) in problem for problem in croma_sql.check(root)):
            assert pl.read_parquet(path).equals(content), position
    path.write_bytes(intact)
    assert croma_sql.check(root) == []


def test_check_compares_scores_with_their_benchmark(root):
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, on_undefined="null")
    path = root / "scores/typed_neighbours/benchmark=b/encoder=e/typed_neighbours.parquet"
    with pq.ParquetFile(path) as file:
        about = {b"croma_sql": file.metadata.metadata[b"croma_sql"]}
        table = file.read().replace_schema_metadata(about)
    pq.write_table(table.slice(0, 10), path)
    (problem,) = croma_sql.check(root)
    assert f"{path} does not hold the rows of its benchmark" in problem


def test_info_tells_of_scores_whose_benchmark_is_gone(root):
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, on_undefined="null")
    (root / "benchmarks" / "b.sql").write_text("SELECT 1")
    assert "gives no 'sample_id'" in croma_sql.info(root).benchmarks[0].problem
    (root / "benchmarks" / "b.sql").unlink()
    assert "has no benchmark 'b'" in croma_sql.info(root).scores[0].status


def test_check_names_every_damaged_file(root):
    import_tiles(root)
    import_tiles(root, encoder="f")
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, on_undefined="null")
    scores = root / "scores/typed_neighbours/benchmark=b"
    cut_short(scores / "encoder=e/typed_neighbours.parquet")
    cut_short(root / "embeddings/encoder=f/d.parquet")
    (root / "benchmarks" / "broken.sql").write_text("DELETE FROM samples")
    pq.write_table(pa.table({"sample_id": ["s1", "s1"]}), root / "samples" / "twice.parquet")
    problems = croma_sql.check(root)
    for part in (
        "encoder=e/typed_neighbours.parquet is not a readable Parquet file",
        "encoder=f/d.parquet is not a readable Parquet file",
        "benchmark 'broken' is not a SELECT",
        "twice.parquet: column 'sample_id' is not unique",
    ):
        assert sum(part in problem for problem in problems) == 1
