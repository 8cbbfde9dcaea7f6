"""Slides imported again: what is new is read, what has changed is replaced, all else stays."""

import os
import re
import shutil

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from by_slide import (
    bring,
    contents,
    part_files,
    places,
    samples,
    stored,
    table,
    vectors,
    write,
    write_slides,
)
from slide_files import trident_patches

import croma_sql
from croma_sql.errors import SourceError, WarehouseError
from croma_sql.importers.sources import Rows, SourceFile
from croma_sql.warehouse.layout import create_warehouse
from croma_sql.warehouse.slides.asked import Asked
from croma_sql.warehouse.slides.slides import import_slides

pytestmark = pytest.mark.usefixtures("small_parts")


def raises(*parts, error=SourceError):
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, parts)))


def counts(done):
    return done.slides.new, done.slides.changed, done.slides.unchanged, done.slides.gone


@pytest.fixture
def source(tmp_path):
    write_slides(tmp_path / "in", [40, 50, 30, 70, 20, 45])
    return tmp_path / "in"


def is_what_is_in(root, folder):
    """Tell whether vectors and places are those of the files of a folder."""
    import h5py

    found, known = stored(root), samples(root)
    expected = {}
    for path in sorted(folder.rglob("*.h5")):
        with h5py.File(path) as file:
            features, coords = file["features"][:], file["coords"][:]
        expected |= {f"{path.stem}:{i}": tuple(row) for i, row in enumerate(features.tolist())}
        tiles = known.filter(slide_id=path.stem).select("x", "y").to_numpy()
        assert np.array_equal(tiles, coords.astype(float)), path
    assert {name: tuple(row) for name, row in found.items()} == expected
    assert known["sample_id"].to_list() == list(expected)
    assert croma_sql.check(root) == []


