"""Comparisons of units in a warehouse: kept while they are true, else made again, never lost."""

import pathlib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from compared import (
    FEW,
    SELECT,
    add_vectors,
    built,
    contents,
    path_of,
    rows_of,
    score,
    tiles,
    with_vectors,
)
from mistakes import cut_short, raises

import croma_sql
from croma_sql.warehouse.scoring.schemas import CONSISTENCY


def test_what_is_up_to_date_is_skipped_and_what_was_kept_deep_stays_deep(root):
    built(root)
    assert score(root, depth=4).outcome == "compared"
    before = contents(root)
    assert score(root, depth=3) == croma_sql.score_consistency(root, depth=4, **FEW)[0]
    assert contents(root) == before
    assert score(root).outcome == "compared"  # up to all units
    assert score(root, depth=4).outcome == "up to date"
    depths = pl.read_parquet(path_of(root, "unit_neighbourhoods"))["depth"]
    assert depths.unique().to_list() == [6]
    assert score(root, threads=1).outcome == "up to date"
    assert score(root, seed=1).outcome == "compared"
    assert croma_sql.check(root) == []


def test_permutations_that_were_kept_stay(root):
    """More of the same seed; or of any, where no p is asked for."""

    def told():
        found = pl.read_parquet(path_of(root, "acquisition_pairs"))
        assert found["mantel_r"].null_count() == 0
        n_without = found["mantel_p"].null_count()
        assert n_without in (0, len(found))
        (permutations,) = found["permutations"].unique()
        return permutations, n_without == 0

    def ask(permutations, seed):
        outcome = score(root, permutations=permutations, seed=seed).outcome
        return outcome, *told()

    built(root)
    assert ask(0, 1) == ("compared", 0, False)
    assert ask(0, 2) == ("up to date", 0, False)
    assert ask(19, 1) == ("compared", 19, True)
    for permutations, seed in ((9, 1), (0, 1), (0, 5)):
        assert ask(permutations, seed) == ("up to date", 19, True)
    assert ask(9, 2) == ("compared", 9, True)
    assert ask(19, 2) == ("compared", 19, True)
    add_vectors(root, tiles(seed=3))  # as a depth is, they are made again of other vectors
    assert ask(0, 0) == ("compared", 19, True)
    assert croma_sql.check(root) == []


def test_permutations_do_not_stay_where_units_have_become_too_many(root, monkeypatch):
    for module in ("acquisitions.compared", "warehouse.scoring.consistency"):
        monkeypatch.setattr(f"croma_sql.{module}.MOST_PERMUTED", 7)
    score(built(root))
    add_vectors(root, tiles(units=8))
    with raises("8 units are too many to permute", "permutations = 0"):
        score(root)
    assert score(root, permutations=0).outcome == "compared"


def test_a_depth_beyond_the_other_units_is_all_of_them(root):
    built(root)
    assert score(root, depth=99).outcome == "compared"
    before = contents(root)
    for depth in (None, 6, 7, 99, 3):
        assert score(root, depth=depth).outcome == "up to date"
    assert contents(root) == before
    frame = tiles()
    gone = rows_of(frame, "u1", "AT2")
    add_vectors(root, with_vectors(frame, gone, np.nan), on_bad_vectors="null")
    done = score(root, incomplete="drop")
    assert (done.outcome, done.n_units) == ("compared", 6)
    for depth in (None, 5, 6, 99):
        assert score(root, incomplete="drop", depth=depth).outcome == "up to date"
    about = croma_sql.warehouse.parquet.read_metadata(path_of(root, "units"))
    assert about["parameters"]["depth"] == about["depth"] == 5
    add_vectors(root, tiles(units=9, seed=1))
    assert score(root, depth=4).outcome == "compared"
    depths = pl.read_parquet(path_of(root, "unit_neighbourhoods"))["depth"]
    assert depths.unique().to_list() == [5]
    assert croma_sql.check(root) == []


