"""Imports by slide that do not come to their end: what is left, and what the next makes of it."""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from by_slide import (
    bring,
    contents,
    part_bytes,
    part_files,
    samples,
    stored,
    vectors,
    write,
    write_slides,
)

import croma_sql
from croma_sql.errors import CromaSqlError, SourceError, WarehouseError
from croma_sql.importers.recognise import recognised
from croma_sql.warehouse.layout import create_warehouse
from croma_sql.warehouse.slides import arrivals, parts, slides
from croma_sql.warehouse.slides.asked import Asked
from croma_sql.warehouse.slides.slides import import_slides

KILLS = int(os.environ.get("CROMA_SQL_KILLS", "2"))
TESTS = str(Path(__file__).parent)
WORK = """
import sys
sys.path.insert(0, {tests!r})
import by_slide
from croma_sql.warehouse.slides import parts
parts.PART_BYTES = {part} * by_slide.part_bytes()
root, *folders = map(__import__("pathlib").Path, sys.argv[1:])
print("begun", flush=True)
for folder in folders:
    done = by_slide.bring(root, folder, encoder=folder.name[0])
"""


def raises(*parts, error=SourceError):
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, parts)))


def importing(root, *folders, **options):
    command = [sys.executable, "-c", WORK.format(tests=TESTS, part=4), root, *folders]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.fixture
def source(tmp_path):
    write_slides(tmp_path / "e", [40, 50, 30, 70, 20, 45])
    return tmp_path / "e"


def test_kill_at_any_moment_and_finish(root, tmp_path, monkeypatch):
    """kill -9 while 200 slides come, and come under another encoder; then a last run."""
    moment = random.Random(0)
    sizes = [moment.randrange(40) for _ in range(200)]
    names = write_slides(tmp_path / "e", sizes)
    for name, n in zip(names, sizes, strict=True):
        write(tmp_path / "f", name, n, vectors(f"f {name}", n))
    work = tmp_path / "e", tmp_path / "f"
    monkeypatch.setattr(parts, "PART_BYTES", 4 * part_bytes())

    def finish(root):
        for folder in work:
            bring(root, folder, encoder=folder.name)

    began = time.monotonic()
    finish(tmp_path / "whole")
    duration = time.monotonic() - began
    killed = 0
    for _ in range(KILLS):
        with importing(root, *work) as child:
            assert child.stdout.readline() == b"begun\n"
            time.sleep(moment.uniform(0, duration))
            child.send_signal(signal.SIGKILL)
            killed += child.wait() == -signal.SIGKILL
        if (root / "warehouse.json").exists():
            assert all("is not in force" in problem for problem in croma_sql.check(root))
    assert killed >= KILLS / 4
    finish(root)
    assert contents(root) == contents(tmp_path / "whole")
    assert croma_sql.check(root) == []


@pytest.fixture
def stopping(monkeypatch):
    """Let an import die at one step of its commit."""

    def stop(step, before):
        module = slides if hasattr(slides, step) else arrivals
        own = getattr(module, step)

        def dies(*args, **options):
            if not before:
                own(*args, **options)
            raise KeyboardInterrupt

        monkeypatch.setattr(module, step, dies)
        return lambda: monkeypatch.setattr(module, step, own)

    return stop


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("step", ["write_batches", "write_sources", "_clean"])
def test_every_step_of_the_commit(root, tmp_path, source, stopping, step, before):
    """What was in force stays so until the sources are replaced; a next run ends the same."""
    bring(root, source)
    bring(root, source, encoder="f")
    shutil.copytree(root, tmp_path / "W")
    write(source, "s001", 50, vectors("new", 50), at=5)
    write(source, "s0015", 33, at=6)
    bring(tmp_path / "W", source)
    force = step == "_clean" or (step, before) == ("write_sources", False)
    expected = stored(tmp_path / "W") if force else stored(root)
    let_it = stopping(step, before)
    with pytest.raises(KeyboardInterrupt):
        bring(root, source)
    let_it()
    assert stored(root) == expected
    assert all("is not in force" in problem for problem in croma_sql.check(root))
    bring(root, source)
    assert contents(root) == contents(tmp_path / "W")


