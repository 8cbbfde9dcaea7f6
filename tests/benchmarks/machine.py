"""What the benchmarks run on, as JSON: ``python machine.py``."""

import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

PACKAGES = ("numpy", "numba", "croma", "scikit-learn", "faiss-cpu", "duckdb", "polars")


def describe() -> dict[str, object]:
    np.ones((2, 2)) @ np.ones((2, 2))
    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "cpu": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "blas": [
            f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()
            for pool in blas
        ],
        "blas_threads": [pool["num_threads"] for pool in blas],
        "python": platform.python_version(),
        "versions": {name: installed(name) for name in PACKAGES},
    }


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(describe()) + "\n")
