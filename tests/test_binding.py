"""A benchmark sees the datasets it was made of, whatever is imported or pooled later."""

import polars as pl
import pytest
from mistakes import SELECT, import_tiles, raises, tiles

import croma_sql

PAIRED = """
    SELECT sample_id, group_id AS unit, confounder AS acquisition FROM samples
"""


def others(prefix="x"):
    frame = tiles()
    return frame.with_columns(sample_id=prefix + pl.col("sample_id"))


def outcomes(root):
    return [(one.encoder, one.outcome, one.n) for one in croma_sql.score(root, on_undefined="null")]


def text_of(root, name="b"):
    return (root / "benchmarks" / f"{name}.sql").read_text()


def test_pooling_changes_no_benchmark(root):
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    assert outcomes(root) == [("e", "scored", 40)]
    croma_sql.pool(root, encoder="e", to="e mean", dataset="slides", by=["group_id"])
    assert outcomes(root) == [("e", "up to date", 40), ("e mean", "no vectors", 0)]
    assert text_of(root) == f'-- datasets: ["d"]\n-- undefined: null\n{SELECT}\n'


def test_a_copied_cohort_enters_no_benchmark(root):
    import_tiles(root)
    croma_sql.add_benchmark(root, "b", SELECT)
    assert outcomes(root) == [("e", "scored", 40)]
    import_tiles(root, others(), encoder="f", dataset="copy")
    assert outcomes(root) == [("e", "up to date", 40), ("f", "no vectors", 0)]


def test_rows_come_from_all_datasets_there_are_but_pooled_ones(root):
    import_tiles(root)
    import_tiles(root, others(), dataset="Łódź 'new'")
    croma_sql.pool(root, encoder="e", to="e mean", dataset="slides", by=["group_id"])
    made = croma_sql.add_benchmark(root, "b", SELECT)
    assert (made.bound.datasets, made.bound.sees_later) == (("Łódź 'new'", "d"), False)
    assert len(made.rows) == 80
    assert text_of(root).startswith('-- datasets: ["Łódź \'new\'", "d"]\n')


def test_a_select_that_names_its_dataset_is_bound_to_it(root):
    import_tiles(root)
    import_tiles(root, others(), dataset="copy")
    made = croma_sql.add_benchmark(root, "b", f"{SELECT} WHERE dataset = 'copy'")
    assert made.bound.datasets == ("copy",)
    assert made.rows.column("sample_id").to_pylist()[0].startswith("x")


def test_pooled_samples_alone_are_a_benchmark(root):
    import_tiles(root)
    croma_sql.pool(
        root, encoder="e", to="e mean", dataset="slides", by=["group_id", "label"], prefix="p "
    )
    with raises("benchmark 'b' fails", "It sees the datasets 'd'"):
        croma_sql.add_benchmark(root, "b", "SELECT nothing FROM samples", datasets=["d"])
    pairs = "SELECT sample_id, group_id AS unit, label AS acquisition FROM samples"
    made = croma_sql.add_benchmark(root, "pairs", f"{pairs} WHERE n_pooled IS NOT NULL")
    assert made.bound.datasets == ("slides",)
    named = croma_sql.add_benchmark(root, "named", pairs, datasets="slides")
    assert named.rows.equals(made.rows)


def test_all_datasets_are_seen_where_the_benchmark_says_so(root):
    import_tiles(root)
    made = croma_sql.add_benchmark(root, "b", SELECT, datasets="all")
    assert made.bound.sees_later
    assert text_of(root) == f"-- datasets: all\n{SELECT}\n"
    import_tiles(root, others(), dataset="copy")
    croma_sql.pool(root, encoder="e", to="e mean", dataset="slides", by=["group_id"])
    with raises("benchmark 'b': label is NULL in 8 of 88 rows"):
        croma_sql.score(root)


def test_a_file_written_by_hand_sees_every_dataset_but_pooled_ones(root):
    import_tiles(root)
    (root / "benchmarks").mkdir()
    (root / "benchmarks" / "b.sql").write_text(f"-- by hand\n{SELECT}\n")
    croma_sql.pool(root, encoder="e", to="e mean", dataset="slides", by=["group_id"])
    assert outcomes(root) == [("e", "scored", 40), ("e mean", "no vectors", 0)]
    import_tiles(root, others(), dataset="copy")
    assert outcomes(root)[0] == ("e", "scored", 80)


def test_a_benchmark_of_a_dataset_that_is_gone(root):
    import_tiles(root)
    import_tiles(root, others(), dataset="copy")
    croma_sql.add_benchmark(root, "b", SELECT, datasets=["copy"])
    (root / "samples" / "copy.parquet").unlink()
    with raises(
        "benchmark 'b' is bound to dataset 'copy', which", "does not have; it has 'd'.",
        "Import it again, or make the benchmark again from others: croma-sql benchmark --dataset",
    ):  # fmt: skip
        croma_sql.score(root)
    with raises("benchmark 'c' is bound to dataset 'nowhere'"):
        croma_sql.add_benchmark(root, "c", SELECT, datasets=["nowhere"])
    with raises("datasets is empty"):
        croma_sql.add_benchmark(root, "c", SELECT, datasets=[])


@pytest.mark.parametrize("line", ["from Oslo", "[]", "[1]", '"d"', "{", "[" * 100_000])
def test_a_line_that_names_no_datasets(root, line):
    import_tiles(root)
    with raises("benchmark 'b': the line '-- datasets: ", "correct it, or begin the comment"):
        croma_sql.add_benchmark(root, "b", f"-- datasets: {line}\n{SELECT}")


def test_the_file_of_a_benchmark_is_one_select_that_brings_its_binding(root, tmp_path):
    import_tiles(root)
    import_tiles(root, others(), dataset="copy")
    made = croma_sql.add_benchmark(root, "b", SELECT, datasets=["copy"])
    again = croma_sql.add_benchmark(root, "again", text_of(root))
    assert again.rows.equals(made.rows)
    assert text_of(root, "again") == text_of(root)
    assert len(croma_sql.connect(root).sql(text_of(root))) == 80  # SQL elsewhere sees them all


def test_paired_benchmarks_are_bound_too(root):
    frame = tiles(confounder=["A", "B"] * 20, group_id=[f"u{i // 2}" for i in range(40)])
    import_tiles(root, frame)
    made = croma_sql.add_benchmark(root, "b", PAIRED)
    import_tiles(root, frame.with_columns(sample_id="x" + pl.col("sample_id")), dataset="copy")
    assert made.bound.datasets == ("d",)
    (one,) = croma_sql.score_consistency(root, permutations=9)
    assert (one.outcome, one.n_units) == ("compared", 20)


def test_info_names_the_datasets_of_a_benchmark(root):
    import_tiles(root)
    croma_sql.add_benchmark(root, "all", SELECT, datasets="all")
    croma_sql.add_benchmark(root, "b", SELECT)
    told = [(one.datasets, one.sees_later) for one in croma_sql.info(root).benchmarks]
    assert told == [(["d"], True), (["d"], None)]
