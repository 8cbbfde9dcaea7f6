"""Tables and arrays of features: what becomes of their columns, rows, ids and coordinates."""

import datetime

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mistakes import cut_short, ids, raises
from numpy_files import npy, objects

import croma_sql
from croma_sql.importers.listing import Options
from croma_sql.importers.recognise import recognised
from croma_sql.importers.vectors import read_vectors

D = 16


def vectors(n=7, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, D)).astype(dtype)


def wide(matrix, stem="f", form="{}", **columns):
    """A column per feature, last ones first, between others."""
    features = {f"{stem}{form.format(i)}": matrix[:, i] for i in reversed(range(matrix.shape[1]))}
    return pl.DataFrame({**columns, **features})


def lists(matrix, dtype=pl.Float32, **columns):
    return pl.DataFrame({**columns, "embedding": pl.Series(matrix, dtype=pl.Array(dtype, D))})


def write(frame, path):
    if path.suffix == ".parquet":
        frame.write_parquet(path, row_group_size=3)
    elif path.suffix == ".arrow":
        frame.write_ipc(path)
    else:
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    return path


def one(source, **options):
    (found,) = recognised(source, Options(**options)).sources
    return found


def whole(source, **options):
    """The ids and vectors of a source that is imported as one."""
    found = read_vectors(source, sample_id="sample_id", **options)
    return found.ids.to_pylist(), np.concatenate(list(found.batches()))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".arrow"])
@pytest.mark.parametrize(("stem", "form"), [("f", "{}"), ("feat_", "{:04}"), ("", "{}")])
def test_features_are_put_into_the_order_of_their_numbers(root, tmp_path, suffix, stem, form):
    tiles = wide(vectors(), stem, form, sample_id=[f"00{i}" for i in range(7)], label=["a"] * 7)
    path = write(tiles, tmp_path / f"tiles{suffix}")
    found, matrix = whole(path)
    assert found == [f"00{i}" for i in range(7)]
    np.testing.assert_array_equal(matrix, vectors())
    done = croma_sql.import_embeddings(root, path, encoder="e", dataset="d", samples=path)
    assert (done.n, done.d, done.dtype) == (7, D, "float64")
    with croma_sql.connect(root) as con:  # features are no attributes of samples
        assert con.sql("FROM samples").columns == ["sample_id", "dataset", "label"]


@pytest.mark.parametrize("precision", ["float16", "float32", "float64"])
def test_features_of_a_frame_keep_their_precision(tmp_path, precision):
    tiles = wide(vectors(dtype=precision), sample_id=ids(7))
    for source in (tiles, tiles.to_arrow(), write(tiles, tmp_path / "tiles.parquet")):
        assert whole(source)[1].dtype == precision
        np.testing.assert_array_equal(whole(source)[1], vectors(dtype=precision))


def test_text_as_spreadsheets_write_it(tmp_path):
    path = tmp_path / "tiles.csv"
    numbers = ["1", "-2.5", "1e-3", "", "NA", "nan", ".5", *map(str, range(9))]
    header = ";".join(["sample_id", "note", *(f"f{i}" for i in range(D))])
    row = ";".join(["007", '"a;\r\n""b"""', *numbers])
    path.write_bytes(f"\ufeff{header}\r\n\r\n{row}\r\n{row.replace('007', '1e5')}\r\n".encode())
    found, matrix = whole(path)
    assert found == ["007", "1e5"]
    expected = [1, -2.5, 1e-3, np.nan, np.nan, np.nan, 0.5, *range(9)]
    np.testing.assert_array_equal(matrix, [expected, expected])


