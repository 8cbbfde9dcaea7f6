"""One lap of one variant in this process, or, with ``agree``, how far laps' results lie apart.

    python lap.py run '{"lap": "search", "data": {...}, "options": {...}, "save": FILE}' FOLDER
    python lap.py agree '{"ours": FILE, "variant": FILE, ...}' FOLDER

Prints one line of JSON. The same lap runs first on a few rows, so that everything is compiled,
loaded and initialised, and only then reads its inputs; only the computation is timed.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import acquisitions
import numpy as np
import ours
import peers
import slides
from inputs import Data, few_rows, read

LAPS = {
    "search": ours.search,
    "margins": ours.margins,
    "search_all": ours.search_all,
    "panel": ours.panel,
    "silhouettes": ours.silhouettes,
    "warehouse": ours.warehouse,
    "bootstrap": ours.bootstrap,
    "rank_stability": ours.rank_stability,
    "consistency": acquisitions.consistency,
    "by_definition": acquisitions.by_definition,
    "import_slides": slides.import_slides,
    "h5py_loop": slides.h5py_loop,
    "croma": peers.croma,
    "croma_panel": peers.croma_panel,
    "croma_bootstrap": peers.croma_bootstrap,
    "product": peers.product,
    "triangle": peers.triangle,
    "faiss": peers.faiss,
    "sklearn": peers.sklearn,
    "sklearn_silhouettes": peers.sklearn_silhouettes,
}


def run(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Time one variant, with the memory held at each stage."""
    begin, data = LAPS[spec["lap"]], Data(**spec["data"])
    options = {**spec["options"], "folder": str(folder)}
    compute, describe = begin(few_rows(data), options)
    describe(compute())
    del compute
    imported = megabytes()
    inputs = read(data.name, folder)
    loaded = megabytes()
    compute, describe = begin(inputs, options)
    before = megabytes()
    began = time.perf_counter()
    result = compute()
    seconds = time.perf_counter() - began
    found = describe(result)
    if spec.get("save"):
        np.savez(folder / spec["save"], **found)
    told: dict[str, Any] = {key: found[key] for key in ("searched_again", "gflop") if key in found}
    return {
        "seconds": seconds,
        "imported_mb": imported,
        "loaded_mb": loaded,
        "before_mb": before,
        "n": len(inputs.vectors),
        "d": inputs.vectors.shape[1],
        **told,
    }


def megabytes() -> float:
    """Memory resident now; where the system does not tell, the most that has been so far."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def agree(files: dict[str, str], folder: Path) -> dict[str, dict[str, float]]:
    """Compare the results of each variant with those of the first."""
    found = {name: dict(np.load(folder / file)) for name, file in files.items()}
    reference = next(iter(found.values()))
    return {
        name: {
            key: apart(values, reference[key])
            for key, values in some.items()
            if key in reference and key != "searched_again"
        }
        for name, some in found.items()
        if some is not reference
    }


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference; infinite where one is defined and the other is not."""
    if a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any():
        return float("inf")
    return float(np.nanmax(np.abs(a.astype(float) - b), initial=0.0))


if __name__ == "__main__":
    what, given, where = sys.argv[1:]
    told = {"run": run, "agree": agree}[what](json.loads(given), Path(where))
    sys.stdout.write(json.dumps(told) + "\n")
