"""A Camelyon-size cohort through the command line, and `croma` 1.0.1 on the same vectors.

    python tests/benchmarks/camelyon.py [--runs 3] [--manifest FILE]

20,400 tiles of 2 labels x 2 centres, 1,536 dimensions, float16. Each step runs in its own process,
so that its time and peak memory are its own; ours and the reference alternate. The manifest is
PathoROB's where it is at hand (rows of `ri_view`), else one of the same shape.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

PATHOROB = Path(__file__).parents[3] / "shared/data/pathorob_metadata/camelyon.parquet"
DIMENSIONS = 1536
REFERENCE = """
import sys
import numpy as np
import pandas as pd
from croma.metrics.croma import CrossConfounderRobustnessMargin
vectors, manifest, out = sys.argv[1:]
frame = pd.read_csv(manifest, dtype=str)
frame["image_path"] = frame["sample_id"]
result = CrossConfounderRobustnessMargin.compute(
    np.load(vectors).astype(np.float32), frame, confounder_column="medical_center", m=5
)
np.save(out, result.sample_values_aligned)
"""
SELECT = "SELECT sample_id, label, medical_center AS confounder, group_id FROM samples"
STRATA = """
    SELECT label, confounder, count(*) AS n, median(margin) AS croma, f0(margin) AS f0,
        ltm(margin, 0.10) AS ltm10
    FROM margins GROUP BY ALL ORDER BY ALL
"""


def main() -> None:
    """Run the steps and print a table and JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--manifest", type=Path, default=PATHOROB)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        manifest = read_manifest(given.manifest)
        manifest.write_csv(work / "manifest.csv")
        np.save(work / "vectors.npy", stand_in_vectors(manifest))
        laps: dict[str, list[tuple[float, float]]] = {}
        for run in range(given.runs):
            warehouse = work / f"warehouse{run}"
            for name, command in steps(work, warehouse).items():
                laps.setdefault(name, []).append(measured(command))
        report(laps, len(manifest), agreement(work, warehouse))


def read_manifest(path: Path) -> pl.DataFrame:
    """PathoROB's manifest, or a stand-in of its shape."""
    if path.exists():
        return pl.read_parquet(path).filter("ri_view").drop("ri_view", "clustering_view")
    rng = np.random.default_rng(0)
    slide = rng.integers(68, size=20_400)
    return pl.DataFrame(
        {
            "sample_id": [f"t{i}" for i in range(20_400)],
            "label": np.where(np.arange(20_400) % 2, "tumour", "normal"),
            "medical_center": np.where(slide % 2, "RUMC", "UMCU"),
            "group_id": [f"slide{s}" for s in slide],
        }
    )


def stand_in_vectors(manifest: pl.DataFrame) -> np.ndarray:
    """Vectors with a direction per label, centre and slide, and one that all share."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((len(manifest), DIMENSIONS), dtype=np.float32)
    vectors += 2 * rng.standard_normal(DIMENSIONS, dtype=np.float32)
    for column, strength in (("label", 0.3), ("medical_center", 0.3), ("group_id", 0.2)):
        codes = manifest[column].cast(pl.Categorical).to_physical().to_numpy()
        directions = rng.standard_normal((codes.max() + 1, DIMENSIONS), dtype=np.float32)
        vectors += strength * directions[codes]
    return vectors.astype(np.float16)


def steps(work: Path, warehouse: Path) -> dict[str, list[str]]:
    """Commands by name, in the order in which they run."""
    cli = [str(Path(sys.executable).with_name("croma-sql"))]
    imported = ["--encoder", "e", "--dataset", "camelyon", "--samples", str(work / "manifest.csv")]
    reference = [sys.executable, "-W", "ignore", "-c", REFERENCE]
    files = [str(work / name) for name in ("vectors.npy", "manifest.csv", "reference.npy")]
    return {
        "import": [*cli, "import", "embeddings", files[0], "--to", str(warehouse), *imported],
        "benchmark": [*cli, "benchmark", str(warehouse), "b", SELECT],
        "score": [*cli, "score", str(warehouse)],
        "score again": [*cli, "score", str(warehouse)],
        "strata": [*cli, "sql", str(warehouse), STRATA],
        "croma 1.0.1": [*reference, *files],
    }


def measured(command: list[str]) -> tuple[float, float]:
    """Seconds and peak memory (MB) of a process."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def agreement(work: Path, warehouse: Path) -> float:
    """Largest difference of a margin from the reference, which works in float32 here."""
    import croma_sql

    order = pl.read_csv(work / "manifest.csv").select("sample_id")
    ours = croma_sql.connect(warehouse).sql("SELECT sample_id, margin FROM margins").pl()
    margins = order.join(ours, on="sample_id", maintain_order="left")["margin"].to_numpy()
    return float(np.abs(margins - np.load(work / "reference.npy")).max())


def report(laps: dict[str, list[tuple[float, float]]], n: int, difference: float) -> None:
    """Print medians and ratios, then one JSON line per step."""
    seconds = {name: statistics.median(lap[0] for lap in runs) for name, runs in laps.items()}
    megabytes = {name: max(lap[1] for lap in runs) for name, runs in laps.items()}
    reference = seconds["croma 1.0.1"]
    out = [f"{n} x {DIMENSIONS} float16, {os.cpu_count()} cores, {platform.machine()}"]
    for name in laps:
        ratio = f"{reference / seconds[name]:8.1f} x faster" if name.startswith("score") else ""
        out.append(f"{name:12} {seconds[name]:8.2f} s {megabytes[name]:8.0f} MB {ratio}")
    out.append(f"largest difference of a margin: {difference:.1e}")
    for name, runs in laps.items():
        line = {"step": name, "n": n, "d": DIMENSIONS, "seconds": [lap[0] for lap in runs]}
        out.append(json.dumps(line | {"peak_mb": megabytes[name]}))
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
