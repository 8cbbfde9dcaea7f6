from pathlib import Path

import duckdb
import pytest

import croma_sql

SHARED = Path(__file__).parents[2] / "shared" / "data"


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
