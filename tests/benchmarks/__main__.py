"""Benchmarks of the search against its peers.

    python tests/benchmarks [--case NAME ...] [--runs 5] [--json FILE] [--list] [--all-laps]

Every lap of every variant is a process of its own, so that its time and peak memory are its own,
and the variants of a case take turns, so that a busy minute falls on all of them. Everything gets
as many threads as there are cores. A table says medians; the JSON lines hold every lap.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cases import Case, Variant, all_cases
from report import broken, show_case, show_machine, tell, wrong

HERE = Path(__file__).parent
THREADS = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMBA_NUM", "POLARS_MAX")
SLOW_LAPS = 2
JSON = Path(tempfile.gettempdir()) / "croma_sql_benchmarks.jsonl"
Lap = dict[str, Any]


def main() -> int:
    """Run cases; the exit status is 1 where a variant failed or found something else."""
    given = arguments()
    cases = all_cases(given.scale)
    if given.list:
        for case in cases.values():
            tell(f"{case.name:12}{case.about}")
        return 0
    machine = json.loads(python("machine.py"))
    machine |= {"cores": cores(), "threads": cores(), "scale": given.scale}
    show_machine(machine)
    failed = False
    with given.json.open("w") as file:

        def record(line: Lap) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()

        record({"machine": machine})
        for name in given.case or cases:
            laps, apart = run_case(cases[name], given.runs, given.all_laps, record)
            show_case(cases[name], laps, apart)
            for variant, by in apart.items():
                record({"case": name, "variant": variant, "apart": by})
            failed |= any(map(broken, laps)) or any(map(wrong, apart.values()))
    tell(f"every lap: {given.json}")
    return int(failed)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python tests/benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = list(all_cases(1.0))
    parser.add_argument("--case", action="append", choices=names, help="default: all of them")
    parser.add_argument("--runs", type=int, default=5, help="laps of each variant")
    parser.add_argument(
        "--all-laps", action="store_true", help=f"also of slow ones, else {SLOW_LAPS}"
    )
    parser.add_argument("--json", type=Path, default=JSON, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--scale", type=float, default=1.0, help=argparse.SUPPRESS)
    return parser.parse_args()


def run_case(
    case: Case, runs: int, all_laps: bool, record: Callable[[Lap], None]
) -> tuple[list[Lap], dict[str, dict[str, float]]]:
    """Run the variants in turn; compare what they found in the first run."""
    laps: list[Lap] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for data in {variant.data["name"]: variant.data for variant in case.variants}.values():
            python("inputs.py", json.dumps(data), folder)
        for run in range(runs):
            for number, variant in enumerate(case.variants):
                failed = any("error" in lap and lap["variant"] == variant.name for lap in laps)
                if failed or (variant.slow and run >= SLOW_LAPS and not all_laps):
                    continue
                about = {"case": case.name, "variant": variant.name, "run": run}
                lap = about | one_lap(variant, folder, run, f"found{number}.npz")
                laps.append(lap)
                record(lap)
                outcome = lap.get("error", f"{lap['seconds']:.3f} s")
                tell(f"  {case.name} {run + 1}/{runs} {variant.name}: {outcome}")
        return laps, agreement(case, folder)


def one_lap(variant: Variant, folder: Path, run: int, save: str) -> Lap:
    if variant.command:
        program, *rest = variant.command
        places = {"folder": folder, "warehouse": folder / f"warehouse{run}"}
        command = [
            str(Path(sys.executable).with_name(program)),
            *(r.format(**places) for r in rest),
        ]
        lap = measured(command)
        del lap["printed"]
        return lap
    spec = {"lap": variant.lap, "data": variant.data, "save": "" if run else save}
    spec["options"] = variant.options | {"threads": cores()}
    command = [sys.executable, str(HERE / "lap.py"), "run", json.dumps(spec), str(folder)]
    lap = measured(command)
    printed = lap.pop("printed")
    return lap if "error" in lap else lap | json.loads(printed)


def measured(command: list[str]) -> Lap:
    """Seconds and peak memory (MB) of a process, and what it printed or why it failed.

    A system counts in a child's peak what its parent held when it was started; this one holds no
    vectors and has imported no numpy.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=out, stderr=errors, env=environment()) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        peak = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
        lap: Lap = {"seconds": seconds, "process_seconds": seconds, "peak_mb": peak}
        out.seek(0)
        errors.seek(0)
        lap["printed"] = out.read().decode()
        if child.returncode:
            said = errors.read().decode().strip().splitlines() or [f"exit {child.returncode}"]
            lap["error"] = said[-1]
    return lap


def agreement(case: Case, folder: Path) -> dict[str, dict[str, float]]:
    """How far what each variant found lies from what ours of its group found, at most."""
    apart: dict[str, dict[str, float]] = {}
    for group in {variant.group: None for variant in case.variants}:
        files = {
            variant.name: f"found{number}.npz"
            for number, variant in sorted(
                enumerate(case.variants), key=lambda item: item[1].role != "ours"
            )
            if variant.group == group and (folder / f"found{number}.npz").exists()
        }
        if len(files) > 1:
            apart |= json.loads(python("lap.py", "agree", json.dumps(files), folder))
    return {name: by for name, by in apart.items() if by}


def python(script: str, *given: str | Path) -> str:
    command = [sys.executable, str(HERE / script), *map(str, given)]
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment()
    ).stdout


def environment() -> dict[str, str]:
    """Give every library as many threads as there are cores."""
    return os.environ | {f"{name}_THREADS": str(cores()) for name in THREADS}


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())
