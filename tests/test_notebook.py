"""What a notebook shows whose kernel has no ipywidgets, which nothing here depends on."""

import re
from pathlib import Path

import pytest
from cohorts import random_cohort
from notebook import Notebook

import croma_sql

LONG = """
import numpy as np, polars as pl, threading, time, duckdb, croma_sql

def search(cohort, **more):
    return croma_sql.margins(cohort["z"], cohort["l"], cohort["c"], cohort["g"], **more)

def made(n):
    rng = np.random.default_rng(0)
    return {
        "z": rng.standard_normal((n, 64), dtype=np.float32), "l": rng.integers(2, size=n),
        "c": rng.integers(2, size=n), "g": np.arange(n),
    }

def is_soon_idle():  # for as long as it takes; what hangs is killed
    while any(thread.name.startswith("croma") for thread in threading.enumerate()):
        time.sleep(0.01)
    return True

class Once:  # says when a search is under way
    def __init__(self):
        self.said = False
    def __call__(self, progress):
        if not self.said:
            print("under way", flush=True)
            self.said = True

few, many = made(500), made(150_000)
con = croma_sql.register(duckdb.connect())
table = lambda one: pl.DataFrame(
    {"sample_id": one["g"], "embedding": one["z"], "label": one["l"], "confounder": one["c"],
     "group_id": one["g"]}
)
few_tiles, tiles = table(few), table(many)
n = con.execute("SELECT count(margin) FROM croma_margins('few_tiles')").fetchall()
"""
IN_SQL = """
def watch():
    while not any(thread.name.startswith("croma") for thread in threading.enumerate()):
        time.sleep(0.01)
    print("under way", flush=True)

threading.Thread(target=watch).start()
con.execute("SELECT count(margin) FROM croma_margins('tiles')").fetchall()
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    folder = tmp_path_factory.mktemp("n")
    tiles = random_cohort(0).frame()
    croma_sql.import_embeddings(
        folder / "W", tiles, encoder="e", dataset="d", samples=tiles.drop("embedding")
    )
    croma_sql.add_benchmark(
        folder / "W", "b", "SELECT sample_id, label, confounder, group_id FROM samples"
    )
    kernel = Notebook(folder)
    yield kernel
    kernel.close()


def printed(notebook, code):
    cell = notebook.run(code)
    assert (cell.error, cell.warned) == ("", "")
    return cell.text


def test_ipywidgets_are_absent(notebook):
    assert notebook.run("import ipywidgets").error == (
        "ModuleNotFoundError: No module named 'ipywidgets'"
    )
    assert (
        "'ipywidgets' is missing"
        in notebook.run(
            "import duckdb; duckdb.connect().execute('SET enable_progress_bar = false')"
        ).error
    )


def test_connect_score_and_summary(notebook):
    assert printed(notebook, "import croma_sql; print(len(croma_sql.score('W')))") == "1\n"
    assert printed(notebook, "print(croma_sql.summary('W', intervals=True)['n'].item())") == "200\n"
    query = "SELECT count(margin), f0(margin) IS NOT NULL FROM margins"
    code = f"print(croma_sql.connect('W').sql({query!r}).fetchall())"
    assert printed(notebook, code) == "[(200, True)]\n"


def test_register_on_a_connection_of_the_users(notebook):
    code = """
import duckdb
con = croma_sql.register(duckdb.connect())
print(con.sql("SELECT f0(x) FROM (VALUES (-1.0), (1.0)) t(x)").fetchall())
"""
    assert printed(notebook, code) == "[(0.5,)]\n"


def test_progress_is_one_line_that_is_written_anew(notebook):
    """The pace of a search is its own; the bar sees its shares and the time that passes."""
    cell = notebook.run("""
import time
from croma_sql import Progress, progress_bar
import croma_sql.progress
croma_sql.progress.PATIENCE = croma_sql.progress.NOTEBOOK_WAIT = 0.0
with progress_bar("searching <all>") as bar:
    bar(Progress(0.25, 2e8, 3.0))
    bar(Progress(0.5, 2e8, 2.0))
""")
    assert (cell.error, cell.text, cell.warned) == ("", "", "")
    assert [one["text/plain"] for one in cell.shown] == [
        "searching <all>: 25% 200 M distances/s, 0:00:03 left",
        "searching <all>: 50% 200 M distances/s, 0:00:02 left",
        "searching <all>: done",
    ]
    assert cell.shown[1]["text/html"] == (
        '<progress value="0.500" max="1"></progress> '
        "searching &lt;all&gt;: 50% 200 M distances/s, 0:00:02 left"
    )


def test_interrupting_the_kernel_ends_a_search(notebook):
    """And leaves it usable: what runs there is over, and the next search is right."""
    assert printed(notebook, LONG) == ""
    cell = notebook.run("search(many, on_progress=Once())", interrupted_at="under way")
    assert cell.error.startswith("KeyboardInterrupt")
    assert printed(notebook, "print(is_soon_idle(), len(search(few)))") == "True 500\n"
    cell = notebook.run(IN_SQL, interrupted_at="under way")
    assert re.search("KeyboardInterrupt|Query interrupted", cell.error)
    assert printed(notebook, "print(is_soon_idle())") == "True\n"
    again = (
        "print(con.execute(\"SELECT count(margin) FROM croma_margins('few_tiles')\").fetchall())"
    )
    assert printed(notebook, again) == "[(500,)]\n"
    code = """
with croma_sql.progress_bar() as bar:
    print("under way", flush=True)
    search(many, on_progress=bar)
"""
    cell = notebook.run(code, interrupted_at="under way")
    assert cell.error.startswith("KeyboardInterrupt")
    assert (cell.text, cell.warned) == ("under way\n", "")


def test_every_connection_of_the_package_is_opened_in_one_place():
    package = Path(croma_sql.__file__).parent
    calls = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "duckdb.connect(" in line and ">>>" not in line
    }
    assert calls == {"connection.py"}
