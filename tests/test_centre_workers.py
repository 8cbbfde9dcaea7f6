"""Work of scikit-learn is ended by Ctrl-C, wherever it is, and nothing of that comes later."""

import subprocess
import sys
import threading
import time

import pytest
from threadpoolctl import ThreadpoolController

from croma_sql.centre.workers import _Running, workers


class PressedError(BaseException):
    """As KeyboardInterrupt comes from the main thread's wait, but not to pytest."""


def test_ctrl_c_ends_work_that_knows_no_end():
    """Work in other threads is left at the next step of its loop, and nothing begins anew."""
    ended, started = [], threading.Event()

    def work(item):
        if item == "quick":
            started.wait()
            return
        started.set()
        deadline = time.monotonic() + 60
        try:
            while time.monotonic() < deadline:
                time.sleep(0.01)
            ended.append("by itself")
        except KeyboardInterrupt:
            ended.append("stopped")
            raise

    def press(_):
        raise PressedError

    with pytest.raises(PressedError), workers(2) as for_each:
        for_each(work, ["slow", "quick", *["slow"] * 9], press)
    assert set(ended) == {"stopped"}
    assert len(ended) <= 2  # the worker that was quick may have begun before it was pressed


AFTER_POLARS = """
import os, signal, threading, time
import polars as pl
from croma_sql.centre.workers import workers

pl.LazyFrame({"a": [1, 2]}).filter(pl.col("a") > 1).collect()
started = threading.Event()

def work(_):
    started.set()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        time.sleep(0.01)
    print("ended by itself")

def press():
    started.wait()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press).start()
try:
    with workers(2) as for_each:
        for_each(work, ["slow", "slow"])
except KeyboardInterrupt:
    print("stopped")
"""


def test_ctrl_c_is_heard_after_polars_has_run():
    """Polars has the system go on with a wait that a signal interrupts."""
    done = subprocess.run(
        [sys.executable, "-c", AFTER_POLARS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "stopped\n"


@pytest.mark.parametrize("threads", [1, 3])
def test_work_that_is_about_to_end_is_ended_within_itself(threads, caplog):
    """Whenever the stop comes: a pool tells of an exception that comes to it after the work."""
    for pause in range(60):
        with pytest.raises(PressedError), workers(threads) as for_each:

            def press(_, pause=pause):
                time.sleep(pause * 1e-5)
                raise PressedError

            for_each(lambda item: time.sleep(item * 1e-4), range(12), press)
        sum(range(1000))  # an exception that was sent to this thread would come now
    assert not caplog.records


def test_threads_whose_work_has_ended_are_left_alone():
    running, ended, asked = _Running(ThreadpoolController()), threading.Event(), threading.Event()
    told = []

    def live():
        running.one(told.append)("done")
        ended.set()
        asked.wait()
        try:
            sum(range(1000))
            told.append("alive")
            running.one(told.append)("more")
        except KeyboardInterrupt:
            told.append("nothing more begins")

    thread = threading.Thread(target=live)
    thread.start()
    ended.wait()
    running.stop()
    asked.set()
    thread.join()
    assert told == ["done", "alive", "nothing more begins"]


def test_work_that_swallows_the_stop_ends_all_the_same():
    """As one that must clean up does; it is waited for no longer than the exception may take."""
    running, started = _Running(ThreadpoolController()), threading.Event()

    def swallow(_):
        started.set()
        try:
            time.sleep(0.01)
            while True:
                time.sleep(0.001)
        except KeyboardInterrupt:
            pass

    thread = threading.Thread(target=running.one(swallow), args=["item"])
    thread.start()
    started.wait()
    running.stop()
    thread.join(30)
    assert not thread.is_alive()
