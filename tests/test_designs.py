"""Quartets, pairs and draws that a benchmark can be made of, and subsets that lack a cell."""

import hashlib
from collections import defaultdict
from itertools import combinations, product

import duckdb
import polars as pl
import pytest
from cohorts import random_cohort
from hypothesis import given, settings
from hypothesis import strategies as st
from mistakes import SELECT, import_tiles, raises, tiles

import croma_sql

NAMED = "label := 'class', confounder := 'centre', group_id := 'slide', sample_id := 'tile'"
PIECES = ["A", "B", "|", '"', " ", "under", " | ", " under "]
NAMES = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
SOME = st.lists(NAMES, min_size=1, max_size=4, unique=True)
ZERO = pl.lit(pl.Series([[0.0] * 16], dtype=pl.Array(pl.Float64, 16)))
AWKWARD = pl.DataFrame(
    {
        "tile": range(8),
        "class": ["A", "A", "B under X", "B under X", "A", "A", "B", "B"],
        "centre": ["X under Y", "Z", "X under Y", "Z", "Y", "Z", "Y", "Z"],
        "slide": range(8),
    }
)


@pytest.fixture(scope="module")
def database():
    with croma_sql.register(duckdb.connect()) as connection:
        yield connection


@st.composite
def cells_of(draw):
    """Most of the cells of a few labels and confounders, some of them more than once."""
    every = list(product(draw(SOME), draw(SOME)))
    empty = draw(st.sets(st.sampled_from(every), max_size=3))
    return [cell for cell in every if cell not in empty] + draw(st.lists(st.sampled_from(every)))


def grid(cells):
    """One tile per cell given, or several."""
    return pl.DataFrame(
        {
            "tile": range(len(cells)),
            "class": [label for label, _ in cells],
            "centre": [confounder for _, confounder in cells],
            "slide": [n % 3 for n in range(len(cells))],
        },
        schema={"tile": pl.Int64, "class": pl.String, "centre": pl.String, "slide": pl.Int64},
    )


def subsets(con, frame, design):
    """Rows of each subset, checked to be those of the frame."""
    con.register("frame_of_tiles", frame)
    found = con.sql(f"FROM {design}('frame_of_tiles', {NAMED})").pl()
    assert found.columns == ["sample_id", "label", "confounder", "group_id", "subset"]
    rows = {row[0]: row for row in frame.select("tile", "class", "centre", "slide").rows()}
    of_subset = defaultdict(list)
    for *row, subset in found.rows():
        assert rows[row[0]] == tuple(row)
        of_subset[subset].append(row[0])
    assert all(len(set(tiles)) == len(tiles) for tiles in of_subset.values())
    return of_subset


def in_cells(cells, labels, confounders):
    return frozenset(n for n, cell in enumerate(cells) if cell in product(labels, confounders))


# Quartets and pairs


@settings(max_examples=60, deadline=None)
@given(cells_of())
def test_quartets_are_all_that_are_complete(database, cells):
    """Of names that hold what stands between names, too: no two subsets get the same one."""
    expected = {
        in_cells(cells, labels, confounders)
        for labels in combinations(sorted({label for label, _ in cells}), 2)
        for confounders in combinations(sorted({confounder for _, confounder in cells}), 2)
        if set(product(labels, confounders)) <= set(cells)
    }
    found = subsets(database, grid(cells), "croma_quartets")
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, expected))


@settings(max_examples=40, deadline=None)
@given(cells_of())
def test_label_pairs_are_all_pairs_over_all_confounders(database, cells):
    confounders = {confounder for _, confounder in cells}
    expected = {
        in_cells(cells, labels, confounders)
        for labels in combinations(sorted({label for label, _ in cells}), 2)
    }
    found = subsets(database, grid(cells), "croma_label_pairs")
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, expected))


def test_subsets_are_named_for_people(con):
    cells = [("A", "X"), ("A", "Y"), ("B", "X"), ("B", "Y")]
    assert list(subsets(con, grid(cells), "croma_quartets")) == ["A | B under X | Y"]
    assert list(subsets(con, grid(cells), "croma_label_pairs")) == ["A | B"]
    assert set(subsets(con, AWKWARD, "croma_quartets")) == {
        'A | "B under X" under "X under Y" | Z',
        "A | B under Y | Z",
    }


def test_isup_grades_make_fifteen_pairs_in_their_order(con):
    con.sql("CREATE TABLE biopsies AS SELECT range AS tile, range % 6 AS class FROM range(60)")
    pairs = con.sql("""
        SELECT DISTINCT subset FROM croma_label_pairs(
            'biopsies', label := 'class', confounder := 'tile', group_id := 'tile',
            sample_id := 'tile')
        ORDER BY subset
    """).fetchall()
    assert pairs == [(f"{one} | {two}",) for one, two in combinations(range(6), 2)]


# Draws