@pytest.mark.usefixtures("small_parts")
def test_parts_that_are_done_are_not_read_again(root, source, tmp_path):
    found = recognised(source).sources
    how = Asked(create_warehouse(root), "e", "d", "", None, "error", [], None, 1)
    read = []

    def counted(file, fails=False):
        def reads(start, stop):
            if fails:
                raise OSError("the disk is gone")
            read.append(file.slide_id)
            return file.read(start, stop)

        return replace(file, read=reads)

    failing = [counted(file, fails=file.slide_id == "s004") for file in found]
    with raises("s004.h5 cannot be read: the disk is gone"):
        import_slides(how, failing)
    first, read[:] = list(read), []
    import_slides(how, [counted(file) for file in found])
    assert not {"s000", "s001"} & set(read) and set(read) | set(first) == {
        f.slide_id for f in found
    }
    bring(tmp_path / "W", source)
    assert contents(root) == contents(tmp_path / "W")


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def others(path):
    """Files of its kind beside it."""
    alike = path.parent.glob(f"{path.name[0] if path.name[0] == '.' else '[!.]'}*")
    return (other for other in alike if other != path)


DAMAGES = {
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "a bit": flip,
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
    "another's": lambda path: path.write_bytes(next(others(path)).read_bytes()),
}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("beside", [False, True], ids=["part", "samples"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_parts_that_are_damaged_are_written_again(root, source, tmp_path, stopping, damage, beside):
    bring(tmp_path / "W", source)
    let_it = stopping("put_samples", before=True)
    with pytest.raises(KeyboardInterrupt):
        bring(root, source)
    let_it()
    left = [path for path in part_files(root) if path.name.startswith(".") == beside]
    DAMAGES[damage](left[1])
    assert len(left) == 3
    bring(root, source)
    assert contents(root) == contents(tmp_path / "W")


@pytest.mark.usefixtures("small_parts")
def test_what_is_left_of_other_slides_is_named_and_removed(root, source, tmp_path, stopping):
    let_it = stopping("put_samples", before=True)
    with pytest.raises(KeyboardInterrupt):
        bring(root, source)
    let_it()
    write(source, "s000", 41)
    problems = croma_sql.check(root)
    assert len(problems) == 6 and all("an import was interrupted" in one for one in problems)
    bring(root, source)
    bring(tmp_path / "W", source)
    assert contents(root) == contents(tmp_path / "W")


@pytest.mark.usefixtures("small_parts")
def test_a_part_that_is_lost_is_read_again(root, source):
    bring(root, source)
    whole = contents(root)
    lost = part_files(root)[0]
    lost.unlink()
    assert any(f"{lost} is missing" in problem for problem in croma_sql.check(root))
    with pytest.raises(CromaSqlError):
        croma_sql.info(root)
    done = bring(root, source)
    assert 0 < done.slides.changed < 6
    assert contents(root) == whole
    lost.unlink()
    for path in source.iterdir():
        path.unlink()
    write(source, "new", 3)
    with raises("are lost", "Import these sources again", error=WarehouseError):
        bring(root, source)


# Sources that are not what they were


@pytest.mark.usefixtures("small_parts")
def test_sources_that_change_while_they_are_read(root, source):
    found = recognised(source).sources
    how = Asked(create_warehouse(root), "e", "d", "", None, "error", [], None, 2)

    def import_with(what):
        def reads(start, stop):
            return what(found[2], start, stop)

        import_slides(how, [*found[:2], replace(found[2], read=reads), *found[3:]])

    def grows(file, start, stop):
        rows = file.read(start, stop)
        with file.path.open("ab") as more:
            more.write(b"more")
        os.utime(file.path)
        return rows

    with raises("s002.h5 has changed while it was read"):
        import_with(grows)
    (source / "s002.h5").unlink()
    with raises("s002.h5 does not exist"):
        bring_found(how, found)
    write(source, "s002", 29)
    with raises("s002.h5"):
        bring_found(how, found)
    found = recognised(source).sources
    with raises("s002.h5 gave 28 vectors of 8 float16 values where 29"):
        import_with(lambda file, start, stop: file.read(start, stop - 1))
    assert not (root / "sources").exists() and not (root / "samples").exists()


def bring_found(how, found):
    return import_slides(how, found)


# A disk that is full, a folder that cannot be written


@pytest.mark.usefixtures("small_parts")
def test_a_disk_that_is_full(root, source, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in (1000, 3000, 4500):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            with raises("cannot write", "File too large. It is as it was", error=WarehouseError):
                bring(root, source)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not list(root.rglob(".unfinished*")) and not list(root.glob("sources/*/*"))
    bring(root, source)
    bring(tmp_path / "W", source)
    assert contents(root) == contents(tmp_path / "W")


def test_a_place_that_cannot_be_written(root, source):
    create_warehouse(root)
    (root / "embeddings").write_text("a file")
    with raises("cannot write", "Not a directory", error=WarehouseError):
        bring(root, source)
    (root / "embeddings").unlink()
    (root / "sources").write_text("a file")
    with raises("cannot write", "Not a directory", error=WarehouseError):
        bring(root, source)
    (root / "sources").unlink()
    assert bring(root, source).n == 255
    assert croma_sql.check(root) == []


# Ctrl-C


@pytest.mark.parametrize("part", [1, 1000])
def test_ctrl_c_stops_soon_and_leaves_the_warehouse_whole(root, tmp_path, part):
    """In parts of megabytes, where a thread is busy, and of 100 rows, of which there are many."""
    code = WORK.format(tests=TESTS, part=part) + "print('all done', flush=True)"
    for i in range(30):
        write(tmp_path / "e", f"s{i:03}", 4000, np.ones((4000, 256), np.float32))
    command = [sys.executable, "-c", code, root, tmp_path / "e"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"begun\n"
        while not part_files(root):
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        child.wait()
        seconds = time.monotonic() - sent
        said = child.stdout.read() + child.stderr.read()
    assert b"all done" not in said and b"KeyboardInterrupt" in said
    assert seconds < 4  # one by itself, the rest is for a machine that is busy
    assert not (root / "sources").exists() and not list(root.rglob(".unfinished*"))
    assert all("is not in force" in problem for problem in croma_sql.check(root))


@pytest.mark.usefixtures("small_parts")
def test_progress_counts_slides(root, source):
    told = []
    bring(root, source, on_progress=told.append)
    for stage in ("recognising", "importing"):
        some = [done for done in told if done.stage == stage]
        assert some[-1] == 1.0 and (some[-1].n, some[-1].total) == (6, 6)
        assert some == sorted(some)


# Two at once


@pytest.mark.usefixtures("small_parts")
def test_two_encoders_at_once(root, source, tmp_path):
    create_warehouse(root)
    folders = [source]
    for encoder in "fgh":
        for path in source.iterdir():
            n = len(__import__("h5py").File(path)["features"])
            write(tmp_path / encoder, path.stem, n, vectors(encoder + path.stem, n), at=9)
        folders.append(tmp_path / encoder)
    threads = [
        threading.Thread(target=bring, args=(root, folder), kwargs={"encoder": folder.name})
        for folder in folders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for folder in folders:
        bring(tmp_path / "W", folder, encoder=folder.name)
    assert contents(root) == contents(tmp_path / "W")
    assert samples(root).height == 255


@pytest.mark.usefixtures("small_parts")
def test_the_slower_of_two_imports_of_the_same_says_so(root, source, monkeypatch):
    own = slides.write_all

    def faster(*args):
        monkeypatch.setattr(slides, "write_all", own)
        bring(root, source)
        return own(*args)

    monkeypatch.setattr(slides, "write_all", faster)
    with raises(
        "was changed by another import meanwhile; run this one again", error=WarehouseError
    ):
        bring(root, source)
    assert bring(root, source).slides.unchanged == 6
    assert croma_sql.check(root) == []
