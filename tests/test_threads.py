"""Who uses the cores, and what a search leaves behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from cohorts import random_cohort
from threadpoolctl import threadpool_info

import croma_sql
from croma_sql.udfs.threads import cores


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def large():
    return random_cohort(0, n=3000, d=64)


def margin_of(cohort):
    return croma_sql.margins(**cohort.arguments())["margin"].to_list()


def send_margin(cohort, queue):
    queue.put(margin_of(cohort))


def test_blas_threads_are_put_back():
    before = blas_threads()
    with cores(2):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError), cores(2) as for_each:
        for_each(lambda item: 1 // item, [1, 0, 1])
    assert blas_threads() == before


@pytest.mark.parametrize("threads", [1, 3])
def test_first_exception_stops_what_has_not_begun(threads):
    begun = []

    def work(item):
        begun.append(item)
        time.sleep(0.01)
        if item == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"), cores(threads) as for_each:
        for_each(work, range(500))
    assert len(begun) < 100


def test_searches_from_many_python_threads_agree():
    cohort = large()
    expected = margin_of(cohort)
    results = []
    workers = [threading.Thread(target=lambda: results.append(margin_of(cohort))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [expected] * 4


def test_searches_take_turns():
    """Two at once would fill every core twice, and put back each other's BLAS setting."""
    inside = []

    def hold():
        with cores(2) as for_each:
            inside.append("in")
            for_each(lambda _: time.sleep(0.02), range(4))
            inside.append("out")

    workers = [threading.Thread(target=hold) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert inside == ["in", "out"] * 4


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_search_too(method):
    """Also a child forked while another thread of the parent holds the cores."""
    cohort = large()
    expected = margin_of(cohort)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    with cores(1):
        child = context.Process(target=send_margin, args=(cohort, queue))
        child.start()
        assert queue.get(timeout=120) == expected
        child.join(timeout=60)
    assert child.exitcode == 0


def test_joblib_workers_search_too():
    cohort = large()
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(margin_of)(cohort) for _ in range(3))
    assert found == [margin_of(cohort)] * 3


SLOW = """
import sys, time
import numpy as np
import croma_sql
rng = np.random.default_rng(0)
n = 40_000
codes = rng.integers(2, size=(2, n))
vectors = rng.standard_normal((n, 1024), dtype=np.float32)
try:
    print("begun", flush=True)
    croma_sql.margins(vectors, codes[0], codes[1], np.arange(n))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_ctrl_c_stops_a_search_within_a_second():
    with subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "begun\n"
        time.sleep(3)
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        assert child.stdout.read() == "stopped\n"
        assert child.wait() == 0
    assert time.monotonic() - sent < 5  # a second by itself; the rest is for a machine that is busy


ANYWHERE = """
import croma_sql
embeddings = [[1, 0], [0.8, 0.6], [0, 1], [0.6, 0.8]]
print(croma_sql.margins(embeddings, [1, 1, 2, 2], [1, 2, 1, 2], [1, 2, 3, 4], m=1)["margin"][0])
"""


def test_works_where_nothing_can_be_cached():
    """A read-only installation and no writable home: numba finds no place for its cache."""
    nowhere = os.environ | {"NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
    done = subprocess.run(
        [sys.executable, "-c", ANYWHERE], capture_output=True, text=True, check=True, env=nowhere
    )
    assert np.isclose(float(done.stdout), 2 / 3)