def test_a_draw_is_the_same_in_any_order_and_any_library(con):
    """Rows of a cell are ordered by md5 of seed and id, which is what hashlib says it is."""
    frame = tiles(300, extra=[*range(300)])
    for seed in (0, 7, "seven"):
        expected = []
        for _, cell in frame.group_by("label", "confounder"):
            ids = sorted(
                cell["sample_id"], key=lambda i: hashlib.md5(f"{seed} {i}".encode()).hexdigest()
            )
            expected += ids[:20]
        for order in (frame, frame.reverse(), frame.sample(fraction=1, shuffle=True, seed=1)):
            con.register("shuffled", order)
            drawn = con.sql("FROM croma_balanced('shuffled', 20, seed := $s)", params={"s": seed})
            drawn = drawn.pl()
            assert drawn.columns == frame.columns
            assert sorted(drawn["sample_id"]) == sorted(expected)
            kept = frame.filter(pl.col("sample_id").is_in(expected))
            assert drawn.sort("sample_id").equals(kept.sort("sample_id"))


def test_another_seed_draws_others(con):
    con.register("frame_of_tiles", tiles(300))
    draws = [
        {row[0] for row in con.sql(f"FROM croma_balanced('frame_of_tiles', 20, {s})").fetchall()}
        for s in ("seed := 1", "seed := 2", "seed := 0", "sample_id := 'sample_id'")
    ]
    assert draws[2] == draws[3]
    assert len({frozenset(draw) for draw in draws}) == 3
    assert all(len(draw) == 80 for draw in draws)


def test_a_draw_goes_before_a_design(con):
    con.register("frame_of_tiles", tiles(300))
    found = con.sql("""
        WITH cells AS (FROM croma_balanced('frame_of_tiles', 20, seed := 1))
        SELECT subset, label, confounder, count(*) FROM croma_quartets('cells') GROUP BY ALL
    """).fetchall()
    assert sorted(found) == [
        ("class0 | class1 under centre0 | centre1", label, confounder, 20)
        for label, confounder in product(("class0", "class1"), ("centre0", "centre1"))
    ]


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (
            "3",
            r"n is 3, but 2 cell\(s\) have fewer rows: B under Y has 1, A under X has 2. Draw at",
        ),
        ("0", "n is 0; it is the number of rows per cell, a whole number of at least 1"),
        ("1.5", "n is 1.5; it is the number of rows per cell"),
        ("NULL", "n is NULL; it is the number of rows per cell"),
        ("1, seed := NULL", "seed is NULL; leave it out"),
        ("1, sample_id := 'class'", 'column "class" is not unique: 8 row'),
    ],
)
def test_what_cannot_be_drawn_is_told(con, n, message):
    cells = [("A", "X")] * 2 + [("A", "Y")] * 3 + [("B", "X")] * 4 + [("B", "Y")]
    con.register("frame_of_tiles", grid(cells).with_columns(sample_id="tile"))
    with pytest.raises(duckdb.InvalidInputException, match=f"croma_balanced: {message}"):
        con.sql(
            f"FROM croma_balanced('frame_of_tiles', {n}, label := 'class', confounder := 'centre')"
        ).fetchall()


@pytest.mark.parametrize("column", ["class", "centre", "slide", "tile"])
@pytest.mark.parametrize("design", ["croma_quartets", "croma_label_pairs"])
def test_rows_that_are_in_no_cell_are_told(con, design, column):
    """And not left out, also where nobody looks at their column."""
    frame = grid([("A", "X"), ("A", "Y"), ("B", "X"), ("B", "Y")])
    hole = pl.when(pl.col("tile") == 2).then(None).otherwise(pl.col(column)).alias(column)
    con.register("frame_of_tiles", frame.with_columns(hole))
    sample = "NULL" if column == "tile" else "2"
    with pytest.raises(
        duckdb.InvalidInputException, match=f'"{column}" is NULL in 1 row.*, for samples {sample}. '
    ):
        con.sql(f"SELECT count(*) FROM {design}('frame_of_tiles', {NAMED})").fetchall()


@pytest.mark.parametrize("argument", ["label", "confounder"])
@pytest.mark.parametrize("design", ["croma_quartets", "croma_label_pairs", "croma_balanced"])
def test_a_column_without_a_name_is_told(con, design, argument):
    con.register("frame_of_tiles", AWKWARD)
    n = ", 1" if design == "croma_balanced" else ", group_id := 'slide'"
    columns = {"label": "'class'", "confounder": "'centre'"} | {argument: "NULL"}
    named = ", ".join(f"{name} := {column}" for name, column in columns.items())
    with pytest.raises(duckdb.InvalidInputException, match='"NULL" is NULL in 8 row'):
        con.sql(f"FROM {design}('frame_of_tiles'{n}, {named}, sample_id := 'tile')").fetchall()


def test_an_id_in_two_cells_is_told(con):
    values = "('a', 1, 1), ('a', 2, 1), ('b', 1, 2)"
    con.execute(f"CREATE TABLE t AS FROM (VALUES {values}) t(sample_id, label, confounder)")
    with pytest.raises(duckdb.InvalidInputException, match='"sample_id" is not unique: 1 row'):
        con.sql("FROM croma_balanced('t', 1)").fetchall()