def test_text_is_read_in_blocks(tmp_path, monkeypatch):
    path = write(wide(vectors(500), sample_id=ids(500)), tmp_path / "tiles.csv")
    monkeypatch.setattr("croma_sql.importers.table_files._BLOCK", 4096)
    source = read_vectors(path, sample_id="sample_id")
    batches = list(source.batches())
    assert len(batches) > 20
    np.testing.assert_array_equal(np.concatenate(batches), vectors(500))
    tiles = one(write(wide(vectors(500)), tmp_path / "slide.csv"))
    np.testing.assert_array_equal(tiles.read(123, 321).vectors, vectors(500)[123:321])


def test_which_features_is_said_where_there_is_a_choice(tmp_path):
    tiles = wide(vectors(), "g", sample_id=ids(7)).hstack(wide(vectors(seed=1), "h"))
    few = tiles.with_columns(q0=1.0, q2=2.0)
    path = write(few, tmp_path / "tiles.csv")
    with raises(f"{path} has more than one choice of vectors: ", "'g*'", "--embedding"):
        whole(path)
    np.testing.assert_array_equal(whole(path, embedding="h*")[1], vectors(seed=1))
    np.testing.assert_array_equal(whole(path, embedding="q*")[1], [[1.0, 2.0]] * 7)
    with raises(f"{path} has no vectors under 'x*'; --embedding can be ", "'g*'"):
        whole(path, embedding="x*")
    fewer = write(few.select("sample_id", "q0", "q2"), tmp_path / "few.csv")
    with raises(f"{fewer} holds no vectors", "'q0', 'q2'", "--embedding 'q*'"):
        whole(fewer)
    with raises("has columns of numbers 'g0' to 'g16', but not 'g3'", "say --embedding 'g*'"):
        whole(wide(np.ones((7, D + 1)), "g", sample_id=ids(7)).drop("g3"))
    with raises("has features of one number, 'g01' and 'g1'"):
        whole(wide(vectors(), "g", sample_id=ids(7)).with_columns(g01=1.0))


def test_cells_that_are_no_numbers_are_named(tmp_path):
    path = write(wide(vectors(), sample_id=ids(7)), tmp_path / "tiles.csv")
    path.write_text(path.read_text().replace(str(vectors()[3, 5]), "0,5x").replace("0,5x", '"0,5"'))
    with raises(f"{path}: column 'f5' holds '0,5', which is no number"):
        whole(path)
    path.write_text(path.read_text() + "s7,1,2\n")
    with raises(f"{path} cannot be read", "Expected 17 columns, got 3"):
        whole(path)
    path.write_text("")
    with raises(f"{path} is empty"):
        whole(path)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".arrow"])
def test_tables_of_tiles_per_slide(tmp_path, suffix):
    for slide, n in (("007-A.v2", 7), ("008", 0)):
        matrix = vectors(n)
        frame = wide(matrix, X=np.arange(n) * 224.0, Y=np.zeros(n, int), tissue=["a"] * n)
        write(frame, tmp_path / f"{slide}{suffix}")
    write(pl.DataFrame({"slide_id": ["007-A.v2"], "q1": [1]}), tmp_path / f"cohort{suffix}")
    found = recognised(tmp_path)
    full, empty = found.sources
    assert [(file.slide_id, file.level, file.n, file.d) for file in found.sources] == [
        ("007-A.v2", "tile", 7, D),
        ("008", "tile", 0, D),
    ]
    assert full.dtype == empty.dtype == "float64"
    np.testing.assert_array_equal(full.read(2, 6).vectors, vectors()[2:6])
    assert full.read(2, 6).samples.to_pydict() == {
        "tile": [2, 3, 4, 5],
        "x": [448.0, 672.0, 896.0, 1120.0],
        "y": [0.0] * 4,
        "coord_unit": ["px"] * 4,
        "tile_size": [None] * 4,
        "tissue": ["a"] * 4,
    }
    assert full.read(0, 0).samples.schema.names == full.read(0, 1).samples.schema.names
    assert len(empty.read(0, 0).vectors) == 0