def test_nothing_is_read_or_written_again(root, source):
    bring(root, source)
    before, times = contents(root), {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    done = bring(root, source)
    assert counts(done) == (0, 0, 6, 0) and done.n == 255
    assert contents(root) == before
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == times


def test_new_slides_are_added(root, source):
    bring(root, source)
    before = {path.name for path in part_files(root)}
    write(source, "s0025", 60)
    write(source, "a", 33)
    assert counts(bring(root, source)) == (2, 0, 6, 0)
    is_what_is_in(root, source)
    assert {path.name for path in part_files(root)} & before  # full parts stay


def test_a_changed_slide_is_replaced_and_what_lay_beside_it_copied(root, source):
    bring(root, source)
    rows = table(root, "SELECT slide_id, part FROM sources")
    part = rows.filter(slide_id="s001")["part"].item()
    beside = set(rows.filter(part=part)["slide_id"]) - {"s001"}
    assert beside
    write(source, "s001", 50, vectors("new", 50))
    for slide in beside:
        (source / f"{slide}.h5").unlink()  # a copy, and nothing else, can give it
    done = bring(root, source)
    assert counts(done) == (0, 1, 5 - len(beside), len(beside))
    found = stored(root)
    assert np.array_equal(np.array([found[f"s001:{i}"] for i in range(50)]), vectors("new", 50))
    for slide in beside:
        n = len(samples(root).filter(slide_id=slide))
        rows = np.array([found[f"{slide}:{i}"] for i in range(n)])
        assert np.array_equal(rows, vectors(slide, n))
    assert croma_sql.check(root) == []


@pytest.mark.parametrize("n", [20, 90, 0])
def test_a_slide_gets_another_number_of_tiles(root, source, n):
    bring(root, source)
    write(source, "s003", n)
    assert counts(bring(root, source)) == (0, 1, 5, 0)
    assert samples(root).height == 255 - 70 + n
    is_what_is_in(root, source)


def test_attributes_stay_with_their_samples(root, source):
    label = pl.DataFrame({"slide_id": ["s000", "s003"], "label": ["a", "b"]})
    bring(root, source, samples=label)
    moved = places("s003", 70) + 1
    write(source, "s003", 70, coords=moved)
    write(source, "s009", 5)
    done = bring(root, source)
    assert "samples that are new have no 'label' yet" in done.notes[-1]
    known = samples(root)
    assert known.filter(slide_id="s003")["label"].to_list() == ["b"] * 70
    assert known.filter(slide_id="s000")["label"].to_list() == ["a"] * 40
    assert known.filter(slide_id="s009")["label"].null_count() == 5
    is_what_is_in(root, source)


def test_a_slide_that_lost_its_places_has_none(root, source):
    bring(root, source)
    write(source, "s003", 70, coords=False)
    bring(root, source)
    assert samples(root).filter(slide_id="s003")["x"].null_count() == 70
    assert samples(root)["x"].null_count() == 70


def test_a_folder_that_grows_by_a_slide_a_day_does_not_end_in_as_many_files(root, tmp_path):
    for day in range(12):
        write(tmp_path / "in", f"s{day:03}", 15)
        bring(root, tmp_path / "in")
    assert len(part_files(root)) <= 12 * 15 // 50
    is_what_is_in(root, tmp_path / "in")


def test_slides_that_are_gone_are_kept(root, source):
    bring(root, source)
    before = contents(root)
    (source / "s002.h5").unlink()
    done = bring(root, source)
    assert counts(done) == (0, 0, 5, 1) and done.n == 255
    assert contents(root) == before


def test_a_folder_that_has_moved_is_known(root, source, tmp_path):
    bring(root, source)
    before = contents(root)
    shutil.move(source, tmp_path / "elsewhere")
    assert counts(bring(root, tmp_path / "elsewhere")) == (0, 0, 6, 0)
    after = contents(root)
    changed = [str(path) for path in before if after[path] != before[path]]
    assert changed == ["sources/encoder=e/d.parquet"]
    found = table(root, "SELECT DISTINCT path FROM sources")["path"].to_list()
    assert all(path.startswith(str(tmp_path / "elsewhere")) for path in found)


def test_a_copy_is_the_same_and_another_file_is_refused(root, source, tmp_path):
    bring(root, source)
    before = contents(root)
    shutil.copytree(source, tmp_path / "copy")
    assert counts(bring(root, tmp_path / "copy")) == (0, 0, 6, 0)
    assert contents(root) == before
    write(tmp_path / "copy", "s002", 30, vectors("other", 30), at=5)
    with raises("'s002'", str(source / "s002.h5"), "still there", str(tmp_path / "copy/s002.h5")):
        bring(root, tmp_path / "copy")
    assert contents(root) == before
    (source / "s002.h5").unlink()
    assert counts(bring(root, tmp_path / "copy")) == (0, 1, 5, 0)


def test_the_same_time_and_another_size_is_a_change_and_the_other_way_round(root, source):
    bring(root, source)
    at = (source / "s000.h5").stat().st_mtime
    write(source, "s000", 41, at=at)
    assert counts(bring(root, source)) == (0, 1, 5, 0)
    os.utime(source / "s000.h5", (7, 7))
    assert counts(bring(root, source)) == (0, 1, 5, 0)
    is_what_is_in(root, source)


# Vectors without direction


@pytest.fixture
def bad(tmp_path):
    features = vectors("bad", 30)
    features[[3, 7]], features[9, 2] = 0, np.nan
    write(tmp_path / "in", "bad", 30, features)
    write(tmp_path / "in", "good", 30)
    return tmp_path / "in"


def test_bad_vectors_are_refused_by_slide_and_row(root, bad):
    with raises(str(bad / "bad.h5"), "3 of 30 vectors of slide 'bad'", "row(s) 3, 7, 9",
                "--on-bad-vectors"):  # fmt: skip
        bring(root, bad)
    assert not (root / "samples").exists() and not (root / "sources").exists()


def test_bad_vectors_are_dropped_or_null(root, bad):
    done = bring(root, bad, on_bad_vectors="drop")
    assert (done.n, done.bad) == (57, 3)
    assert stored(root).keys() >= {"bad:2", "bad:4"} and "bad:3" not in stored(root)
    assert samples(root).height == 60
    assert croma_sql.info(root).encoders[0].dropped == 3
    assert croma_sql.check(root) == []
    assert counts(bring(root, bad, on_bad_vectors="drop")) == (0, 0, 2, 0)
    with raises("3 of 30 vectors of slide 'bad'"):
        bring(root, bad)
    done = bring(root, bad, on_bad_vectors="null")
    assert (counts(done), done.n, done.bad) == ((0, 1, 1, 0), 60, 3)
    assert [i for i in range(30) if stored(root)[f"bad:{i}"] is None] == [3, 7, 9]
    assert croma_sql.check(root) == []
    write(bad, "new", 10)
    (bad / "bad.h5").unlink()
    assert counts(bring(root, bad, on_bad_vectors="null")) == (1, 0, 1, 1)  # copied, NULL as it is
    assert [i for i in range(30) if stored(root)[f"bad:{i}"] is None] == [3, 7, 9]
    assert croma_sql.check(root) == []


def test_dropped_vectors_are_copied_as_such(root, bad):
    bring(root, bad, on_bad_vectors="drop")
    before = stored(root)
    write(bad, "new", 10)
    (bad / "bad.h5").unlink()
    assert counts(bring(root, bad, on_bad_vectors="drop")) == (1, 0, 1, 1)
    assert {name: row for name, row in stored(root).items() if "new" not in name} == before
    assert croma_sql.info(root).encoders[0].dropped == 3
    assert croma_sql.check(root) == []


def test_a_slide_of_which_all_is_dropped(root, bad):
    write(bad, "a", 4, np.zeros((4, 8), np.float16))
    write(bad, "lost", 5, np.full((5, 8), np.inf, np.float16))
    done = bring(root, bad, on_bad_vectors="drop")
    assert (done.n, done.bad, samples(root).height) == (57, 12, 69)
    assert croma_sql.check(root) == []
    write(bad, "z", 7)
    (bad / "a.h5").unlink()
    assert counts(bring(root, bad, on_bad_vectors="drop")) == (1, 0, 3, 1)
    assert croma_sql.info(root).encoders[0].dropped == 12
    assert croma_sql.check(root) == []


def test_not_one_vector_has_a_direction(root, tmp_path):
    write(tmp_path, "s", 5, np.zeros((5, 8), np.float16))
    with raises("not one of the vectors has a direction"):
        bring(root, tmp_path, on_bad_vectors="drop")


# The two forms of import


def test_slides_take_the_place_of_a_whole_and_the_other_way_round(root, source, tmp_path):
    bring(root, source)
    slides, known = contents(root), samples(root)
    matrix = np.array([stored(root)[name] for name in known["sample_id"]], np.float16)
    np.save(tmp_path / "all.npy", matrix)
    bring(root, tmp_path / "all.npy", samples=known)
    assert not part_files(root) and croma_sql.check(root) == []
    origin = table(root, "FROM sources").row(0, named=True)
    assert (origin["part"], origin["n"], origin["format"]) == (None, 255, "npy")
    assert origin["path"] == str(tmp_path / "all.npy")
    assert counts(bring(root, source)) == (6, 0, 0, 0)
    assert contents(root) == slides
    bring(root, known.select("sample_id", embedding=pl.Series(matrix.tolist())))
    assert not list(root.glob("sources/*/*")) and not part_files(root)  # nobody knows where from
    assert croma_sql.check(root) == []


# Files that hold samples with ids of their own


def held(path, ids, seed=0, **attributes):
    """A source of samples, in memory but for its size and time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * len(ids))
    matrix = np.random.default_rng(seed).standard_normal((len(ids), 4)).astype(np.float32)
    known = pa.table({"sample_id": ids} | attributes)

    def read(start, stop):
        return Rows(known.slice(start, stop - start), matrix[start:stop])

    return SourceFile(
        path, "npz", "sample", None, len(ids), 4, "float32", len(ids), path.stat().st_mtime_ns, read
    )


def bring_held(root, *sources, encoder="e", dataset="d"):
    how = Asked(create_warehouse(root), encoder, dataset, "", None, "error", [], None, 2)
    return import_slides(how, sources)


def test_samples_with_ids_of_their_own(root, tmp_path):
    first = held(tmp_path / "a/x.npz", ["p3", "p1", "p2"], centre=["A", "A", None], n=[1, 2, 3])
    second = held(tmp_path / "b/x.npz", ["q1"], label=["t"], n=[1.5])
    bring_held(root, first, second)
    assert samples(root).rows() == [
        ("p3", "A", 1.0, None), ("p1", "A", 2.0, None), ("p2", None, 3.0, None),
        ("q1", None, 1.5, "t"),
    ]  # fmt: skip
    assert counts(bring_held(root, first, second)) == (0, 0, 2, 0)
    bring_held(root, held(tmp_path / "c/x.npz", ["p0", "p1"], centre=["C", "C"]), encoder="f")
    assert samples(root)["sample_id"].to_list() == ["p3", "p1", "p2", "q1", "p0"]
    assert samples(root)["centre"].to_list() == ["A", "C", None, None, "C"]
    assert croma_sql.check(root) == []


def test_samples_of_a_changed_file_are_replaced(root, tmp_path):
    bring_held(root, held(tmp_path / "x.npz", ["a", "b", "c"]), held(tmp_path / "y.npz", ["d"]))
    bring_held(root, held(tmp_path / "z.npz", ["b"]), encoder="f")
    changed = held(tmp_path / "x.npz", ["e", "c"], seed=1)
    assert counts(bring_held(root, changed)) == (0, 1, 0, 1)
    assert samples(root)["sample_id"].to_list() == ["b", "c", "d", "e"]  # b has a vector under f
    assert set(stored(root)) == {"c", "d", "e"}
    assert croma_sql.check(root) == []


def test_ids_that_are_not_unique_are_refused(root, tmp_path):
    with raises("1 sample_id(s) are in more than one row", "'a'"):
        bring_held(root, held(tmp_path / "x.npz", ["a", "b"]), held(tmp_path / "y.npz", ["a"]))
    with raises("column 'sample_id' is empty in 1 of 2 rows"):
        bring_held(root, held(tmp_path / "x.npz", ["a", None]))
    bring_held(root, held(tmp_path / "x.npz", ["a", "b"]))
    with raises("1 sample_id(s) have vectors of this encoder from other files", "'b'"):
        bring_held(root, held(tmp_path / "z.npz", ["b", "c"]))
    with raises("1 sample_id(s) are already in dataset 'd'", error=WarehouseError):
        bring_held(root, held(tmp_path / "z.npz", ["b", "c"]), dataset="other")


def test_a_file_of_samples_that_has_moved(root, tmp_path):
    bring_held(root, held(tmp_path / "a/x.npz", ["a", "b"]), held(tmp_path / "b/x.npz", ["c"]))
    at = (tmp_path / "a/x.npz").stat().st_mtime_ns
    (tmp_path / "a/x.npz").unlink()
    moved = held(tmp_path / "c/x.npz", ["a", "b"])
    os.utime(moved.path, ns=(at, at))
    same = SourceFile(*(getattr(moved, n) for n in moved.__slots__[:8]), at, moved.read)
    assert counts(bring_held(root, same)) == (0, 0, 1, 1)


def test_columns_that_do_not_go_together(root, tmp_path):
    with raises("a column of the samples is of another type"):
        bring_held(
            root,
            held(tmp_path / "x.npz", ["a"], n=[1]),
            held(tmp_path / "y.npz", ["b"], n=["one"]),
        )
    with raises("dataset"):
        bring_held(root, held(tmp_path / "x.npz", ["a"], dataset=["z"]))


def test_two_files_of_one_slide(root, tmp_path):
    one = write(tmp_path / "a", "s", 5)
    two = write(tmp_path / "b", "s", 6)
    sources = [
        SourceFile(path, "h5", "tile", "s", 5, 8, "float16", 1, 1, lambda *_: None)
        for path in (one, two)
    ]
    with raises("'s'", str(one), str(two), "--slide-id path"):
        bring_held(root, *sources)


def test_places_are_kept_where_they_are_not_given_again(root, tmp_path):
    write(tmp_path / "in", "s", 30, coords=False)
    write(tmp_path / "in", "t", 20)
    trident_patches(tmp_path / "patches", "s", places("s", 30))
    bring(root, tmp_path / "in", coordinates=tmp_path / "patches")
    before = contents(root)
    assert counts(bring(root, tmp_path / "in")) == (0, 0, 2, 0)
    assert contents(root) == before
    moved = trident_patches(tmp_path / "others", "s", places("s", 30) + 1).parent
    assert counts(bring(root, tmp_path / "in", coordinates=moved)) == (0, 1, 1, 0)
    found = samples(root).filter(slide_id="s").select("x", "y").to_numpy()
    assert np.array_equal(found, places("s", 30) + 1)


def test_of_several_tables_all_are_joined_or_none(root, source, tmp_path):
    bring(root, source)
    before = contents(root)
    good = pl.DataFrame({"slide_id": ["s001"], "centre": ["A"]})
    bad = pl.DataFrame({"slide_id": ["s001"], "x": [1.0]})
    with raises("the samples have 'x' already"):
        bring(root, source, samples=[good, bad])
    assert contents(root) == before


def test_a_file_is_not_imported_under_two_names(root, tmp_path):
    path = write(tmp_path / "in" / "a", "s", 30)
    bring(root, tmp_path / "in", slide_id="path")
    before = contents(root)
    for folder, slide_id in ((tmp_path / "in" / "a", "path"), (tmp_path / "in", "stem")):
        with raises(f"{path} was imported as slide 'a/s', and would be 's' now"):
            bring(root, folder, slide_id=slide_id)
    assert contents(root) == before


def test_tables_that_are_not_there_are_told_before_anything_is_read(root, source, tmp_path):
    with raises(f"{tmp_path / 'no.csv'} does not exist"):
        bring(root, source, samples=tmp_path / "no.csv")
    assert not root.exists()
