"""Rows of HDF5 datasets, however they are laid out, as h5py reads them."""

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mistakes import raises
from slide_files import appendable, plain, trident, vectors

from croma_sql.importers.hdf5_datasets import find_runs, is_written, opened, read_rows

FILTERS = [
    {},
    {"compression": "gzip"},
    {"compression": "lzf", "shuffle": True},
    {"fletcher32": True},
]


@st.composite
def layouts(draw):
    """Mostly such as are read past the library, and their close relatives."""
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 5))
    width = draw(st.sampled_from([d, d, d, max(1, d - 1), d + 1]))
    height = draw(st.sampled_from([None, 1, 2, n, n + 3]) | st.integers(1, n))
    chunks = height and (height, width)
    growing = chunks is not None and (width > d or chunks[0] > n or draw(st.booleans()))
    filters = draw(st.sampled_from([{}, {}, {}, *FILTERS])) if chunks else {}
    return {
        "shape": (n, d),
        "dtype": draw(st.sampled_from(["<f2", "<f4", "<f8", "<i4", ">f4"])),
        "chunks": chunks,
        "maxshape": (None, None) if growing else None,
        "fillvalue": draw(st.sampled_from([None, 3])),
        **filters,
    }


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(layouts(), st.data())
def test_rows_are_those_that_h5py_reads(tmp_path, layout, data):
    path, (n, d) = tmp_path / "a.h5", layout["shape"]
    file_options = data.draw(
        st.sampled_from([{}, {"libver": "latest"}, {"userblock_size": 512}, {"track_order": True}])
    )
    written = data.draw(st.permutations(range(n)))
    if data.draw(st.booleans()):
        written = written[: n // 2]
    with h5py.File(path, "w", **file_options) as file:
        stored = file.create_dataset("features", **layout)
        for row in written:  # chunks lie in the order in which they are first written
            stored[row] = np.arange(d) + 10 * row
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    with opened(path) as file:
        read = read_rows(file["features"], start, stop)
        expected = file["features"][start:stop]
    assert read.dtype == expected.dtype
    np.testing.assert_array_equal(read, expected)


def runs_of(path):
    with opened(path) as file:
        return find_runs(file["features"])


def test_chunks_lie_in_few_runs(tmp_path):
    path = trident(tmp_path / "a.h5", vectors(500), np.zeros((500, 2)))
    runs, stored = runs_of(path), path.read_bytes()
    assert len(runs) < 20
    assert [run.row for run in runs[1:]] == [run.row + run.rows for run in runs[:-1]]
    bytes_of_runs = [stored[run.byte :][: run.rows * 16] for run in runs]
    assert b"".join(bytes_of_runs) == vectors(500).tobytes()


@pytest.mark.parametrize("chunks", [None, (7, 8), (64, 8)])
def test_runs_are_found_without_chunks_and_with_a_last_chunk_that_is_not_full(tmp_path, chunks):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "features", data=vectors(50), chunks=chunks, maxshape=chunks and (None, 8)
        )
    assert sum(run.rows for run in runs_of(tmp_path / "a.h5")) == 50


def test_chunks_out_of_order_are_put_in_order(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        stored = file.create_dataset("features", (6, 8), np.float16, chunks=(2, 8))
        for row in (4, 0, 2):
            stored[row : row + 2] = vectors(6)[row : row + 2]
    assert [run.row for run in runs_of(tmp_path / "a.h5")] == [0, 4]
    with opened(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(read_rows(file["features"], 1, 6), vectors(6)[1:])


def test_chunks_that_are_missing_or_wider_than_the_rows(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        few = file.create_dataset("few", (10, 8), np.float16, chunks=(2, 8), fillvalue=7)
        few[4:6] = vectors(2)
        wide = file.create_dataset("wide", (10, 8), np.float16, chunks=(2, 9), maxshape=(None, 9))
        wide[:] = vectors(10)
    with opened(tmp_path / "a.h5") as file:
        for name in file:
            assert find_runs(file[name]) is None
            np.testing.assert_array_equal(read_rows(file[name], 3, 10), file[name][3:10])


@pytest.mark.parametrize(
    "layout",
    [
        {"compression": "gzip"},
        {"fletcher32": True},
        {"chunks": (10, 4)},
        {"dtype": ">f2"},
    ],
    ids=str,
)
def test_what_only_the_library_can_read(tmp_path, layout):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("features", data=vectors(50), **layout)
    assert runs_of(tmp_path / "a.h5") is None


def test_a_float_of_another_layout_is_converted(tmp_path):
    """bfloat16 as HDF5 can describe it: float32 without its lower half."""
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    values = np.array([[1.5, -2.0], [0.25, 3.0]], np.float32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        space = h5py.h5s.create_simple((2, 2))
        h5py.h5d.create(file.id, b"features", kind, space)
        file["features"][:] = values
    with opened(tmp_path / "a.h5") as file:
        assert find_runs(file["features"]) is None
        assert is_written(file["features"])
        np.testing.assert_array_equal(read_rows(file["features"], 0, 2), values)


def test_threads_read_one_file_at_a_time_and_many(tmp_path):
    paths = [tmp_path / f"{i}.h5" for i in range(6)]
    for i, path in enumerate(paths):
        with h5py.File(path, "w") as file:
            appendable(file, "features", vectors(300, seed=i), 1 + i % 2)

    def read(job):
        i, start = job
        with opened(paths[i]) as file:
            return np.array_equal(
                read_rows(file["features"], start, 300), vectors(300, seed=i)[start:]
            )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, [*product(range(6), (0, 7, 299))] * 4))


def test_a_file_that_ends_early(tmp_path):
    path = plain(tmp_path / "a.h5", features=vectors(500))
    with raises(f"{path} cannot be read: it ends at byte 6000"), opened(path) as file:
        os.truncate(path, 6000)
        read_rows(file["features"], 0, 500)


def test_what_was_never_written_is_told(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("nothing", (9, 8), np.float16)
        file.create_dataset("half", (9, 8), np.float16, chunks=(1, 8))[:4] = 1
        file.create_dataset("all", (9, 8), np.float16, chunks=(4, 8))[:] = 1
        file.create_dataset("zeros", (9, 8), np.float16, compression="gzip")
    with opened(tmp_path / "a.h5") as file:
        assert [is_written(file[name]) for name in ("nothing", "half", "all", "zeros")] == [
            *(False, False, True, True)
        ]
