"""Where things lie in a warehouse, what their names may be, and what is there."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from urllib.parse import quote, unquote

from croma_sql.errors import WarehouseError
from croma_sql.places import below, is_local, matching, names_in, place
from croma_sql.warehouse.parquet import read_table
from croma_sql.warehouse.publish import MARKER, publishing
from croma_sql.warehouse.scoring.schemas import SCHEMAS, Table

FORMAT = 1
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
LONGEST_FILE_NAME = 240  # bytes; file systems allow 255, and a suffix comes on top
_PART = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class EmbeddingsFile:
    """One encoder's vectors of one dataset, or a part of them.

    part : name of the part; None where the file holds all
    """

    encoder: str
    dataset: str
    path: Path
    part: str | None = None


@dataclass(frozen=True, slots=True)
class SourcesFile:
    """What one encoder's vectors of one dataset were imported from."""

    encoder: str
    dataset: str
    path: Path


@dataclass(frozen=True, slots=True)
class ScoresFile:
    """A table of one benchmark under one encoder."""

    table: Table
    benchmark: str
    encoder: str
    path: Path


def create_warehouse(root: str | Path) -> Path:
    """Make a folder a warehouse; one that already is stays as it is.

    Parameters
    ----------
    root : path or URL of a new or empty folder, or of a warehouse

    Returns
    -------
    pathlib.Path, absolute; of a URL a ``upath.UPath``

    Raises
    ------
    WarehouseError
        The folder holds other things, or cannot be written.
    """
    root = _placed(root)
    try:
        if (root / MARKER).exists():
            return open_warehouse(root)
        holds_others = root.exists() and (
            not root.is_dir() or not all(name.startswith(".") for name in names_in(root))
        )
    except OSError as error:
        raise WarehouseError(f"{root} cannot be read: {error.strerror or error}") from error
    if holds_others:
        raise WarehouseError(
            f"{root} exists and is not a warehouse (it has no {MARKER}); name a new or empty folder"
        )
    with publishing(root / MARKER) as file:
        file.write(json.dumps({"format": FORMAT}).encode() + b"\n")
    return root


def open_warehouse(root: str | Path) -> Path:
    """Check that a folder is a warehouse this version can read.

    Raises
    ------
    WarehouseError
        No warehouse there, an unreadable marker, or a newer format.
    """
    root = _placed(root)
    marker = root / MARKER
    try:
        _refuse_outside(root, marker)
        if is_local(marker) and marker.exists() and not marker.is_file():
            raise WarehouseError(f"{marker} is not a file")
        form = json.loads(marker.read_text(encoding="utf-8"))["format"]
    except (FileNotFoundError, NotADirectoryError):
        raise WarehouseError(
            f"{root} is not a warehouse (it has no {MARKER}). Import into it to make one "
            "(croma-sql import …), or check the path"
        ) from None
    except WarehouseError:
        raise
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WarehouseError(f"{marker} cannot be read: {reason}") from error
    if type(form) is not int or not 1 <= form <= FORMAT:
        raise WarehouseError(
            f"{root} has format {form!r}; this version of croma_sql reads 1 to {FORMAT}. "
            "Update croma_sql"
        )
    return root


def samples_path(root: Path, dataset: str) -> Path:
    """File of a dataset's samples."""
    return _place(root, "samples", f"{_segment(dataset, 'dataset')}.parquet")


def encoders_path(root: Path) -> Path:
    """File of the attributes of encoders."""
    return _place(root, "encoders.parquet")


def embeddings_path(root: Path, encoder: str, dataset: str) -> Path:
    """File of an encoder's vectors of a dataset."""
    folder = f"encoder={_segment(encoder, 'encoder')}"
    return _place(root, "embeddings", folder, f"{_segment(dataset, 'dataset')}.parquet")


def part_path(root: Path, encoder: str, dataset: str, part: str) -> Path:
    """File of a part of an encoder's vectors of a dataset."""
    folder = f"encoder={_segment(encoder, 'encoder')}"
    if dataset.endswith(".parquet"):
        raise WarehouseError(f"{dataset!r} cannot be the dataset's name: it ends with .parquet")
    return _place(root, "embeddings", folder, _segment(dataset, "dataset"), f"{part}.parquet")


def tiles_path(part: Path) -> Path:
    """File of the samples of a part that is not in force yet, beside it."""
    return part.with_name(f".{part.stem}.tiles.parquet")


