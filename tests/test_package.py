"""What the package holds, and what it brings with it."""

import ast
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest

import croma_sql

REPOSITORY = Path(__file__).parents[1]
SQL = sorted(path.relative_to(REPOSITORY) for path in (REPOSITORY / "sql").rglob("*.sql"))


@pytest.mark.parametrize("path", SQL, ids=str)
def test_every_sql_file_is_one_statement_that_begins_with_what_it_is(path):
    text = (REPOSITORY / path).read_text(encoding="utf-8")
    assert [statement.type.name for statement in duckdb.extract_statements(text)] in (
        ["CREATE"],
        ["SELECT"],
    )
    head = "".join(line for line in text.splitlines(True) if line.startswith("--"))
    if "demo" not in path.parts:
        assert all(part in head for part in ("-- grain ", "-- NULL "))
    assert files("croma_sql.sql").joinpath("/".join(path.parts[1:])).is_file()


def test_light_imports():
    """The command line and the library start without test or plotting libraries."""
    heavy = ("pandas", "scipy.stats", "sklearn", "statsmodels", "torch", "matplotlib", "croma")
    heavy += ("h5py", "openpyxl", "anndata", "zarr", "upath", "fsspec", "s3fs", "botocore")
    code = f"import sys, croma_sql.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_only_croma_sql_is_importable_from_elsewhere(tmp_path):
    code = "import importlib.util as u; print(u.find_spec('udfs'), u.find_spec('sql'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None None\n"


def test_kernels_know_nothing_of_files_frames_or_connections():
    for path in (REPOSITORY / "udfs").rglob("*.py"):
        if "doors" in path.parts:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            alias.name if isinstance(node, ast.Import) else node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        foreign = {module.split(".")[0] for module in imported} - set(sys.stdlib_module_names)
        assert foreign <= {"numpy", "numba", "threadpoolctl", "croma_sql"}
        ours = {module for module in imported if module.startswith("croma_sql")}
        assert all(module.startswith("croma_sql.udfs") for module in ours)


def test_public_names_are_documented():
    for name in croma_sql.__all__:
        if name != "__version__":
            assert getattr(croma_sql, name).__doc__, name