@pytest.mark.parametrize(
    "match", ["'nope'", "'Centre'", "[]::VARCHAR[]", "NULL", "['slide', 'nope']"]
)
def test_columns_to_match_that_are_not_there_are_told(con, match):
    con.register("frame_of_tiles", AWKWARD)
    with pytest.raises(
        duckdb.InvalidInputException, match=r"match is .*, but only [01] of these is"
    ):
        con.sql(f"FROM croma_isolated('frame_of_tiles', {match}, {NAMED})").fetchall()


# As benchmarks


def test_designs_are_benchmarks_and_reach_nothing_but_the_samples(root):
    import_tiles(root, tiles(300))
    drawn = "WITH drawn AS (FROM croma_balanced('samples', 20)) FROM croma_quartets('drawn')"
    assert len(croma_sql.add_benchmark(root, "drawn", drawn).rows) == 80
    (done,) = croma_sql.score(root, on_undefined="null")
    assert (done.outcome, done.n) == ("scored", 80)
    summary = croma_sql.connect(root).sql("SELECT n, croma = pooled_median FROM encoder_summary")
    assert summary.fetchall() == [(80, True)]
    for source in (root / "samples" / "d.parquet", "/etc/passwd"):
        quoted = str(source).replace("'", "''")
        with raises("benchmark 'b' fails"):
            croma_sql.add_benchmark(root, "b", f"FROM croma_quartets('{quoted}')")


def test_subsets_that_lack_a_cell_are_told(root):
    import_tiles(root, tiles(40, label=["a", "b", "c", "a"] * 10))
    pairs = "FROM croma_label_pairs('samples')"
    assert croma_sql.add_benchmark(root, "pairs", pairs)
    with raises(
        "benchmark 'b': 2 of 3 subset(s) are incomplete: 'a | b' has no 'b' under 'centre0'; "
        "'b | c' has no 'b' under 'centre0'. A subset has all its labels under all its confounders",
        "Leave it out in the WHERE, or let croma_quartets build",
    ):
        croma_sql.add_benchmark(root, "b", f"{pairs} WHERE label <> 'b' OR confounder <> 'centre0'")
    with raises("1 of 1 subset(s)", "'one' has one label, 'a'"):
        croma_sql.add_benchmark(
            root, "b", SELECT.replace(" FROM", ", 'one' AS subset FROM") + " WHERE label = 'a'"
        )
    with raises("2 of 2 subset(s)", "'centre0' has one confounder, 'centre0'; 'centre1' has one"):
        croma_sql.add_benchmark(root, "b", SELECT.replace(" FROM", ", confounder AS subset FROM"))
    assert not (root / "benchmarks" / "b.sql").exists()


@pytest.fixture
def quartets(root):
    """Three labels; all vectors of one of the cells are zero."""
    frame = random_cohort(2, n=240, labels=3).frame()
    in_cell = (pl.col("label") == "class1") & (pl.col("confounder") == "centre0")
    return frame.with_columns(embedding=pl.when(in_cell).then(ZERO).otherwise("embedding"))


def test_subsets_that_lose_a_cell_on_import_are_told(root, quartets):
    import_tiles(root, quartets, on_bad_vectors="drop")
    croma_sql.add_benchmark(root, "b", "FROM croma_quartets('samples')")
    gone = quartets.filter(pl.col("label") == "class1", pl.col("confounder") == "centre0").height
    told = (
        f"encoder 'e': {2 * gone} rows have vectors that were dropped on import",
        "2 subset(s) are incomplete: 'class0 | class1 under centre0 | centre1' has no 'class1' "
        "under 'centre0'; 'class1 | class2 under centre0 | centre1' has no 'class1' under",
        "--on-bad-vectors null",
    )
    with raises(*told):
        croma_sql.score(root, on_undefined="null")
    assert croma_sql.check(root) == []
    import_tiles(root, quartets, on_bad_vectors="null")
    (done,) = croma_sql.score(root, on_undefined="null")
    assert done.n_undefined >= 2 * gone
    import_tiles(root, quartets, on_bad_vectors="drop")
    assert "2 subset(s) are incomplete" in croma_sql.info(root).scores[0].status


def test_samples_dropped_from_cells_that_stay_filled_are_left_out(root):
    frame = random_cohort(2, n=200).frame()
    bad = pl.col("sample_id").is_in(frame["sample_id"][:3].to_list())
    some = frame.with_columns(embedding=pl.when(bad).then(ZERO).otherwise("embedding"))
    import_tiles(root, some, on_bad_vectors="drop")
    croma_sql.add_benchmark(root, "b", "FROM croma_quartets('samples')")
    (done,) = croma_sql.score(root, on_undefined="null")
    assert (done.n, done.left_out) == (197, 3)
