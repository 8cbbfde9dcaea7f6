"""Where things lie in a warehouse, what their names may be, and what is there."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from croma_sql.errors import WarehouseError
from croma_sql.warehouse.publish import publishing

FORMAT = 1
MARKER = "warehouse.json"
LONGEST_FILE_NAME = 240  # bytes; file systems allow 255, and a suffix comes on top


@dataclass(frozen=True, slots=True)
class EmbeddingsFile:
    """One encoder's vectors of one dataset."""

    encoder: str
    dataset: str
    path: Path


@dataclass(frozen=True, slots=True)
class ScoresFile:
    """Typed neighbours of one benchmark under one encoder."""

    benchmark: str
    encoder: str
    path: Path


def create_warehouse(root: str | Path) -> Path:
    """Make a folder a warehouse; one that already is stays as it is.

    Raises
    ------
    WarehouseError
        The folder holds other things, or cannot be written.
    """
    root = _placed(root)
    if (root / MARKER).exists():
        return open_warehouse(root)
    if root.exists() and (not root.is_dir() or any(not _is_hidden(p) for p in root.iterdir())):
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
        form = json.loads(marker.read_text(encoding="utf-8"))["format"]
    except (FileNotFoundError, NotADirectoryError):
        raise WarehouseError(
            f"{root} is not a warehouse (it has no {MARKER}). Import into it to make one "
            "(croma-sql import …), or check the path"
        ) from None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise WarehouseError(f"{marker} cannot be read: {error}") from error
    if not isinstance(form, int) or form > FORMAT:
        raise WarehouseError(
            f"{root} has format {form}; this version of croma_sql reads up to {FORMAT}. "
            "Update croma_sql"
        )
    return root


def samples_path(root: Path, dataset: str) -> Path:
    """File of a dataset's samples."""
    return root / "samples" / f"{_segment(dataset, 'dataset')}.parquet"


def embeddings_path(root: Path, encoder: str, dataset: str) -> Path:
    """File of an encoder's vectors of a dataset."""
    folder = root / "embeddings" / f"encoder={_segment(encoder, 'encoder')}"
    return folder / f"{_segment(dataset, 'dataset')}.parquet"


def benchmark_path(root: Path, benchmark: str) -> Path:
    """File of a benchmark's SELECT."""
    return root / "benchmarks" / f"{_segment(benchmark, 'benchmark')}.sql"


def typed_neighbours_path(root: Path, benchmark: str, encoder: str) -> Path:
    """File of the typed neighbours of a benchmark under an encoder."""
    folder = root / "scores" / "typed_neighbours"
    folder /= f"benchmark={_segment(benchmark, 'benchmark')}"
    return folder / f"encoder={_segment(encoder, 'encoder')}" / "typed_neighbours.parquet"


def samples_files(root: Path) -> dict[str, Path]:
    """Datasets and their files, by name."""
    return {unquote(path.stem): path for path in _inside(root, "samples/*.parquet")}


def embeddings_files(root: Path) -> list[EmbeddingsFile]:
    """Embeddings files, by encoder and dataset."""
    return [
        EmbeddingsFile(_value(path.parent), unquote(path.stem), path)
        for path in _inside(root, "embeddings/encoder=*/*.parquet")
    ]


def benchmarks_files(root: Path) -> dict[str, Path]:
    """Benchmarks and their files, by name."""
    return {unquote(path.stem): path for path in _inside(root, "benchmarks/*.sql")}


def typed_neighbours_files(root: Path) -> list[ScoresFile]:
    """Typed-neighbour files, by benchmark and encoder."""
    return [
        ScoresFile(_value(path.parent.parent), _value(path.parent), path)
        for path in _inside(root, "scores/typed_neighbours/benchmark=*/encoder=*/*.parquet")
    ]


def _placed(root: str | Path) -> Path:
    """Refuse a place whose path DuckDB would read as ours: the first ``encoder=`` in it counts."""
    path = Path(root)
    for part in path.absolute().parts:
        if part.lower().startswith(("encoder=", "benchmark=")):
            raise WarehouseError(
                f"{path} lies in or is a folder named {part!r}, which inside a warehouse names an "
                "encoder or a benchmark; put the warehouse elsewhere"
            )
    return path


def _segment(name: str, what: str) -> str:
    """Write a name as one path segment; any text works but for what no file system holds.

    Examples
    --------
    >>> _segment("UNI 2/h é", "encoder")
    'UNI%202%2Fh%20%C3%A9'
    """
    if not name.strip() or any(ord(character) < 32 for character in name):
        raise WarehouseError(f"{name!r} cannot be the name of a {what}: empty or unprintable")
    segment = quote(name, safe="+@,")
    if segment.startswith("."):  # a dot in front hides a file
        segment = f"%2E{segment[1:]}"
    if len(segment) > LONGEST_FILE_NAME:
        raise WarehouseError(f"the name of {what} {name[:30]!r}… is too long for a file name")
    return segment


def _value(folder: Path) -> str:
    return unquote(folder.name.partition("=")[2])


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".")


def _inside(root: Path, pattern: str) -> Iterator[Path]:
    """Files that match, sorted; a link that leads out of the warehouse is refused by name."""
    home = root.resolve()
    for path in sorted(root.glob(pattern)):
        if _is_hidden(path):
            continue
        if not path.resolve().is_relative_to(home):
            raise WarehouseError(
                f"{path} is a link to {path.resolve()}, outside of the warehouse. "
                "A warehouse reads nothing outside its folder: copy the file into its place"
            )
        yield path