@pytest.mark.parametrize("dtype", [pl.Float16, pl.Float32, pl.Float64])
def test_lists_of_features_and_pairs_of_coordinates(tmp_path, dtype):
    coords = np.arange(14).reshape(7, 2)
    frame = lists(vectors(), dtype).with_columns(
        coords=coords, coord_unit=pl.lit("um"), tile_size=pl.lit(256)
    )
    for suffix in (".parquet", ".arrow"):
        file = one(write(frame.rename({"embedding": "uni"}), tmp_path / f"001{suffix}"))
        assert (file.n, file.d, file.dtype) == (7, D, str(dtype()).lower())
        rows = file.read(0, 7)
        np.testing.assert_array_equal(rows.vectors, frame["embedding"].to_numpy())
        assert rows.samples.select(["x", "y"]).to_pydict() == {
            "x": coords[:, 0].tolist(),
            "y": coords[:, 1].tolist(),
        }
        assert set(rows.samples.column("coord_unit").to_pylist()) == {"um"}
        assert set(rows.samples.column("tile_size").to_pylist()) == {256.0}
        assert rows.samples.schema.field("x").type == pa.float64()


def test_the_slide_is_what_a_column_says(tmp_path):
    path = write(lists(vectors(), slide_id=["007"] * 7), tmp_path / "features.parquet")
    assert one(path).slide_id == "007"
    assert "slide_id" not in one(path).read(0, 1).samples.column_names
    assert one(path, slide_id="path").slide_id == "features"
    write(lists(vectors(), slide_id=["007"] * 6 + ["008"]), path)
    with raises(f"{path} holds tiles of 2 slides: '007', '008'", "--sample-id"):
        recognised(path)
    write(lists(vectors(), slide_id=["007"] * 6 + ["008"], key=range(7)), path)
    file = one(path, sample_id="key")
    assert (file.level, file.slide_id) == ("sample", None)
    assert file.read(5, 7).samples.to_pydict() == {
        "sample_id": ["5", "6"],
        "slide_id": ["007", "008"],
    }


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_with_ids_are_samples_with_attributes(tmp_path, suffix):
    day = datetime.date(2024, 1, 2)
    frame = wide(vectors(), sample_id=[f"00{i}" for i in range(7)], grade=range(7), day=[day] * 7)
    file = one(write(frame.with_columns(x=1.5), tmp_path / f"rois{suffix}"))
    assert (file.level, file.n, file.d) == ("sample", 7, D)
    expected = {"sample_id": ["003"], "grade": [3], "day": [day], "x": [1.5]}
    if suffix == ".csv":
        expected["day"] = [str(day)]
    assert file.read(3, 4).samples.to_pydict() == expected
    np.testing.assert_array_equal(file.read(3, 4).vectors, vectors()[3:4])


def test_columns_that_an_import_writes_itself(tmp_path):
    frame = lists(vectors(), tile=range(7))
    assert one(write(frame, tmp_path / "a.parquet")).read(1, 2).samples.to_pydict() == {"tile": [1]}
    for odd in (frame.with_columns(tile=3), frame.rename({"tile": "Sample_ID"})):
        path = write(odd, tmp_path / "a.parquet")
        with raises(f"{path}: column ", "of tiles is one that an import writes itself; rename it"):
            recognised(path)


def test_tables_without_vectors_are_left_alone(tmp_path):
    write(lists(vectors()), tmp_path / "007.parquet")
    cohort = write(pl.DataFrame({"slide_id": ["007"], "label": ["a"]}), tmp_path / "cohort.csv")
    assert [file.slide_id for file in recognised(tmp_path).sources] == ["007"]
    with raises(f"{cohort} holds no vectors; its columns are 'slide_id', 'label'", "at least 16"):
        recognised(cohort, Options(as_format="csv"))
    both = write(lists(vectors()).with_columns(uni=pl.col("embedding")), tmp_path / "008.parquet")
    assert one(both).d == D  # of the column called embedding
    write(both_named(), both)
    with raises(f"{both} has more than one choice of vectors: 'uni', 'gigapath'"):
        recognised(both)
    assert one(both, embedding="uni").d == D


