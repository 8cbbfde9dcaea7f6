"""con.interrupt() and Ctrl-C end a comparison in SQL, and leave nothing behind."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from test_interrupt import SOON, is_soon, searching

import croma_sql
from croma_sql.udfs import jobs

N = 40_000  # units, which take some twenty seconds


def connected():
    con = croma_sql.register(duckdb.connect())
    con.execute("SET enable_progress_bar = false")
    rng = np.random.default_rng(0)
    con.register(
        "frame",
        pl.DataFrame(
            {
                "unit": np.tile(np.arange(N), 2),
                "acquisition": np.repeat(["a", "b"], N),
                "embedding": rng.standard_normal((2 * N, 64), dtype=np.float32),
            }
        ),
    )
    con.execute("CREATE TABLE scans AS FROM frame")
    con.execute("CREATE TABLE few AS FROM scans WHERE unit < 50")
    con.execute("FROM croma_iok('few')").fetchall()  # compiles, which nothing can stop
    return con


def stopped(con, stop):
    """Stop a query while it compares; seconds until it has ended, and how."""
    sent = []

    def stop_it():
        assert is_soon(searching)
        time.sleep(1)
        sent.append(time.monotonic())
        stop()

    stopper = threading.Thread(target=stop_it)
    stopper.start()
    try:
        con.execute("SELECT avg(iok) FROM croma_iok('scans', k := 10)").fetchall()
        ended = "whole"
    except Exception as error:  # DuckDB's own, which may name what a function of ours has raised
        ended = "KeyboardInterrupt" if "KeyboardInterrupt" in str(error) else type(error).__name__
    seconds = time.monotonic() - sent[0]
    stopper.join()
    return ended, seconds


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupt_ends_a_comparison(threads):
    with connected() as con:
        con.execute(f"SET threads = {threads}")
        ended, seconds = stopped(con, con.interrupt)
        assert ended == "InterruptException"
        assert seconds < SOON
        assert is_soon(lambda: not searching())
        assert not jobs._jobs
        assert len(con.sql("FROM croma_unit_pairs('few')").fetchall()) == 100


PRESSING = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from test_consistency_interrupt import connected, stopped
print(*stopped(connected(), lambda: os.kill(os.getpid(), signal.SIGINT)))
"""


def test_ctrl_c_ends_a_comparison():
    code = PRESSING.format(tests=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ended, seconds = done.stdout.split()
    assert ended in ("InterruptException", "RuntimeError", "KeyboardInterrupt"), ended
    assert float(seconds) < SOON
