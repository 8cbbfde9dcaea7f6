"""Where a pooled encoder comes from: what is pooled, and what its files say of it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from croma_sql.errors import CromaSqlError, WarehouseError, listed
from croma_sql.warehouse import layout
from croma_sql.warehouse.data.samples import sample_ids
from croma_sql.warehouse.derived.groups import COUNT, SAMPLE
from croma_sql.warehouse.parquet import read_footer, read_metadata
from croma_sql.warehouse.scoring.plan import fingerprint

KEY = "pooled"
How = Literal["mean", "max", "mean-normalised"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is pooled, by what, and how.

    by : attributes, as the user names them
    datasets : of the encoder; None for all
    """

    encoder: str
    by: list[str]
    how: How
    datasets: list[str] | None
    prefix: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What an encoder is pooled from.

    files : of its vectors
    datasets : files of the samples that are pooled, by dataset: those of the encoder, and those of
        encoders that were pooled into the same dataset before
    known : ids of the dataset that the new vectors are of, where pooling has not made it
    about : what the file made from it says
    """

    files: list[Path]
    datasets: dict[str, Path]
    known: pa.Array | None
    about: dict[str, Any]


def origin(root: Path, recipe: Recipe, dataset: str) -> Origin:
    """Find what is pooled into a dataset, and describe it.

    Raises
    ------
    WarehouseError
        No vectors; attributes that no sample has; a dataset that is pooled itself, or was by other
        attributes.
    """
    if recipe.how not in get_args(How):
        raise WarehouseError(f"how is {recipe.how!r}; it is one of {', '.join(get_args(How))}")
    found = _vectors(root, recipe)
    if dataset in found:
        raise WarehouseError(
            f"dataset {dataset!r} is what is pooled; give the new samples a dataset of their own"
        )
    there = layout.samples_files(root)
    before = described(there[dataset]) if dataset in there else None
    known = sample_ids(root, dataset) if dataset in there and before is None else None
    sources = {*found, *(before["datasets"] if before else [])}
    datasets = {name: there[name] for name in sorted(sources) if name in there}
    asked = asdict(recipe) | {"by": _named(recipe.by, datasets.values())}
    if before is not None:
        _check_alike(before, asked, dataset)
    files = [path for name in sorted(found) for path in found[name]]
    rows = pa.table({SAMPLE: pa.array([], pa.string()) if known is None else known})
    made = {"fingerprint": fingerprint([*files, *datasets.values()], rows, (), asked)}
    return Origin(files, datasets, known, asked | made)


def described(path: Path) -> dict[str, Any] | None:
    """Read what a file of vectors or samples says of its origin; None where it was imported."""
    about = read_metadata(path).get(KEY)
    return (
        about if isinstance(about, dict) and {"by", "prefix", "datasets"} <= about.keys() else None
    )


def status_of(root: Path, about: dict[str, Any], dataset: str) -> str:
    """Tell whether pooled vectors are those of their source now: 'up to date', or why not."""
    asked = {name: value for name, value in about.items() if name != "fingerprint"}
    try:
        found = origin(root, Recipe(**asked), dataset)
    except (CromaSqlError, TypeError) as error:
        return str(error)
    return "up to date" if found.about == about else "stale"


def check_replaceable(root: Path, to: str, dataset: str, about: dict[str, Any]) -> None:
    """Refuse to replace vectors that were not made in the same way.

    Raises
    ------
    WarehouseError
    """
    there = f"encoder {to!r} has vectors of dataset {dataset!r} already"
    cure = "name another encoder with --to (Python: to=)"
    for file in layout.embeddings_files(root):
        if (file.encoder, file.dataset) != (to, dataset):
            continue
        before = described(file.path)
        if before is None:
            raise WarehouseError(f"{there}, and pooling did not make them; {cure}")
        for name, value in about.items():
            if name != "fingerprint" and before.get(name) != value:
                was = f"{name} {before.get(name)!r}, not {value!r}"
                raise WarehouseError(f"{there}, pooled with {was}; {cure}")


def _vectors(root: Path, recipe: Recipe) -> dict[str, list[Path]]:
    """Files of the encoder's vectors, by dataset."""
    found: dict[str, list[Path]] = {}
    encoders = set()
    for file in layout.embeddings_files(root):
        encoders.add(file.encoder)
        if file.encoder == recipe.encoder:
            found.setdefault(file.dataset, []).append(file.path)
    if not found:
        known = listed(sorted(encoders), show=10) if encoders else "no encoder"
        raise WarehouseError(
            f"encoder {recipe.encoder!r} has no vectors; there are those of {known}"
        )
    if recipe.datasets is None:
        return found
    unknown: Sequence[str] = [name for name in recipe.datasets if name not in found]
    if unknown or not recipe.datasets:
        raise WarehouseError(
            f"encoder {recipe.encoder!r} has no vectors of dataset {listed(unknown)}; it has those "
            f"of {listed(sorted(found), show=10)}"
        )
    return {name: found[name] for name in recipe.datasets}


def _named(by: Sequence[str], datasets: Iterable[Path]) -> list[str]:
    """Take attributes by the names they have, in either case, as SQL does."""
    spelt: dict[str, str] = {}
    for path in datasets:
        for name in read_footer(path).schema.to_arrow_schema().names:
            if name.lower() not in (SAMPLE, COUNT):
                spelt.setdefault(name.lower(), name)
    unknown = [name for name in by if name.lower() not in spelt]
    if unknown:
        raise WarehouseError(
            f"samples cannot be pooled by {unknown[0]!r}; they have "
            f"{listed(spelt.values(), show=50)}"
        )
    names = [spelt[name.lower()] for name in by]
    if not names or len(set(names)) < len(names):
        raise WarehouseError(f"pooling is by one or more attributes, each named once; not {names}")
    return names


def _check_alike(before: dict[str, Any], asked: dict[str, Any], dataset: str) -> None:
    if any(before[name] != asked[name] for name in ("by", "prefix")):
        raise WarehouseError(
            f"dataset {dataset!r} is there already, pooled by {', '.join(before['by'])} with "
            f"prefix {before['prefix']!r}; name another with --dataset (Python: dataset=)"
        )