def test_few_features_of_one_table_are_named(tmp_path):
    frame = wide(vectors()[:, :6], sample_id=[f"{i}" for i in range(7)], label=["1"] * 7)
    path = write(frame, tmp_path / "features.csv")
    with raises(
        f"{path} holds no vectors; its columns are", "fewer are named with --embedding 'f*'"
    ):
        whole(path)
    with raises("the frame holds no vectors; its columns are", "are named with embedding='f*'"):
        whole(frame)
    assert np.array_equal(whole(path, embedding="f*")[1], vectors()[:, :6])


def test_text_that_cannot_be_read_is_a_cohort_or_a_slide(tmp_path):
    utf16 = tmp_path / "008.csv"
    utf16.write_bytes("slide_id\tlabel\n007\ta\n".encode("utf-16"))
    write(lists(vectors()), tmp_path / "007.parquet")
    assert recognised(tmp_path).notes[-1] == "left alone: 1 .csv"
    write(wide(vectors()), tmp_path / "009.csv")
    with raises(f"{utf16} is not UTF-8 but UTF-16"):
        recognised(tmp_path)


def both_named():
    return lists(vectors()).select(uni="embedding", gigapath="embedding")


def test_tables_that_are_damaged(tmp_path):
    for suffix in (".parquet", ".arrow"):
        path = write(lists(vectors(900)), tmp_path / f"007{suffix}")
        cut_short(path)
        with raises(str(path), "cut short" if suffix == ".parquet" else "cannot be read"):
            recognised(path)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"embedding": [[1.0, 2.0], [1.0]]}), path)
    with raises(f"{path}: 'embedding' holds vectors of different lengths"):
        one(path).read(0, 2)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", ">f4", "i1", "u2", "i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_per_slide(tmp_path, dtype, order):
    matrix = np.array(vectors() * 10, dtype, order=order)
    np.save(tmp_path / "007.v2.npy", matrix)
    np.save(tmp_path / "008.npy", matrix[:0])
    full, empty = recognised(tmp_path).sources
    assert (full.slide_id, full.level, full.n, full.d) == ("007.v2", "tile", 7, D)
    assert (empty.slide_id, empty.level, empty.n, empty.d) == ("008", "tile", 0, D)
    rows = full.read(2, 5)
    np.testing.assert_array_equal(rows.vectors, matrix[2:5])
    assert rows.vectors.dtype == full.dtype
    assert rows.samples.to_pydict() == {"tile": [2, 3, 4]}


def test_arrays_of_one_dimension_are_slides(tmp_path):
    np.save(tmp_path / "007.npy", vectors(dtype=np.float16)[0])
    slide = one(tmp_path)
    assert (slide.level, slide.slide_id, slide.n, slide.d, slide.dtype) == (
        "slide", "007", 1, D, "float16",
    )  # fmt: skip
    np.testing.assert_array_equal(slide.read(0, 1).vectors, vectors(dtype=np.float16)[:1])
    assert (slide.read(0, 1).samples.num_rows, slide.read(0, 0).samples.num_rows) == (1, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (objects(), "holds Python objects, which only pickle can read"),
        (npy(np.zeros((2, 3, 4))), r"shape \(2, 3, 4\); expected \(n, d\)"),
        (npy(np.zeros(())), r"shape \(\); expected \(n, d\)"),
        (npy(np.zeros((3, 0))), r"shape \(3, 0\); expected"),
        (npy(np.array([["a"]])), "is of dtype <U1"),
        (npy(np.zeros((3, 4)))[:-8], "is cut short or damaged"),
    ],
)
def test_arrays_that_are_refused(tmp_path, content, message):
    (tmp_path / "007.npy").write_bytes(content)
    with pytest.raises(croma_sql.CromaSqlError, match=f"007.npy.*{message}"):
        recognised(tmp_path)
