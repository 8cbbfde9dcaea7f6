"""Vectors imported slide by slide: what is there afterwards, and that everything works on it."""

import re
import zlib

import numpy as np
import polars as pl
import pytest
from by_slide import (
    D,
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

import croma_sql
from croma_sql.errors import SourceError

pytestmark = pytest.mark.usefixtures("small_parts")
SIZES = (30, 0, 45, 250, 5, 60, 60, 1)
SELECT = "SELECT sample_id, label, confounder, slide_id AS group_id FROM samples"


def raises(*parts, error=SourceError):
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, parts)))


def test_ids_places_and_every_bit_of_the_vectors(root, tmp_path):
    names = write_slides(tmp_path / "in", SIZES)
    done = bring(root, tmp_path / "in")
    assert (done.n, done.d, done.dtype, done.bad) == (sum(SIZES), D, "float16", 0)
    assert (done.slides.new, done.slides.empty, done.slides.total) == (8, 1, 8)
    found, known = stored(root), samples(root)
    assert known.columns == ["sample_id", "slide_id", "tile", "x", "y", "coord_unit", "tile_size"]
    assert known["sample_id"].to_list() == [
        f"{name}:{i}" for name, n in zip(names, SIZES, strict=True) for i in range(n)
    ]
    for name, n in zip(names, SIZES, strict=True):
        rows = [found[f"{name}:{i}"] for i in range(n)]
        expected = vectors(name, n)
        assert np.array_equal(np.array(rows, np.float16).reshape(n, D), expected)
        tiles = known.filter(slide_id=name)
        assert np.array_equal(tiles.select("x", "y").to_numpy(), places(name, n).astype(float))
        assert tiles["tile"].to_list() == list(range(n))
        assert set(tiles["coord_unit"]) <= {"px"} and set(tiles["tile_size"]) <= {512.0}
    assert croma_sql.check(root) == []


def test_parts_are_as_large_as_they_may_be_and_slides_stand_in_order(root, tmp_path):
    names = write_slides(tmp_path / "in", SIZES)
    bring(root, tmp_path / "in")
    sizes = {path.stem: pl.read_parquet(path).height for path in part_files(root)}
    rows = table(root, "FROM sources ORDER BY slide_id, first_row")
    kept = rows.filter(pl.col("n") > 0)
    assert kept.select("slide_id", "first_row", "n", "part_row").rows() == [
        ("s000", 0, 30, 0),
        ("s002", 0, 45, 30),
        ("s003", 0, 100, 0),
        ("s003", 100, 100, 0),
        ("s003", 200, 50, 0),
        ("s004", 0, 5, 50),
        ("s005", 0, 60, 0),
        ("s006", 0, 60, 0),
        ("s007", 0, 1, 60),
    ]
    assert [sizes[part] for part in kept["part"].unique(maintain_order=True)] == [
        75, 100, 100, 55, 60, 61,
    ]  # fmt: skip
    assert set(sizes) == set(kept["part"])
    assert rows.filter(pl.col("n") == 0)["slide_id"].to_list() == [names[1]]


