"""Ctrl-C and con.interrupt() end a search in SQL, and leave nothing behind."""

import json
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import croma_sql
from croma_sql.udfs import ctrl_c, jobs
from croma_sql.udfs.threads import cores

SOON = 4  # seconds: a few tenths by themselves, the rest is for a machine that is busy
QUERIES = {
    "search": "SELECT count(margin) FROM croma_margins('tiles')",
    "two scopes": "SELECT count(margin) FROM croma_margins('tiles', by := 'scope')",
    "new table": "CREATE OR REPLACE TABLE found AS FROM croma_nearest('tiles')",
    "gathering": "SELECT count(margin) FROM croma_margins('stopping_tiles')",
}
CASES = [
    *(("search", threads) for threads in (1, 2, 4)),
    *((query, 2) for query in ("two scopes", "new table", "gathering")),
]
STOPPED = {"gone": True, "jobs": 0, "next": True, "handler": True}


class Stopped:
    """Queries on a connection that are stopped; the searches take some twenty seconds."""

    def __init__(self, stop=None):
        self.con = croma_sql.register(duckdb.connect())
        self.stop = stop or self.con.interrupt
        self.sent = None
        rng = np.random.default_rng(0)
        n = 150_000
        frame = pl.DataFrame(
            {
                "sample_id": np.arange(n),
                "embedding": rng.standard_normal((n, 64), dtype=np.float32),
                "label": rng.integers(2, size=n),
                "confounder": rng.integers(2, size=n),
                "group_id": np.arange(n),
                "scope": np.arange(n) % 2,
            }
        )
        self.con.execute("SET enable_progress_bar = false")  # it would go to stdout
        self.con.register("frame", frame)
        self.con.execute("CREATE TABLE tiles AS FROM frame")
        self.con.execute("CREATE TABLE few AS FROM tiles WHERE sample_id < 500")
        self.con.execute("FROM croma_nearest('few')").fetchall()  # compiles, which nothing can stop
        self.con.create_function("stop_here", self._stop_here, ["BIGINT"], "BIGINT", type="arrow")
        self.con.execute(
            "CREATE VIEW stopping_tiles AS SELECT * REPLACE (stop_here(sample_id) AS sample_id) "
            "FROM tiles"
        )

    def _stop_now(self):
        self.sent = time.monotonic()
        self.stop()

    def _stop_here(self, ids):
        if self.sent is None:
            self._stop_now()
        return ids

    def _stop_a_search(self):
        is_soon(searching)
        time.sleep(0.5)
        self._stop_now()

    def outcome(self, query, threads):
        handler = signal.getsignal(signal.SIGINT)
        self.con.execute(f"SET threads = {threads}")
        self.sent = None
        stopper = threading.Thread(target=self._stop_a_search)
        if query != "gathering":
            stopper.start()
        try:
            self.con.execute(QUERIES[query]).fetchall()
            ended = "whole"
        except Exception as error:
            ended = f"{type(error).__name__} {error}"
        assert self.sent is not None, ended
        seconds = time.monotonic() - self.sent
        return {
            "ended": ended,
            "seconds": seconds,
            "gone": is_soon(lambda: not searching()),
            "jobs": len(jobs._jobs),
            "next": self.next_search_is_right(),
            "handler": is_soon(lambda: signal.getsignal(signal.SIGINT) is handler),
        }

    def next_search_is_right(self):
        few = self.con.table("few").pl()
        columns = (few[name] for name in ("embedding", "label", "confounder", "group_id"))
        expected = croma_sql.margins(*columns, sample_id=few["sample_id"])["margin"]
        found = self.con.sql("FROM croma_margins('few')").pl().sort("sample_id")["margin"]
        return found.equals(expected)


def searching():
    return any(thread.name.startswith("croma") for thread in threading.enumerate())


def is_soon(condition):
    deadline = time.monotonic() + SOON
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.fixture(scope="module")
def large():
    stopped = Stopped()
    with stopped.con:
        yield stopped


@pytest.mark.parametrize(("query", "threads"), CASES)
def test_interrupt_ends_a_search(large, query, threads):
    outcome = large.outcome(query, threads)
    assert outcome.pop("ended").startswith("InterruptException")
    assert outcome.pop("seconds") < SOON
    assert outcome == STOPPED


PRESSING = """
import json, os, signal, sys
sys.path.insert(0, {tests!r})
from test_interrupt import Stopped
pressed = Stopped(lambda: os.kill(os.getpid(), signal.SIGINT))
for query, threads in {cases}:
    print(json.dumps(pressed.outcome(query, threads)))
"""


def test_ctrl_c_ends_a_search():
    """In the main thread of a process, whichever thread of DuckDB the search is waited for in."""
    code = PRESSING.format(tests=str(Path(__file__).parent), cases=CASES)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == len(CASES)
    for outcome in outcomes:
        ended = outcome.pop("ended")
        assert "Query interrupted" in ended or "KeyboardInterrupt" in ended
        assert outcome.pop("seconds") < SOON
        assert outcome == STOPPED
    assert done.stderr == ""


