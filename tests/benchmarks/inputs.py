"""Vectors and manifests of the benchmarks, made once and read by every lap.

    python inputs.py '{"name": "camelyon", ...}' FOLDER

writes ``FOLDER/name.npy``, ``FOLDER/name.npz`` and ``FOLDER/name.csv``. Run as a process of its
own: the peak memory that a system reports of a child is at least that of the parent at the time of
the fork, so whoever starts the laps must never have held vectors.
"""

import json
import sys
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MANIFESTS = Path(__file__).parents[3] / "shared/data/pathorob_metadata"
COLUMNS = ("label", "confounder", "group", "sample_id")
Columns = dict[str, NDArray[np.str_]]


@dataclass(frozen=True, slots=True)
class Data:
    """What to make: the kind of manifest, and how strong each direction of the vectors is."""

    name: str
    manifest: str
    n: int
    d: int
    dtype: str = "float32"
    label: float = 0.3
    confounder: float = 0.3
    group: float = 0.2
    shared: float = 2.0


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a lap reads; rows ``bounds[i]:bounds[i + 1]`` are scope ``i``."""

    vectors: NDArray[np.floating]
    columns: Columns
    bounds: NDArray[np.int64]

    @property
    def scopes(self) -> list[slice]:
        return [slice(start, stop) for start, stop in pairwise(self.bounds)]


def read_manifest(name: str, n: int) -> Columns | None:
    """Read the rows of PathoROB's manifest that its robustness index uses, if it is at hand."""
    path = MANIFESTS / f"{name}.parquet"
    if not path.exists():
        return None
    import polars as pl

    frame = pl.read_parquet(path).filter("ri_view")
    frame = frame.with_columns(confounder="medical_center", group="group_id")
    kept = np.linspace(0, len(frame) - 1, min(n, len(frame))).astype(int)
    return {column: frame[column].to_numpy().astype(np.str_)[kept] for column in COLUMNS}


def grid(n: int, labels: int, confounders: int, groups_per_cell: int) -> Columns:
    """Lay out equal cells, each of as many groups of its own."""
    cell = np.arange(n) * labels * confounders // n
    group = cell * groups_per_cell + np.arange(n) % groups_per_cell
    return _columns(cell // confounders, cell % confounders, group)


def unbalanced(n: int, labels: int, confounders: int) -> Columns:
    """Draw the sizes of cells from a Dirichlet distribution; groups of about 20 rows."""
    rng = np.random.default_rng(2)
    share = rng.dirichlet(np.ones(labels * confounders))
    cell = rng.choice(labels * confounders, size=n, p=share)
    groups = np.maximum(1, np.bincount(cell, minlength=len(share)) // 20)
    group = cell * n + rng.integers(groups[cell])
    return _columns(cell // confounders, cell % confounders, group)


def small_scopes(sizes: NDArray[np.int64]) -> Columns:
    """Lay out scopes of 2 x 2 cells whose rows are each a group of its own."""
    within = np.concatenate([np.arange(size) for size in sizes])
    return _columns(within % 2, within // 2 % 2, np.arange(len(within)))


def _columns(
    label: NDArray[np.int64], confounder: NDArray[np.int64], group: NDArray[np.int64]
) -> Columns:
    codes = {"label": label, "confounder": confounder, "group": group}
    codes["sample_id"] = np.arange(len(label))
    return {
        name: np.char.add(name[0], code.astype(np.str_)).astype(np.str_)
        for name, code in codes.items()
    }


def layout(data: Data) -> tuple[Columns, NDArray[np.int64]]:
    """Make the manifest and the bounds of its scopes."""
    if data.manifest == "camelyon":
        columns = read_manifest("camelyon", data.n) or grid(data.n, 2, 2, 17)
    elif data.manifest == "tcga":
        columns = read_manifest("tcga_4x4", data.n) or grid(data.n, 4, 4, 6)
    elif data.manifest == "cells":
        columns = unbalanced(data.n, 6, 5)
    elif data.manifest == "paired":
        one = grid(1200, 2, 2, 5)
        columns = {name: np.tile(column, data.n // 1200) for name, column in one.items()}
        columns["sample_id"] = _columns(*[np.arange(data.n)] * 3)["sample_id"]
        return columns, np.arange(0, data.n + 1, 1200)
    elif data.manifest == "acquired":  # units as labels, five acquisitions as confounders
        row = np.arange(data.n)
        columns = _columns(row % (data.n // 5), row // (data.n // 5), row)
    elif data.manifest == "scopes":
        sizes = np.random.default_rng(3).integers(4, 41, size=data.n // 22)
        return small_scopes(sizes), np.concatenate([[0], np.cumsum(sizes)])
    else:
        columns = grid(data.n, 2, 2, 17)
    return columns, np.array([0, len(columns["label"])])


def stand_in_vectors(
    data: Data, columns: Columns, bounds: NDArray[np.int64]
) -> NDArray[np.floating]:
    """Draw vectors with a direction per label, confounder and group, and one that all share."""
    rng = np.random.default_rng(0)
    n = len(columns["label"])
    vectors = rng.standard_normal((n, data.d), dtype=np.float32)
    vectors += data.shared * rng.standard_normal(data.d, dtype=np.float32)
    scope = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    for name in ("label", "confounder", "group"):
        codes = np.unique(columns[name], return_inverse=True)[1]
        if data.manifest == "paired":  # every subset is a cohort of its own
            codes += scope * (codes.max() + 1)
        directions = rng.standard_normal((codes.max() + 1, data.d), dtype=np.float32)
        directions *= np.float32(getattr(data, name))
        for start in range(0, n, 4096):
            vectors[start : start + 4096] += directions[codes[start : start + 4096]]
    return vectors.astype(data.dtype)


def make(data: Data) -> Inputs:
    columns, bounds = layout(data)
    return Inputs(stand_in_vectors(data, columns, bounds), columns, bounds)


def write(data: Data, folder: Path) -> None:
    if data.manifest.startswith("slides"):
        import slides

        slides.write(data, folder)
    inputs = make(data)
    np.save(folder / f"{data.name}.npy", inputs.vectors)
    arrays: dict[str, Any] = {"bounds": inputs.bounds, **inputs.columns}
    np.savez(folder / f"{data.name}.npz", **arrays)
    rows = zip(*(inputs.columns[name] for name in COLUMNS), strict=True)
    lines = [",".join(COLUMNS), *(",".join(row) for row in rows)]
    (folder / f"{data.name}.csv").write_text("\n".join(lines) + "\n")


def read(name: str, folder: Path) -> Inputs:
    with np.load(folder / f"{name}.npz") as file:
        columns = {column: file[column] for column in COLUMNS}
        bounds = file["bounds"]
    return Inputs(np.load(folder / f"{name}.npy"), columns, bounds)


def few_rows(data: Data) -> Inputs:
    """Make inputs of the same kind that take every path, to compile and initialise what is used."""
    slides = {f"slides {layout}": 4 for layout in ("trident", "clam", "contiguous")}
    n = ({"paired": 4 * 1200, "scopes": 8 * 22} | slides).get(data.manifest, 2000)
    manifest = data.manifest if data.manifest in ("paired", "scopes") else "grid"
    return make(replace(data, n=n, manifest=manifest))


if __name__ == "__main__":
    write(Data(**json.loads(sys.argv[1])), Path(sys.argv[2]))
