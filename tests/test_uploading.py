"""Writing to object storage: what is there is whole at any time, and writers do not collide."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from mistakes import import_tiles, raises, tiles
from storage import contents, import_and_benchmark

import croma_sql
from croma_sql.warehouse import uploading
from croma_sql.warehouse.publish import locked, publishing
from croma_sql.warehouse.scoring.edge_tables import GroupWriter

NULL = {"on_undefined": "null"}


def uploads(root):
    """Uploads that are neither complete nor aborted."""
    return root.fs.list_multipart_uploads(root.path.partition("/")[0])


# Publishing


def test_a_file_is_not_there_before_it_is_whole(remote):
    path = remote / "d.txt"
    for old, new in ((None, b"one"), (b"one", b"another")):
        with publishing(path) as file:
            file.write(new)
            file.flush()
            assert contents(remote).get("d.txt") == old
        assert contents(remote) == {"d.txt": new}


def test_an_exception_leaves_the_old_file_and_no_upload(remote):
    path = remote / "d.txt"
    with publishing(path) as file:
        file.write(b"old")
    for error, size in ((ValueError, 3), (KeyboardInterrupt, 60 << 20)):
        with pytest.raises(error), publishing(path) as file:
            file.write(bytes(size))
            assert len(uploads(remote)) == (size > 50 << 20)  # of which less is kept here
            raise error
        assert contents(remote) == {"d.txt": b"old"}
        assert uploads(remote) == []


def test_an_upload_that_fails_is_told_and_aborted(storage, remote):
    path = remote / "d.txt"
    with publishing(path) as file:
        file.write(b"old")
    name = remote.path.partition("/")[0]
    storage.refuse(name, "403 Forbidden", "AccessDenied", lambda e: e["REQUEST_METHOD"] == "PUT")
    with raises(f"cannot write {path}: access is denied", "It is as it was"), publishing(path) as f:
        f.write(b"new")
    del storage.refused[name]
    assert contents(remote) == {"d.txt": b"old"}
    assert uploads(remote) == []


UPLOADING = """
import sys
from croma_sql.places import place
from croma_sql.warehouse.publish import publishing
with publishing(place(sys.argv[1]) / "d.txt") as file:
    file.write(bytes(60 << 20))
    print("begun", flush=True)
    sys.stdin.read()
"""


def test_a_writer_that_is_killed_leaves_the_old_file(remote):
    path = remote / "d.txt"
    with publishing(path) as file:
        file.write(b"old")
    command = [sys.executable, "-c", UPLOADING, str(remote)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"begun\n"
        assert contents(remote) == {"d.txt": b"old"}
        child.send_signal(signal.SIGKILL)
    assert contents(remote) == {"d.txt": b"old"}
    assert len(uploads(remote)) == 1  # which no reader sees, and which the bucket may let expire
    with publishing(path) as file:
        file.write(b"new")
    assert contents(remote) == {"d.txt": b"new"}


def test_readers_see_the_old_scores_until_the_new_ones_are_whole(remote, monkeypatch):
    import_and_benchmark(remote)
    croma_sql.score(remote, **NULL)
    before, seen = contents(remote), []
    finished = GroupWriter.finish

    def finish(writer, about):
        finished(writer, about)
        seen.append(contents(remote))

    monkeypatch.setattr(GroupWriter, "finish", finish)
    croma_sql.score(remote, m=25, **NULL)
    assert seen == [before]
    (name,) = (name for name, data in contents(remote).items() if data != before[name])
    assert name == "scores/typed_neighbours/benchmark=b/encoder=e/typed_neighbours.parquet"


# Writers at once


def test_a_lock_is_held_by_one_and_freed(remote, monkeypatch):
    monkeypatch.setattr(uploading, "_PAUSE", 0.01)
    order = []

    def second():
        with locked(remote):
            order.append("second")

    with ThreadPoolExecutor(1) as pool:
        with locked(remote):
            waiting = pool.submit(second)
            time.sleep(0.1)
            order.append("first")
        waiting.result()
    assert order == ["first", "second"]
    assert contents(remote) == {}


def test_a_lock_that_is_left_is_told(remote, monkeypatch):
    import_tiles(remote)
    monkeypatch.setattr(uploading, "PATIENCE", 0.1)
    remote.fs.pipe_file(f"{remote.path}/.lock", b"process 7 on gpu1, since noon")
    before = contents(remote)
    who = "process 7 on gpu1, since noon"
    with raises(f"{remote} is held by a writer ({who})", f"delete {remote}/.lock"):
        croma_sql.import_samples(remote, tiles().drop("embedding"), dataset="d")
    assert contents(remote) == before
    (remote / ".lock").unlink()
    croma_sql.import_samples(remote, tiles().drop("embedding"), dataset="d")


def test_storage_without_conditions_has_no_lock(storage, remote):
    storage.refuse(
        remote.path.partition("/")[0],
        "501 Not Implemented",
        "NotImplemented",
        lambda environ: "HTTP_IF_NONE_MATCH" in environ,
    )
    import_tiles(remote)
    assert croma_sql.check(remote) == []


def test_imports_at_once_check_each_other(remote):
    """Each says that its ids are in another dataset but for one, which was first."""
    croma_sql.create_warehouse(remote)
    samples = tiles().drop("embedding")
    begin = threading.Barrier(4)

    def imported(dataset):
        begin.wait()
        try:
            return croma_sql.import_samples(remote, samples, dataset=dataset)
        except croma_sql.WarehouseError as error:
            return str(error)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(imported, "abcd"))
    assert sorted(map(type, found), key=str) == [int, str, str, str]
    assert all("40 sample_id(s) are already in dataset" in one for one in found if one != 40)
    assert croma_sql.check(remote) == []
