import os
import signal
from pathlib import Path

import duckdb
import pytest
from by_slide import part_bytes

import croma_sql
from croma_sql.warehouse.slides import parts

COMPILED = Path(croma_sql.udfs.__file__).resolve().parent
SHARED = Path(__file__).parents[2] / "shared" / "data"


def pytest_configure():
    """Drop compiled code that is older than a source: numba looks at a function's own file only.

    And let Ctrl-C arrive, which a shell ignores in jobs that it starts in the background.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    newest = max(path.stat().st_mtime for path in COMPILED.rglob("*.py"))
    for path in COMPILED.rglob("__pycache__/*.nb[ci]"):
        if path.stat().st_mtime < newest:
            path.unlink(missing_ok=True)  # workers of pytest do so at once


@pytest.fixture
def con():
    with croma_sql.register(duckdb.connect()) as connection:
        yield connection


@pytest.fixture(scope="session")
def shared():
    """Folder of real data with known values, where the machine has it."""
    if not SHARED.exists():
        pytest.skip("the real data sets are not on this machine")
    return SHARED


@pytest.fixture
def root(tmp_path):
    """Place for a warehouse, under a name that takes some quoting."""
    return tmp_path / 'it\'s a "house" für %20'


@pytest.fixture(scope="session")
def storage():
    """Object storage, to which the environment leads."""
    from storage import Storage

    server = Storage()
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            environment.delenv(name)
        for name, value in server.environment.items():
            environment.setenv(name, value)
        yield server
    server.stop()


@pytest.fixture
def remote(storage, request):
    """Place for a warehouse in a bucket of its own, under a name that takes some quoting."""
    from storage import bucket

    return bucket(f"test-{abs(hash(request.node.nodeid))}") / "it's für %20"


@pytest.fixture
def small_parts(monkeypatch):
    """Vectors imported by slide in parts of 100 rows, and not of 128 MB."""
    monkeypatch.setattr(parts, "PART_BYTES", part_bytes())
