"""Views over the files of a warehouse, from ``sql/sources`` and ``sql/views``."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb

from croma_sql.errors import WarehouseError
from croma_sql.places import CHANGED, frozen, is_local


def add_source(con: duckdb.DuckDBPyConnection, name: str, paths: list[Path]) -> None:
    """Create the view ``sql/sources/<name>.sql`` over files; empty where there are none."""
    bound = {"files": [str(path) for path in paths]}
    try:
        if paths:
            _let_read(con, paths[0])
            con.sql(statement("sources", name), params=bound).create_view(name)
        else:
            con.sql(statement("sources", f"no_{name}")).create_view(name)
    except duckdb.Error as error:
        raise damaged(error) from error


def _let_read(con: duckdb.DuckDBPyConnection, path: Any) -> None:
    """Let a connection read files on object storage, all of them of one place.

    Each byte is fetched once: what is frozen needs no look at whether it has changed.
    """
    if not is_local(path) and not con.filesystem_is_registered(path.protocol):
        folder: Any = frozen(path.parent)
        con.register_filesystem(folder.fs)
        con.execute("SET validate_external_file_cache = 'NO_VALIDATION'")


def damaged(error: duckdb.Error) -> WarehouseError:
    """Say that files cannot be read, and what names them all, unless they have only changed."""
    text = told(error)
    if text.endswith(CHANGED):
        return WarehouseError(text)
    return WarehouseError(
        f"files of the warehouse cannot be read: {text}. croma-sql check names all damaged ones"
    )


def told(error: Exception) -> str:
    """Give DuckDB's words; of what failed within Python, which it quotes step by step, the last."""
    text = str(error).strip()
    if not text.startswith("Traceback"):
        return text
    return re.sub(r"^[\w.]+: (\[Errno \d+\] )?", "", text.rpartition("\n")[2])


def add_view(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """Create the view or macro ``sql/views/<name>.sql``."""
    try:
        con.execute(statement("views", name))
    except duckdb.Error as error:
        raise damaged(error) from error


def statement(folder: str, name: str) -> str:
    """Read the statement ``sql/<folder>/<name>.sql``."""
    return (files("croma_sql.sql") / folder / f"{name}.sql").read_text(encoding="utf-8")