def test_a_search_in_line_is_ended(con):
    """It waits for the cores, which another search holds."""
    ended = []

    def query():
        with suppress(duckdb.InterruptException):
            con.execute("FROM croma_margins('small')")
        ended.append(time.monotonic())

    con.execute("""
        CREATE TABLE small AS SELECT i AS sample_id, [sin(i), cos(i)] AS embedding, i % 2 AS label,
            i // 2 % 2 AS confounder, i AS group_id FROM range(40) r(i)
    """)
    with cores(1):
        waiting = threading.Thread(target=query)
        waiting.start()
        assert is_soon(searching)
        con.interrupt()
        waiting.join(SOON)
        assert ended
        assert is_soon(lambda: not searching())
    assert len(con.execute("FROM croma_margins('small')").fetchall()) == 40


def test_ctrl_c_before_a_search_begins():
    """DuckDB may begin one in another thread before that hears of the end of its query."""
    handler = signal.getsignal(signal.SIGINT)
    query = ctrl_c.watched_query()
    assert signal.getsignal(signal.SIGINT) is not handler
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    done = []

    def search(is_stopped):
        with cores(1, is_stopped) as for_each:
            for_each(done.append, range(3))

    tickets = jobs.begin(search, 5, query)
    with pytest.raises(KeyboardInterrupt):
        jobs.result(tickets[0])
    assert not done
    other = jobs.begin(search, 5, ctrl_c.watched_query())
    jobs.result(other[0])
    assert done == [0, 1, 2]
    del tickets, other
    assert is_soon(lambda: signal.getsignal(signal.SIGINT) is handler)


def test_a_handler_of_the_users_decides():
    """A query goes on where Ctrl-C only leaves a note."""
    notes = []

    def note(signum, frame):
        notes.append(signum)

    handler = signal.signal(signal.SIGINT, note)
    try:
        query = ctrl_c.watched_query()
        signal.raise_signal(signal.SIGINT)
        assert not ctrl_c.has_ended(query)
        assert notes == [signal.SIGINT]
        ctrl_c.unwatch()
        assert is_soon(lambda: signal.getsignal(signal.SIGINT) is note)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert ctrl_c.watched_query() > query
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, handler)


def test_queries_of_other_threads_are_not_watched():
    handler, found = signal.getsignal(signal.SIGINT), []
    thread = threading.Thread(target=lambda: found.append(ctrl_c.watched_query()))
    thread.start()
    thread.join()
    assert found == [0]
    assert not ctrl_c.has_ended(0)
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_error_of_the_search_arrives(large):
    with pytest.raises(duckdb.InvalidInputException, match="column 'label' has one value in all"):
        large.con.execute("FROM croma_margins('tiles', by := 'label')")
    assert is_soon(lambda: not searching())
    assert not jobs._jobs
    assert large.next_search_is_right()


@pytest.mark.parametrize("threads", [1, 4])
def test_duckdb_holds_the_very_array_of_a_function_until_the_call_is_over(threads):
    """Searches are stopped when their tickets go: were these copied, they would go at once."""
    held, seen = [], []

    def tickets(numbers):
        array = np.full(len(numbers), len(held))
        held.append(weakref.ref(array))
        return pa.array(array)

    def look(numbers):
        seen.append(held[numbers[0].as_py()]() is not None)
        return numbers

    with duckdb.connect() as con:
        con.execute(f"SET threads = {threads}")
        for name, function in (("tickets", tickets), ("look", look)):
            con.create_function(
                name, function, ["BIGINT"], "BIGINT", type="arrow", null_handling="special"
            )
        con.sql("""
            SELECT look(list_reduce(range(5), LAMBDA a, i: look(a), tickets(n)))
            FROM (SELECT count(*) AS n FROM range(9) r(i) GROUP BY i)
        """).fetchall()
        assert len(seen) >= 5
        assert all(seen), "DuckDB copies what functions return: see croma_sql.udfs.jobs"
    assert is_soon(lambda: all(ticket() is None for ticket in held))


def test_ctrl_c_at_any_moment_leaves_no_lock_behind():
    """Some of them come while a pool is being filled, which would leave it waiting for ever."""
    code = textwrap.dedent("""
        import os, random, signal, threading, time
        from concurrent.futures import ThreadPoolExecutor
        from croma_sql.interrupt import apart

        def fill(stopped):
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda _: stopped.is_set() or time.sleep(1e-4), range(300)))

        interrupted = 0
        while interrupted < 25:
            stopped = threading.Event()
            wait = random.uniform(0, 0.02)
            timer = threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()
                while True:
                    apart(lambda: fill(stopped), stopped.set)
            except KeyboardInterrupt:
                interrupted += 1
        print("done")
    """)
    child = subprocess.run(
        [sys.executable, "-c", code], timeout=60, capture_output=True, text=True, check=True
    )
    assert child.stdout == "done\n"
