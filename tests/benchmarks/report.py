"""Tables of laps."""

import statistics
import sys
from typing import Any

from cases import Case, Variant
from rich.console import Console
from rich.table import Table

WIDTH = 150  # where the output is no terminal, tables would be squeezed into 80
TOLERANCE = {"margin": 1e-3, "so": 1e-4, "os": 1e-4, "ri": 1e-3, "mari": 1e-3, "tau": 1e-4, "k": 0,
             "lo": 1e-12, "hi": 1e-12, "distance": 1e-12, "rank": 0, "mantel_r": 1e-9,
             "intra": 1e-12, "iok": 0, "rows": 0}  # fmt: skip
HEADINGS = ("laps", "median s", "/ product", "croma /", "min..max s", "peak MB", "before MB")
PEERS = ("croma", "faiss", "sklearn")
PANEL = ("ri", "mari", "tau", "k")
Lap = dict[str, Any]


def console() -> Console:
    """Print to the terminal as wide as it is, and to files as wide as tables are."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)


def tell(line: str) -> None:
    """Print a line as it is."""
    console().print(line, markup=False, soft_wrap=True)


def show_machine(machine: dict[str, Any]) -> None:
    """Print what everything depends on."""
    blas = ", ".join(
        f"{name} ({threads} threads)"
        for name, threads in zip(machine["blas"], machine["blas_threads"], strict=True)
    )
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    tell(f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}; {blas}")
    tell(f"Python {machine['python']}, {versions}")
    if machine["scale"] != 1:
        tell(f"a try-out: {machine['scale']} times the rows")


def show_case(case: Case, laps: list[Lap], agreement: dict[str, dict[str, float]]) -> None:
    """Print one row per variant: medians, and how they compare within their group."""
    of = {v.name: [lap for lap in laps if lap["variant"] == v.name] for v in case.variants}
    medians = {name: median(some, "seconds") for name, some in of.items()}
    roles = {variant.role for variant in case.variants}
    hidden = {"/ product": "product" not in roles, "croma /": "croma" not in roles}
    shown = [heading for heading in HEADINGS if not hidden.get(heading)]
    table = Table(title=f"{case.name}: {case.about}", title_justify="left", title_style="bold")
    table.add_column("variant")
    for heading in shown:
        table.add_column(heading, justify="right")
    table.add_column("note")
    for variant in case.variants:
        some = of[variant.name]
        numbers = dict(zip(HEADINGS, figures(case, variant, some, medians), strict=True))
        note = notes(case, variant, some, agreement.get(variant.name, {}))
        table.add_row(variant.name, *(numbers[heading] for heading in shown), note)
    console().print(table)
    for line in case.notes:
        tell(f"  {line}")


def figures(
    case: Case, variant: Variant, laps: list[Lap], medians: dict[str, float | None]
) -> list[str]:
    """Format the numbers of one variant."""
    done = [lap for lap in laps if "error" not in lap]
    own = medians[variant.name]
    if own is None:
        return ["0", *[""] * 6]
    product, croma = (anchor(case, variant, role, medians) for role in ("product", "croma"))
    seconds = [lap["seconds"] for lap in done]
    before = median(done, "before_mb")
    return [
        str(len(done)),
        f"{own:.3f}",
        f"{own / product:.2f}" if product else "",
        f"{croma / own:.1f}" if croma else "",
        f"{min(seconds):.3f}..{max(seconds):.3f}",
        f"{median(done, 'peak_mb'):,.0f}",
        f"{before:,.0f}" if before else "",
    ]


def anchor(
    case: Case, variant: Variant, role: str, medians: dict[str, float | None]
) -> float | None:
    """Median of the variant that this one is measured by."""
    for other in case.variants:
        if other.role == role and other.group == variant.group:
            return medians[other.name]
    return None


def notes(case: Case, variant: Variant, laps: list[Lap], apart: dict[str, float]) -> str:
    """Say what the numbers do not: speed, rows searched again, and whether results agree."""
    failed = [lap["error"] for lap in laps if "error" in lap]
    if failed:
        return f"{'FAILED' if any(map(broken, laps)) else 'left out'}: {failed[0]}"
    said = []
    first = laps[0]
    if "gflop" in first:
        said.append(f"{first['gflop'] / median(laps, 'seconds'):.0f} GFLOP/s")
    if first.get("searched_again"):
        said.append(f"{first['searched_again']} rows searched again")
    if case.memory:
        grown = median(laps, "peak_mb") - median(laps, "imported_mb")
        search = median(laps, "peak_mb") - median(laps, "before_mb")
        matrix = 4 * first["n"] * first["d"] / 2**20
        said.append(
            f"{grown:,.0f} MB above the imports = {grown / matrix:.2f} x the float32 matrix of "
            f"{matrix:,.0f} MB; {search:,.0f} MB of them the search"
        )
    if apart:
        said.append(("DISAGREES: " if wrong(apart) else "") + differences(apart))
    return "; ".join(said)


def differences(apart: dict[str, float]) -> str:
    """Name what lies furthest apart of margins, distances and the rest; the file has them all."""
    groups = {"margin": ("margin",), "distance": ("so", "os"), "RI, MaRI": PANEL}
    groups |= {"interval": ("lo", "hi")}
    worst = {
        name: max((apart[key] for key in keys if key in apart), default=None)
        for name, keys in groups.items()
    }
    told = [f"{name} {most:.0e}" for name, most in worst.items() if most is not None]
    return f"apart: {', '.join(told)}" if any(worst.values()) else "same values"


def broken(lap: Lap) -> bool:
    """Tell whether a lap failed for another reason than that a peer is not installed."""
    error = lap.get("error", "")
    absent = any(error == f"ModuleNotFoundError: No module named {peer!r}" for peer in PEERS)
    return bool(error) and not absent


def wrong(apart: dict[str, float]) -> bool:
    """Tell whether a variant found something else, beyond what its float32 explains."""
    return any(apart.get(key, 0.0) > most for key, most in TOLERANCE.items())


def median(laps: list[Lap], key: str) -> Any:
    """Median of the laps that have it."""
    values = [lap[key] for lap in laps if key in lap and "error" not in lap]
    return statistics.median(values) if values else None