@pytest.mark.parametrize("on_bad_vectors", ["drop", "null"])
def test_a_benchmark_that_gains_what_has_no_vector_is_no_longer_up_to_date(root, on_bad_vectors):
    """A unit, then an acquisition, all vectors of which are bad."""
    frame = tiles()
    bad = ((frame["patient"] == "u6") | (frame["scanner"] == "P1000")).arg_true().to_list()
    built(root, with_vectors(frame, bad, np.nan), on_bad_vectors=on_bad_vectors)
    two = f"{SELECT} WHERE scanner <> 'P1000'"
    croma_sql.add_benchmark(root, "b", f"{two} AND patient <> 'u6'")
    assert score(root).n_units == 6
    before = contents(root)
    for select, part in (
        (two, "1 of 7 units have no vector under every acquisition: 'u6' has no 'AT2', 'GT450'"),
        (f"{SELECT} WHERE patient <> 'u6'", "6 of 6 units have no vector under every"),
        (SELECT, "7 of 7 units have no vector under every acquisition: 'u0' has no 'P1000'"),
    ):
        croma_sql.add_benchmark(root, "b", select)
        assert {one.status for one in croma_sql.info(root).scores} == {"stale"}
        assert croma_sql.check(root) == []
        with raises(part):
            score(root)
        assert contents(root) == before
    with raises("0 of 7 units have a vector under every acquisition"):
        score(root, incomplete="drop")
    croma_sql.add_benchmark(root, "b", two)
    done = score(root, incomplete="drop")
    assert (done.outcome, done.n_units, done.n_incomplete, done.left_out) == ("compared", 6, 1, 6)
    assert score(root, incomplete="drop") == replace(done, outcome="up to date")
    with raises("1 of 7 units have no vector"):
        score(root)
    assert croma_sql.check(root) == []


def test_every_file_says_what_made_it(root):
    score(built(root))
    for table in CONSISTENCY:
        about = croma_sql.warehouse.parquet.read_metadata(path_of(root, table))
        assert about["parameters"] == {"permutations": 9, "seed": 0, "depth": 6}
        assert (about["format"], about["version"]) == (1, croma_sql.__version__)
        assert (about["n_units"], about["n_acquisitions"], about["depth"]) == (7, 3, 6)


def test_other_vectors_rows_or_versions_are_compared_again(root, monkeypatch):
    frame = tiles()
    score(built(root, frame))
    croma_sql.import_samples(root, frame.drop("embedding").with_columns(age=1), dataset="d")
    assert score(root).outcome == "up to date"  # attributes are no part of it
    add_vectors(root, frame.with_columns(embedding=np.stack(frame["embedding"].to_numpy()) * 2 + 1))
    assert {one.status for one in croma_sql.info(root).scores} == {"stale"}
    assert croma_sql.check(root) == []
    assert score(root).outcome == "compared"
    croma_sql.add_benchmark(root, "b", SELECT + " WHERE tile > 0")
    assert {one.status for one in croma_sql.info(root).scores} == {"stale"}
    assert croma_sql.check(root) == []
    assert score(root).outcome == "compared"
    assert len(pl.read_parquet(root / "scores/members/benchmark=b/members.parquet")) == 42
    monkeypatch.setattr("croma_sql.warehouse.scoring.plan.__version__", "0.0.0")
    assert score(root).outcome == "compared"


@pytest.mark.parametrize("spoil", [cut_short, lambda path: path.unlink()], ids=["short", "gone"])
@pytest.mark.parametrize("table", ["units", "acquisitions", "members"])
def test_what_is_damaged_or_gone_is_made_again(root, table, spoil):
    score(built(root))
    before = contents(root)
    members = root / "scores/members/benchmark=b/members.parquet"
    spoil(members if table == "members" else path_of(root, table))
    assert score(root).outcome == ("up to date" if table == "members" else "compared")
    assert contents(root) == before


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, StoppedError])
@pytest.mark.parametrize("reading", [True, False], ids=["reading", "comparing"])
def test_an_interrupted_run_changes_nothing_and_the_next_goes_on(root, error, reading):
    frame = tiles()
    built(root, frame)
    add_vectors(root, frame, encoder="f")
    score(root, encoder="f", permutations=19)
    before = contents(root)

    def stop(benchmark, encoder, progress):
        if isinstance(progress, float) == reading:
            raise error

    with pytest.raises(error):
        croma_sql.score_consistency(root, on_progress=stop, permutations=19)
    assert contents(root) == before
    done = croma_sql.score_consistency(root, permutations=19)
    assert [one.outcome for one in done] == ["compared", "up to date"]
    assert croma_sql.check(root) == []


def test_a_run_that_ends_between_two_files_is_finished_by_the_next(root, monkeypatch):
    score(built(root))
    move = pathlib.Path.replace

    def fail_for_units(self, target):
        if target.name == "units.parquet":
            raise OSError(28, "No space left on device")
        return move(self, target)

    with monkeypatch.context() as context:
        context.setattr(pathlib.Path, "replace", fail_for_units)
        with raises("cannot write", "units.parquet", "No space left"):
            score(root, permutations=19)
    assert score(root, permutations=19).outcome == "compared"
    assert croma_sql.check(root) == []
