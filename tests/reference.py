"""Write sql/README.md, the reference, from what it is about: python tests/reference.py.

Signatures and columns are those that DuckDB and Python report; the words are the headers of the
statements and the first lines of docstrings. test_reference.py compares.
"""

import inspect
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import typer

import croma_sql
from croma_sql.cli.app import app

SQL = Path(__file__).parents[1] / "sql"
REFERENCE = SQL / "README.md"
ATTRIBUTES = ("class", "centre", "scanner", "stain", "slide")

INTRODUCTION = """\
# Reference

Written by `python tests/reference.py` from the statements in this folder, and compared with them by
the tests: do not edit it. What the numbers mean is in the project's README; worked examples are
[demo/README.md](demo/README.md) and [demo/scanners_and_centres.md](demo/scanners_and_centres.md).
Each statement is in the file of its name.
"""
ANYWHERE = "On any connection after `croma_sql.register(con)`."
HERE = "On a connection of `croma_sql.connect(warehouse)`."
GROUPS = {
    "macros/search": f"Margins and neighbours of any relation. {ANYWHERE} `relation` is the name "
    "of a table, view, CTE, Parquet path or registered frame.",
    "macros/consistency": "The same units, such as slides, under several acquisitions, such as "
    f"scanners, of any relation. {ANYWHERE}",
    "macros/centre": "How strongly vectors encode the confounder (the centre), of any relation. "
    f"{ANYWHERE}",
    "macros/statistics": f"Aggregates and scalars. {ANYWHERE}",
    "macros/comparing": f"Encoders against each other, from any table of results. {ANYWHERE}",
    "designs": f"Which samples are scored together. {ANYWHERE} Also in the SELECT of a benchmark.",
    "views/data": f"What was imported. {HERE}",
    "views/edges": f"What the search found. {HERE}",
    "views/margins": f"Margins and their summaries. {HERE}",
    "views/fixed_k": f"RI, MaRI and k-NN accuracies, of what was scored with `--k`. {HERE} What "
    "ends in `_at` takes a k, or several, for all; what ends in `_of` a relation with a k for each "
    "benchmark and encoder.",
    "views/blame": f"Where the distractors come from. {HERE}",
    "views/encoders": f"Encoders against each other. {HERE}",
    "views/consistency": "The same units under several acquisitions, of what "
    f"`croma-sql consistency` has compared. {HERE}",
    "views/centre": "How strongly encoders encode the confounder, of what `croma-sql centre` has "
    f"measured. {HERE}",
}
PARTS = ("macros/parts", "Used by the others.")
HELPERS = (
    "attributes_but",
    "croma_design_rows",
    "croma_quoted",
    "unit_attributes_but",
)  # which stand elsewhere
# How a table macro is called, where its arguments do not go without saying.
CALLS = {
    "attributes_but": "attributes_but(['label'])",
    "collapse_check_at": "collapse_check_at(0.01)",
    "croma_acquisition_pairs": "croma_acquisition_pairs('scans')",
    "croma_acquisitions": "croma_acquisitions('scans')",
    "croma_balanced": "croma_balanced('tiles', 5)",
    "croma_boost": "croma_boost('encoder_summary', 'centre', 'scanner')",
    "croma_clustering_quartets": "croma_clustering_quartets('clusterings')",
    "croma_clustering_score": "croma_clustering_score('clusterings')",
    "croma_frontier": "croma_frontier('encoder_panel')",
    "croma_iok": "croma_iok('scans')",
    "croma_isolated": "croma_isolated('tiles', 'scanner')",
    "croma_mean_ranks": "croma_mean_ranks('encoder_panel')",
    "croma_unit_pairs": "croma_unit_pairs('scans')",
    "croma_units": "croma_units('scans')",
    "dominant_confounders": "dominant_confounders(['scanner', 'centre'])",
    "encoder_panel_at": "encoder_panel_at(5)",
    "encoder_summary_at": "encoder_summary_at(5)",
    "fixed_k_summary_of": "fixed_k_summary_of('points')",
    "hubs_at": "hubs_at(5)",
    "knn_accuracy_at": "knn_accuracy_at([1, 3, 5])",
    "knn_accuracy_of": "knn_accuracy_of('points')",
    "margin_histogram_at": "margin_histogram_at(5)",
    "margins_at": "margins_at(5)",
    "neighbourhoods_at": "neighbourhoods_at(3)",
    "neighbourhoods_of": "neighbourhoods_of('points')",
    "operating_points_of": "operating_points_of('knn_accuracy')",
    "suppliers_at": "suppliers_at(5)",
    "unit_attributes_but": "unit_attributes_but(['k'])",
    "unit_neighbourhoods_at": "unit_neighbourhoods_at(5)",
    "window_shortfall_of": "window_shortfall_of('points')",
}


