"""Laps of what croma_sql is compared with; see `ours` for what a lap is."""

import itertools
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from inputs import Inputs
from numpy.typing import NDArray
from ours import Found, Lap

BLOCK = 2048
Matrix = NDArray[np.float32]
Block = tuple[Matrix, Matrix]


def croma(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Compute the margins with `croma`; ``paired: true`` takes each scope as one of its subsets."""
    from croma import CRoMa

    vectors, frame = _for_croma(inputs, paired=options.get("paired", False))
    design = "paired_2x2" if options.get("paired") else "all"

    def compute() -> Any:
        return CRoMa.compute(
            vectors,
            frame,
            confounder_column="medical_center",
            m=options["m"],
            evaluation_design=design,
        )

    return compute, lambda result: {"margin": result.sample_values_aligned}


def croma_panel(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Compute RI, MaRI and the margins with `croma`, each by its public class."""
    from croma import RI, CRoMa, MaRI

    vectors, frame = _for_croma(inputs, paired=False)
    ks = list(range(1, options["k"] + 1, 2))

    def compute() -> Any:
        given: dict[str, Any] = {"confounder_column": "medical_center"}
        ri = RI.compute(vectors, frame, k_candidates=ks, **given)
        mari = MaRI.compute(vectors, frame, k_candidates=ks, **given)
        return ri, mari, CRoMa.compute(vectors, frame, m=options["m"], **given)

    def describe(results: Any) -> Found:
        ri, mari, margins = results
        return {
            "margin": margins.sample_values_aligned,
            "k": ri.k,
            "tau": mari.tau,
            "ri": ri.value,
            "mari": mari.value,
            "ri_each": ri.sample_values_aligned,
            "mari_each": mari.sample_values_aligned,
        }

    return compute, describe


def croma_bootstrap(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Resample the groups for the median of the first feature."""
    from croma.metrics.bootstrap import bootstrap_pooled_median

    margin, group = inputs.vectors[:, 0].astype(np.float64), inputs.columns["group"]

    def compute() -> Any:
        return bootstrap_pooled_median(margin, group)

    return compute, lambda found: {"lo": np.array([found.lo]), "hi": np.array([found.hi])}


def sklearn_silhouettes(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Measure the silhouettes of the confounder with scikit-learn, of all pairs in chunks."""
    from sklearn.metrics import silhouette_samples

    cluster = inputs.columns["confounder"]

    def compute() -> Any:
        return silhouette_samples(inputs.vectors, cluster, metric="cosine")

    return compute, lambda found: {"silhouette": found}


def _for_croma(inputs: Inputs, *, paired: bool) -> tuple[NDArray[np.float32], Any]:
    import pandas as pd

    warnings.simplefilter("ignore")
    logging.getLogger("croma").setLevel(logging.ERROR)
    columns = inputs.columns
    fields = {name: columns[name] for name in ("sample_id", "label")}
    fields |= {"medical_center": columns["confounder"], "group_id": columns["group"]}
    fields["image_path"] = columns["sample_id"]
    if paired:  # padded, for croma goes through them by name
        scope = np.repeat(np.arange(len(inputs.bounds) - 1), np.diff(inputs.bounds))
        fields["subset"] = np.char.zfill(scope.astype(np.str_), 6)
    return inputs.vectors.astype(np.float32, copy=False), pd.DataFrame(fields)


def product(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Multiply the typed blocks of every scope, each pair once, and throw the products away.

    Nothing that measures these distances with BLAS can be faster. Vectors are normalised, and
    sorted once by label and once by confounder, beforehand; so a cell meets all later cells of its
    type in one contiguous block.
    """
    unit = _unit(inputs.vectors)
    blocks = [block for rows in inputs.scopes for block in _typed(inputs, unit, rows)]
    return _multiplied(blocks, inputs, options["threads"])


def triangle(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Multiply every pair once, whatever its type, and throw the products away."""
    return _multiplied(list(_upper(_unit(inputs.vectors))), inputs, options["threads"])


def _unit(vectors: NDArray[np.floating]) -> Matrix:
    floats = vectors.astype(np.float32)
    floats /= np.linalg.norm(floats, axis=1, keepdims=True)
    return floats


def _typed(inputs: Inputs, unit: Matrix, rows: slice) -> Iterator[Block]:
    codes = [
        np.unique(inputs.columns[name][rows], return_inverse=True)[1]
        for name in ("label", "confounder")
    ]
    for major, minor in (codes, codes[::-1]):
        order = np.lexsort((minor, major))
        matrix = np.ascontiguousarray(unit[rows][order])
        ends = np.cumsum(np.bincount(major))
        cells = np.flatnonzero(np.diff(major[order], prepend=-1) | np.diff(minor[order], prepend=0))
        for start, stop in itertools.pairwise([*cells, len(order)]):
            end = ends[major[order[start]]]
            yield from _rectangle(matrix[start:stop], matrix[stop:end])


def _upper(matrix: Matrix) -> Iterator[Block]:
    """Halves against each other, then each half by itself, so that few pairs come twice."""
    if len(matrix) <= BLOCK // 4:
        yield matrix, matrix
        return
    middle = len(matrix) // 2
    yield from _rectangle(matrix[:middle], matrix[middle:])
    yield from _upper(matrix[:middle])
    yield from _upper(matrix[middle:])


def _rectangle(rows: Matrix, cols: Matrix) -> Iterator[Block]:
    if len(rows) and len(cols):
        for some in np.array_split(rows, -(-len(rows) // BLOCK)):
            for others in np.array_split(cols, -(-len(cols) // BLOCK)):
                yield some, others


def _multiplied(blocks: list[Block], inputs: Inputs, threads: int) -> Lap:
    from threadpoolctl import ThreadpoolController

    pairs = sum(len(rows) * len(cols) for rows, cols in blocks)
    largest = max(len(rows) * len(cols) for rows, cols in blocks)
    blocks.sort(key=lambda block: -len(block[0]) * len(block[1]))
    buffers = [np.zeros(largest, np.float32) for _ in range(threads)]
    libraries = ThreadpoolController()

    def compute() -> None:
        left, lock = iter(blocks), threading.Lock()
        with libraries.limit(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda buffer: _work(buffer, left, lock), buffers))

    return compute, lambda _: {"gflop": 2e-9 * pairs * inputs.vectors.shape[1]}


def _work(buffer: Matrix, left: Iterator[Block], lock: threading.Lock) -> None:
    while True:
        with lock:
            block = next(left, None)
        if block is None:
            return
        rows, cols = block
        out = buffer[: len(rows) * len(cols)].reshape(len(rows), len(cols))
        np.matmul(rows, cols.T, out=out)


def faiss(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Search the candidates of each cell and type flat, with `faiss.knn` on normalised vectors.

    That is IndexFlatIP without the copy into an index. So many neighbours are fetched that ``m``
    are left when those of the sample's own group are taken out; where no group spans two cells,
    as in Camelyon, that is ``m``, and a selector would only slow the scan down.
    """
    import faiss

    faiss.omp_set_num_threads(options["threads"])

    def nearest(queries: Matrix, candidates: Matrix, k: int) -> tuple[Any, Any]:
        similarity, who = faiss.knn(queries, candidates, k, metric=faiss.METRIC_INNER_PRODUCT)
        return 1 - similarity, who

    return lambda: _by_cell(inputs, options["m"], nearest, normalise=True), _typed_margins


def sklearn(inputs: Inputs, options: dict[str, Any]) -> Lap:
    """Search the candidates of each cell and type with brute-force `NearestNeighbors`, as above."""
    from sklearn.neighbors import NearestNeighbors

    def nearest(queries: Matrix, candidates: Matrix, k: int) -> tuple[Any, Any]:
        model = NearestNeighbors(n_neighbors=k, algorithm="brute", metric="cosine")
        distance, who = model.fit(candidates).kneighbors(queries)
        return distance, who

    return lambda: _by_cell(inputs, options["m"], nearest, normalise=False), _typed_margins


def _by_cell(
    inputs: Inputs,
    m: int,
    nearest: Callable[[Matrix, Matrix, int], tuple[Any, Any]],
    *,
    normalise: bool,
) -> dict[str, NDArray[np.float64]]:
    """Distances of the ``m`` nearest SO and OS neighbours outside the group of each sample."""
    vectors = _unit(inputs.vectors) if normalise else inputs.vectors
    label, confounder, group = (
        np.unique(inputs.columns[name], return_inverse=True)[1]
        for name in ("label", "confounder", "group")
    )
    found = {kind: np.full((len(label), m), np.nan) for kind in ("so", "os")}
    cells = label * (confounder.max() + 1) + confounder
    for cell in np.unique(cells):
        rows = np.flatnonzero(cells == cell)
        same_label = label == label[rows[0]]
        same_confounder = confounder == confounder[rows[0]]
        candidates = {"so": same_label & ~same_confounder, "os": ~same_label & same_confounder}
        for kind, chosen in candidates.items():
            cols = np.flatnonzero(chosen)
            own = np.bincount(group[cols], minlength=group.max() + 1)[group[rows]].max()
            distance, who = nearest(vectors[rows], vectors[cols], min(m + int(own), len(cols)))
            if own:
                distance[group[cols][who] == group[rows][:, None]] = np.inf
                distance.sort(axis=1)
            found[kind][rows, : distance.shape[1]] = distance[:, :m]
    return found


def _typed_margins(found: dict[str, NDArray[np.float64]]) -> Found:
    d_so, d_os = found["so"].mean(axis=1), found["os"].mean(axis=1)
    return {**found, "margin": (d_os - d_so) / (d_os + d_so)}