def sources_path(root: Path, encoder: str, dataset: str) -> Path:
    """File of what an encoder's vectors of a dataset were imported from."""
    folder = f"encoder={_segment(encoder, 'encoder')}"
    return _place(root, "sources", folder, f"{_segment(dataset, 'dataset')}.parquet")


def benchmark_path(root: Path, benchmark: str) -> Path:
    """File of a benchmark's SELECT."""
    return _place(root, "benchmarks", f"{_segment(benchmark, 'benchmark')}.sql")


def scores_path(root: Path, table: Table, benchmark: str, encoder: str) -> Path:
    """File of a table of a benchmark under an encoder."""
    folders = (
        f"benchmark={_segment(benchmark, 'benchmark')}",
        f"encoder={_segment(encoder, 'encoder')}",
    )
    return _place(root, "scores", table, *folders, f"{table}.parquet")


def members_path(root: Path, benchmark: str) -> Path:
    """File of who is in which unit of a paired benchmark."""
    folder = f"benchmark={_segment(benchmark, 'benchmark')}"
    return _place(root, "scores", "members", folder, "members.parquet")


def samples_files(root: Path) -> dict[str, Path]:
    """Datasets and their files, by name."""
    return {unquote(path.stem): path for path in _inside(root, "samples/*.parquet")}


def encoders_files(root: Path) -> list[Path]:
    """List the file of the attributes of encoders, where there is one."""
    return list(_inside(root, "encoders.parquet"))


def embeddings_files(root: Path) -> list[EmbeddingsFile]:
    """Embeddings files in force, by encoder and dataset; parts as their sources list them.

    A part that is listed is in force even where it is lost: then reading it is an error.
    """
    found = [
        EmbeddingsFile(_value(path.parent), unquote(path.stem), path)
        for path in _inside(root, "embeddings/encoder=*/*.parquet")
    ]
    whole = {(file.encoder, file.dataset) for file in found}
    for sources in sources_files(root):
        encoder, dataset = sources.encoder, sources.dataset
        if (encoder, dataset) not in whole:
            found += [
                EmbeddingsFile(encoder, dataset, part_path(root, encoder, dataset, part), part)
                for part in listed_parts(sources.path)
            ]
    return sorted(found, key=lambda file: embeddings_path(root, file.encoder, file.dataset).parts)


def by_dataset(root: Path) -> list[list[EmbeddingsFile]]:
    """Embeddings files in force, those of one encoder and dataset together."""
    key = attrgetter("encoder", "dataset")
    return [list(files) for _, files in groupby(embeddings_files(root), key)]


def sources_files(root: Path) -> list[SourcesFile]:
    """Files of what vectors were imported from, by encoder and dataset."""
    return [
        SourcesFile(_value(path.parent), unquote(path.stem), path)
        for path in _inside(root, "sources/encoder=*/*.parquet")
    ]


def listed_parts(sources: Path) -> list[str]:
    """Parts that a file of sources lists, in its order."""
    column = read_table(sources, ["part"]).column("part")
    parts: list[str] = column.drop_null().unique().to_pylist()
    odd = [part for part in parts if not _PART.fullmatch(str(part))]
    if odd:
        raise WarehouseError(f"{sources} lists {odd[0]!r}, which is no name of a part")
    return parts


def leftovers(root: Path) -> list[Path]:
    """Parts that are not in force, and what lies beside them: of an import that was interrupted."""
    in_force = {file.path for file in embeddings_files(root)}
    return [
        path
        for path in matching(root, "embeddings/encoder=*/*/*.parquet")
        if path not in in_force and is_part(path)
    ]


def encoder_of(embeddings: Path) -> str:
    """Tell whose vectors are in a file."""
    folder = next(folder for folder in embeddings.parents if folder.name.startswith("encoder="))
    return _value(folder)


def parts_there(root: Path, encoder: str, dataset: str) -> list[Path]:
    """Parts of an encoder's vectors of a dataset, in force or not, and what lies beside them."""
    folder = embeddings_path(root, encoder, dataset).with_suffix("")
    _refuse_outside(root, folder)
    return [path for path in sorted(below(folder)) if is_part(path)]


def is_part(path: Path) -> bool:
    """Tell a part, or what lies beside it, by the name."""
    return bool(_PART.fullmatch(path.name.removeprefix(".").partition(".")[0]))