def reference() -> str:
    """Give the text of the reference."""
    with tempfile.TemporaryDirectory() as root, connection(Path(root)) as con:
        parts = [INTRODUCTION]
        for folder, about in GROUPS.items():
            parts.append(f"## {folder}\n\n{about}\n")
            parts += [_entry(con, path) for path in _files(folder) if path.stem not in HELPERS]
        folder, about = PARTS
        parts.append(f"## {folder}\n\n{about}\n")
        parts += [_line(path) for path in _files(folder)]
        parts += [_line(next(SQL.rglob(f"{name}.sql"))) for name in HELPERS]
    return "\n".join([*parts, "", *_python(), *_polars(), *_command_line()])


def _files(folder: str) -> list[Path]:
    return sorted((SQL / folder).glob("*.sql"))


def connection(root: Path) -> duckdb.DuckDBPyConnection:
    """Open a small warehouse of everything that can be asked."""
    rng = np.random.default_rng(0)
    n = 480
    tiles = pl.DataFrame(
        {
            "sample_id": [f"t{i}" for i in range(n)],
            "embedding": pl.Series(rng.standard_normal((n, 4)), dtype=pl.Array(pl.Float64, 4)),
            "class": ["tumour", "normal"] * (n // 2),
            "centre": ["x", "x", "y", "y"] * (n // 4),
            "scanner": rng.choice(["p", "q"], n),
            "stain": rng.choice(["new", "old"], n),
            "slide": np.arange(n) // 4,
        }
    )
    croma_sql.import_embeddings(root, tiles, encoder="e", dataset="d", samples=tiles)
    for confounder in ("centre", "scanner"):
        columns = f"sample_id, class AS label, {confounder} AS confounder, slide AS group_id"
        croma_sql.add_benchmark(root, confounder, f"SELECT {columns} FROM samples")
    croma_sql.add_benchmark(
        root, "paired", f"SELECT {columns}, unnest(['a', 'b']) AS subset FROM samples"
    )
    croma_sql.add_benchmark(
        root, "scans", "SELECT sample_id, slide AS unit, centre AS acquisition FROM samples"
    )
    croma_sql.score(root, k=20, first_ranks=True)
    croma_sql.score_consistency(root, permutations=9)
    croma_sql.score_centre(root, benchmark="centre", trials=2, folds=2, k_range=(2, 4))
    con = croma_sql.connect(root)
    names = {"class": "label", "centre": "confounder", "slide": "group_id"}
    con.register("tiles", tiles.rename(names))
    con.execute(
        "CREATE VIEW scans AS "
        "SELECT group_id AS unit, confounder AS acquisition, embedding FROM tiles"
    )
    con.execute("CREATE VIEW points AS SELECT benchmark, encoder, 3 AS k FROM encoder_summary")
    con.execute("CREATE VIEW encoder_panel AS FROM encoder_panel_at(5)")
    return con


def queries() -> list[tuple[str, str]]:
    """Give the queries in headers, with the names of their files."""
    return [
        (path.stem, words.strip("`"))
        for folder in GROUPS
        for path in _files(folder)
        for _, words in _keyed(_split(path.read_text(encoding="utf-8"))[0])
        for words in re.findall(r"`[^`]*`", words)
    ]


def _entry(con: duckdb.DuckDBPyConnection, path: Path) -> str:
    header, statement = _split(path.read_text(encoding="utf-8"))
    parts = [f"### `{_call(path.stem, statement)}`\n", f"{_sentence(header)}\n"]
    parts += [f"- {key}: {words}" for key, words in _keyed(header)]
    columns = _columns(con, path.stem, statement)
    if columns:
        parts.append(f"- **columns**: {columns}")
    return "\n".join([*parts, ""])


def _line(path: Path) -> str:
    header, statement = _split(path.read_text(encoding="utf-8"))
    return f"- `{_call(path.stem, statement)}`: {_sentence(header)}"


def _split(text: str) -> tuple[list[str], str]:
    lines = text.splitlines()
    length = next(i for i, line in enumerate(lines) if not line.startswith("--"))
    return [line.removeprefix("--")[1:] for line in lines[:length]], "\n".join(lines[length:])


def _sentence(header: list[str]) -> str:
    first = " ".join(line.strip() for line in header[: header.index("")])
    words = first.partition(": ")[2]
    return words[0].upper() + words[1:]


def _keyed(header: list[str]) -> list[tuple[str, str]]:
    """Give what a header says by key; a query, which is set in further, in backquotes."""
    found: list[tuple[str, str]] = []
    was_query = False
    for line in header[header.index("") + 1 :]:
        start = re.match(r"(\w+) +(.*)", line)
        is_query = line.startswith(" " * 12)
        if start:
            found.append((start[1], start[2]))
        else:
            key, words = found.pop()
            between = ("` " if was_query else " `") if is_query != was_query else " "
            found.append((key, words + between + line.strip()))
        was_query = is_query
    return [(key, words + "`" * (words.count("`") % 2)) for key, words in found]


def _call(name: str, statement: str) -> str:
    parameters = re.search(r"MACRO \w+\((.*?)\) AS", statement, re.DOTALL)
    return f"{name}({' '.join(parameters[1].split())})" if parameters else name


def _columns(con: duckdb.DuckDBPyConnection, name: str, statement: str) -> str | None:
    """Columns of a view or table macro, which is also run."""
    if "AS TABLE" in statement:
        relation = CALLS.get(name, f"{name}('tiles')")
    elif "VIEW" in statement:
        relation = name
    else:
        return None
    con.sql(f"FROM {relation}").fetchall()
    rows = con.sql(f"DESCRIBE FROM {relation}").fetchall()
    told = [f"`{column}` {kind}" for column, kind, *_ in rows if column not in ATTRIBUTES]
    if len(told) < len(rows):
        told.append("every attribute of the sample")
    if name in ("encoders", "encoder_ranking", "encoder_mean_ranks"):
        told.append("every attribute of the encoder")
    return ", ".join(told)


def _python() -> Iterator[str]:
    yield "## Python\n\n`help(croma_sql.bootstrap)` says what it takes, gives and raises.\n"
    for name in croma_sql.__all__:
        it = getattr(croma_sql, name)
        if inspect.isfunction(it):
            yield f"- `{name}({_arguments(it)})`: {_first_line(it)}"
        elif inspect.isclass(it):
            yield f"- `{name}`: {_first_line(it)}"
    yield ""


def _polars() -> Iterator[str]:
    yield '## Polars\n\nExpressions, as `pl.col("embedding").croma.margin(…)`.\n'
    for name, method in inspect.getmembers(croma_sql.CromaExpressions, inspect.isfunction):
        if not name.startswith("_"):
            yield f"- `croma.{name}({_arguments(method)})`: {_first_line(method)}"
    yield ""


def _command_line() -> Iterator[str]:
    yield "## Command line\n\n`croma-sql VERB --help` says more.\n"
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        for verb, one in getattr(command, "commands", {"": command}).items():
            options = " ".join(
                (parameter.name or "").upper()
                if parameter.param_type_name == "argument"
                else f"[{max(parameter.opts, key=len)}]"
                for parameter in one.params
                if parameter.name != "help"
            )
            words = (one.help or "").partition("\n\n")[0].replace("\n", " ")
            yield f"- `croma-sql {' '.join(filter(None, (name, verb)))} {options}`: {words}"
    yield ""


def _arguments(function: object) -> str:
    parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    told: list[str] = []
    for parameter in parameters:
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in told:
            told.append("*")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        told.append(parameter.name + default)
    return ", ".join(told)


def _first_line(it: object) -> str:
    return (inspect.getdoc(it) or "").partition("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    REFERENCE.write_text(reference(), encoding="utf-8")