def test_sources_say_where_everything_is_from(root, tmp_path):
    path = write(tmp_path / "in", "a 'b'.c", 12, at=1_700_000_000, note="x")
    bring(root, tmp_path / "in")
    row = table(root, "FROM sources").row(0, named=True)
    assert row.pop("modified").timestamp() == 1_700_000_000
    assert '"note":"x"' in row.pop("attributes").replace(" ", "")
    assert len(row.pop("part")) == 16
    assert row == {
        "encoder": "e", "dataset": "d", "slide_id": "a 'b'.c", "level": "tile", "format": "trident",
        "embedding": None, "path": str(path), "size": path.stat().st_size, "first_row": 0, "n": 12,
        "n_dropped": 0, "n_null": 0, "part_row": 0, "d": D, "dtype": "float16",
        "checksum": zlib.crc32(vectors("a 'b'.c", 12).tobytes()),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_vectors_keep_their_precision(root, tmp_path, dtype):
    features = vectors("s", 40, dtype=dtype)
    write(tmp_path, "s", 40, features)
    assert bring(root, tmp_path).dtype == str(np.dtype(dtype))
    found = stored(root)
    assert np.array_equal(np.array([found[f"s:{i}"] for i in range(40)], dtype), features)
    checksums = table(root, "SELECT checksum, n FROM sources ORDER BY first_row")
    start = 0
    for checksum, n in checksums.rows():
        assert checksum == zlib.crc32(features[start : start + n].tobytes())
        start += n


def test_threads_change_no_byte(tmp_path):
    write_slides(tmp_path / "in", SIZES * 3)
    for threads in (1, 2, 7):
        bring(tmp_path / f"W{threads}", tmp_path / "in", threads=threads)
    first, *others = (contents(tmp_path / f"W{threads}") for threads in (1, 2, 7))
    assert all(other == first for other in others)


def cohort(names):
    """Attributes of slides, under which margins can be asked for."""
    return pl.DataFrame(
        {
            "slide_id": names,
            "label": [("tumour", "normal")[i % 2] for i in range(len(names))],
            "confounder": [("A", "B")[i // 2 % 2] for i in range(len(names))],
        }
    )


@pytest.fixture
def both(tmp_path):
    """The same vectors by slide and as a whole, and the same benchmark on both."""
    names = write_slides(tmp_path / "in", [30, 40, 25, 30, 20, 33, 41, 17])
    slides, whole = tmp_path / "slides", tmp_path / "whole"
    bring(slides, tmp_path / "in", samples=cohort(names))
    known = samples(slides)
    matrix = np.concatenate(
        [
            vectors(name, n)
            for name, n in known.group_by("slide_id", maintain_order=True).len().rows()
        ]
    )
    np.save(tmp_path / "all.npy", matrix)
    bring(whole, tmp_path / "all.npy", samples=known)
    for root in (slides, whole):
        croma_sql.add_benchmark(root, "b", SELECT)
    assert len(part_files(slides)) > 2
    return slides, whole


def same(both, *queries):
    with croma_sql.connect(both[0]) as by_slide, croma_sql.connect(both[1]) as whole:
        for query in queries:
            expected = whole.sql(query).pl()
            assert len(expected) and by_slide.sql(query).pl().equals(expected), query


def test_scores_are_those_of_the_same_vectors_imported_as_a_whole(both):
    for root in both:
        assert [one.outcome for one in croma_sql.score(root, k=5, m=5)] == ["scored"]
        croma_sql.add_benchmark(root, "few", f"{SELECT} WHERE tile < 5")
        croma_sql.score_centre(root, benchmark="few", trials=3, k_range=(2, 4))
    same(
        both,
        "FROM typed_neighbours ORDER BY ALL",
        "FROM margins ORDER BY ALL",
        "FROM neighbours ORDER BY ALL",
        "FROM silhouettes ORDER BY ALL",
        "FROM centre_encoding ORDER BY ALL",
        "SELECT encoder, dataset, sample_id, embedding FROM embeddings ORDER BY ALL",
    )
    for root in both:
        again = croma_sql.score(root, benchmark="b", k=5, m=5)
        assert [one.outcome for one in again] == ["up to date"]
        assert croma_sql.check(root) == []
        assert {one.status for one in croma_sql.info(root).scores} == {"up to date"}


def test_harmonised_vectors_are_those_of_the_same_imported_as_a_whole(both):
    for root in both:
        done = croma_sql.harmonise(root, encoder="e", benchmark="b", method="combat")
        assert (done.outcome, done.n) == ("harmonised", 236)
        again = croma_sql.harmonise(root, encoder="e", benchmark="b", method="combat")
        assert again.outcome == "up to date"
        assert croma_sql.check(root) == []
    same(
        both,
        "SELECT * EXCLUDE (dataset) FROM embeddings WHERE encoder = 'e combat' ORDER BY ALL",
        "FROM harmonised_encoders",
    )
    found = {(one.name, one.dataset): one for one in croma_sql.info(both[0]).encoders}
    assert set(found) == {("e", "d"), ("e combat", "d")}
    assert found["e combat", "d"].status == "up to date"
    with raises("encoder 'e' is there already", error=croma_sql.CromaSqlError):
        croma_sql.harmonise(both[0], encoder="e combat", benchmark="b", to="e")


def test_units_under_acquisitions_are_compared_as_those_of_a_whole(both):
    for root in both:
        croma_sql.add_benchmark(
            root,
            "p",
            "SELECT sample_id, tile AS unit, slide_id AS acquisition FROM samples WHERE tile < 12",
        )
        croma_sql.score_consistency(root, benchmark="p")
    same(
        both,
        "FROM unit_consistency ORDER BY ALL",
        "FROM acquisitions ORDER BY ALL",
    )


def test_one_line_of_info_however_many_parts(both):
    (found,) = croma_sql.info(both[0]).encoders
    assert (found.name, found.dataset, found.n, found.slides) == ("e", "d", 236, 8)
    assert croma_sql.info(both[1]).encoders[0].slides is None


# What does not fit together


def test_another_encoder_has_the_same_tiles(root, tmp_path):
    names = write_slides(tmp_path / "e", [30, 40])
    write(tmp_path / "f", names[0], 30, vectors("other", 30))
    write(tmp_path / "f", "s009", 10)
    bring(root, tmp_path / "e")
    done = bring(root, tmp_path / "f", encoder="f")
    assert done.notes[-1].startswith(
        "1 of 3 slides of dataset 'd' have vectors under other encoders"
    )
    assert samples(root)["slide_id"].unique(maintain_order=True).to_list() == [*names, "s009"]
    assert len(samples(root)) == 80
    assert croma_sql.check(root) == []


def test_another_number_of_tiles_is_refused(root, tmp_path):
    names = write_slides(tmp_path / "e", [30, 40])
    bring(root, tmp_path / "e")
    before = contents(root)
    write(tmp_path / "f", names[1], 39)
    with raises("1 slide(s) have another number", "'e'", "'s001' has 39 here and 40 there"):
        bring(root, tmp_path / "f", encoder="f")
    assert contents(root) == before


def test_tiles_elsewhere_are_refused(root, tmp_path):
    write(tmp_path / "e", "s", 30)
    bring(root, tmp_path / "e")
    before = contents(root)
    moved = places("s", 30)
    moved[7, 1] += 1
    write(tmp_path / "f", "s", 30, coords=moved)
    with raises("tiles of slide 's' lie elsewhere"):
        bring(root, tmp_path / "f", encoder="f")
    assert contents(root) == before


def test_places_that_the_first_encoder_lacks_are_filled_in(root, tmp_path):
    write(tmp_path / "e", "s", 30, coords=False)
    write(tmp_path / "f", "s", 30)
    bring(root, tmp_path / "e")
    assert samples(root)["x"].null_count() == 30
    bring(root, tmp_path / "f", encoder="f")
    known = samples(root)
    assert np.array_equal(known.select("x", "y").to_numpy(), places("s", 30).astype(float))
    bring(root, tmp_path / "e", encoder="g")
    assert samples(root).equals(known)


def test_slides_that_differ_in_length_or_precision_are_named(root, tmp_path):
    write_slides(tmp_path / "in", [5, 5, 5])
    write(tmp_path / "in", "odd", 5, vectors("odd", 5, d=9))
    write(tmp_path / "in", "wide", 5, vectors("wide", 5, dtype=np.float32))
    with raises("8 float16 values in 3", "8 float32 values in 1: 'wide'", "9 float16", "'odd'"):
        bring(root, tmp_path / "in")
    assert not (root / "embeddings").exists()


def test_length_is_that_of_the_encoder_elsewhere(root, tmp_path):
    write(tmp_path / "a", "s", 5)
    write(tmp_path / "b", "t", 5, vectors("t", 5, d=9))
    bring(root, tmp_path / "a")
    with raises("9 dimensions", "8 in dataset 'd'"):
        bring(root, tmp_path / "b", dataset="other")


def test_a_dataset_is_of_tiles_or_of_slides(root, tmp_path):
    write(tmp_path / "tiles", "s", 5)
    bring(root, tmp_path / "tiles")
    path = write(tmp_path / "slides", "t", 1, vectors("t", 1)[0], coords=False)
    assert path.exists()
    with raises("vectors of slides, but dataset 'd' is one of tiles"):
        bring(root, tmp_path / "slides", encoder="f")
    bring(root, tmp_path / "slides", encoder="f", dataset="slides")
    with raises("vectors of tiles, but dataset 'slides' is one of slides"):
        bring(root, tmp_path / "tiles", encoder="g", dataset="slides")
    assert table(
        root, "SELECT sample_id, slide_id FROM samples WHERE dataset = 'slides'"
    ).rows() == [("t", "t")]


def test_samples_of_slides_are_no_samples_of_tiles(root, tmp_path):
    write(tmp_path, "s", 5)
    croma_sql.import_samples(root, pl.DataFrame({"sample_id": ["s"], "label": ["a"]}), dataset="d")
    with raises("vectors of tiles, but dataset 'd' is one of samples and slides", "--samples"):
        bring(root, tmp_path)


def test_slides_that_have_samples_already_keep_their_attributes(root, tmp_path):
    for name in ("b", "a"):
        write(tmp_path, name, 1, vectors(name, 1)[0], coords=False)
    known = pl.DataFrame({"sample_id": ["b", "c"], "label": ["x", "y"]})
    croma_sql.import_samples(root, known, dataset="d")
    bring(root, tmp_path)
    assert samples(root).rows() == [("b", "x", "b"), ("c", "y", None), ("a", None, "a")]
    assert samples(root).columns == ["sample_id", "label", "slide_id"]
    assert croma_sql.check(root) == []


def test_nothing_but_empty_slides(root, tmp_path):
    write_slides(tmp_path, [0, 0])
    with raises("none of the 2 slides has a tile"):
        bring(root, tmp_path)


def test_the_same_slides_twice_need_a_prefix(root, tmp_path):
    write(tmp_path / "in", "s", 120)
    bring(root, tmp_path / "in")
    with raises("tiles of 1 slide(s) are already in dataset 'd': 's'", "--prefix",
                error=croma_sql.WarehouseError):  # fmt: skip
        bring(root, tmp_path / "in", dataset="again")
    bring(root, tmp_path / "in", dataset="again", prefix="5x ")
    assert set(samples(root, "again")["slide_id"]) == {"s"}
    assert "5x s:119" in stored(root, dataset="again")
    assert croma_sql.check(root) == []
    assert bring(root, tmp_path / "in", dataset="again", prefix="5x ").slides.unchanged == 1
    for encoder in ("e", "f"):
        with raises("begin with '5x '", "not with ''"):
            bring(root, tmp_path / "in", encoder=encoder, dataset="again")


@pytest.mark.parametrize("name", [".a/b", 'it\'s "q" ü%20', "*?[x]="])
def test_names_of_any_kind(root, tmp_path, name):
    slide = name.replace("/", "_").lstrip(".") or "dots"
    write(tmp_path / "in", slide, 130)
    bring(root, tmp_path / "in", encoder=name, dataset=name)
    write(tmp_path / "in", "z", 3)
    bring(root, tmp_path / "in", encoder=name, dataset=name)
    for relation in ("embeddings", "sources"):
        found = table(root, f"SELECT DISTINCT encoder, dataset FROM {relation}")
        assert found.rows() == [(name, name)]
    assert croma_sql.check(root) == []
    assert {path.name for path in root.parent.iterdir()} == {root.name, "in"}


def test_a_warehouse_below_the_source_is_none(root, tmp_path):
    write(tmp_path, "s", 3)
    bring(root, tmp_path)
    assert bring(root, tmp_path).slides.unchanged == 1
    for i, pattern in enumerate(("*", "**/*", "[!x]*")):
        assert bring(tmp_path / f"W{i}", f"{tmp_path}/{pattern}").n == 3


def test_a_dataset_that_would_be_called_as_a_file_is(root, tmp_path):
    write(tmp_path, "s", 3)
    with raises("'d.parquet' cannot be the dataset's name", error=croma_sql.WarehouseError):
        bring(root, tmp_path, dataset="d.parquet")


def test_options_that_have_no_meaning_are_refused(root, tmp_path):
    write(tmp_path / "in", "s", 3)
    with raises("is imported by slide", "'ids'"):
        bring(root, tmp_path / "in", ids=["a", "b", "c"])
    np.save(tmp_path / "x.npy", np.ones((2, 3)))
    with raises("x.npy is imported as a whole", "'prefix'"):
        bring(root, tmp_path / "x.npy", samples=pl.DataFrame({"sample_id": ["a", "b"]}), prefix="p")
