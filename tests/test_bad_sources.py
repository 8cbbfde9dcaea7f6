"""Files and frames that cannot be imported: the message names file, column and rows."""

import datetime

import numpy as np
import polars as pl
import pyarrow as pa
from mistakes import SELECT, cut_short, ids, import_tiles, raises, tiles, with_holes

import croma_sql


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
    with raises(f"{npy} is cut short or damaged"):
        croma_sql.import_embeddings(root, npy, **options)
    with raises(str(tmp_path / "none.npy"), "does not exist"):
        croma_sql.import_embeddings(root, tmp_path / "none.npy", **options)
    with raises("a.xyz does not exist"):
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
    with raises(f"{path} holds Python objects", "pickle runs whatever a file says"):
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