def benchmarks_files(root: Path) -> dict[str, Path]:
    """Benchmarks and their files, by name."""
    return {unquote(path.stem): path for path in _inside(root, "benchmarks/*.sql")}


def scores_files(root: Path) -> list[ScoresFile]:
    """Files of scores, by table, benchmark and encoder."""
    found: dict[str, list[Path]] = {table: [] for table in SCHEMAS}
    for path in _inside(root, "scores/*/benchmark=*/encoder=*/*.parquet"):
        table = path.parent.parent.parent.name
        if path.stem == table in found:
            found[table].append(path)
    return [
        ScoresFile(table, _value(path.parent.parent), _value(path.parent), path)
        for table in SCHEMAS
        for path in found[table]
    ]


def members_files(root: Path) -> dict[str, Path]:
    """Files of who is in which unit, by benchmark."""
    pattern = "scores/members/benchmark=*/members.parquet"
    return {_value(path.parent): path for path in _inside(root, pattern)}


def strays(root: Path) -> list[Path]:
    """Parquet and SQL in the folders of a warehouse under names that it does not write."""
    known = {
        *samples_files(root).values(),
        *benchmarks_files(root).values(),
        *members_files(root).values(),
        *(file.path for file in embeddings_files(root)),
        *(file.path for file in sources_files(root)),
        *(file.path for file in scores_files(root)),
        *leftovers(root),
    }
    return [
        path
        for folder in ("samples", "embeddings", "sources", "benchmarks", "scores")
        for path in below(root / folder)
        if path not in known and path.suffix in (".parquet", ".sql")
    ]


def _placed(root: str | Path) -> Path:
    """Refuse a place that DuckDB would read as a pattern, or as columns (``encoder=…``)."""
    path = place(root).absolute()
    for part in path.parts:
        if set(part) & set("*?[="):
            raise WarehouseError(
                f"{path} cannot be a warehouse: SQL would read {part!r} in its path as a pattern "
                "or as a column. Put it where no folder has *, ?, [ or = in its name"
            )
    return path


def _place(root: Path, *parts: str) -> Path:
    path = root.joinpath(*parts)
    _refuse_outside(root, path)
    return path


def _refuse_outside(root: Path, path: Path) -> None:
    if not is_local(path):  # object storage knows no links
        return
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:
        raise WarehouseError(f"{path} cannot be followed: {error}") from error
    if not target.is_relative_to(root.resolve()):
        raise WarehouseError(
            f"{path} is a link to {target}, outside of the warehouse. A warehouse reads "
            "and writes nothing outside its folder: put the file itself in its place"
        )


def _segment(name: str, what: str) -> str:
    """Write a name as one path segment; any text works but for what no file system holds.

    Examples
    --------
    >>> _segment("UNI 2/h é", "encoder")
    'UNI%202%2Fh%20%C3%A9'
    """
    try:
        segment = quote(name, safe="+@,")
    except UnicodeEncodeError as error:
        raise WarehouseError(f"{name!r} cannot be the {what}'s name: {error}") from error
    if not name.strip() or any(ord(character) < 32 for character in name) or name == HIVE_NULL:
        raise WarehouseError(f"{name!r} cannot be the {what}'s name: empty or unprintable")
    if len(segment) > LONGEST_FILE_NAME:
        raise WarehouseError(f"the name of {what} {name[:30]!r}… is too long for a file name")
    return f"%2E{segment[1:]}" if segment.startswith(".") else segment  # a dot would hide the file


def _value(folder: Path) -> str:
    return unquote(folder.name.partition("=")[2])


def _inside(root: Path, pattern: str) -> Iterator[Path]:
    """Regular files that match, sorted, under names that a warehouse writes.

    Other names are left to `strays`: one with a ``*`` in it would be a pattern to DuckDB.
    """
    for path in matching(root, pattern):
        if all(_is_ours(part) for part in path.relative_to(root).parts):
            _refuse_outside(root, path)
            if not is_local(path) or path.is_file():
                yield path


def _is_ours(part: str) -> bool:
    name = part.partition("=")[2] or part
    suffix = next((suffix for suffix in (".parquet", ".sql") if name.endswith(suffix)), "")
    stem = name.removesuffix(suffix)
    try:
        return stem == _segment(unquote(stem, errors="strict"), "file")
    except (WarehouseError, UnicodeDecodeError):
        return False
