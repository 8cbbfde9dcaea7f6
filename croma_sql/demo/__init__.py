"""A small warehouse of real tissue under three simulated scanners, from data in the package."""

from collections.abc import Callable, Iterator
from importlib.resources import as_file, files
from pathlib import Path

from croma_sql.warehouse.benchmarks import add_benchmark
from croma_sql.warehouse.embeddings import import_embeddings
from croma_sql.warehouse.scores import score

DATASET = "ihc_photograph"
BENCHMARK = "dab_across_scanners"
ENCODERS = ("efficientnet_lite0", "efficientnet_lite2", "rgb_histogram")
ABOUT = (
    "256 places of one immunohistochemistry photograph (real tissue, scikit-image), each seen by "
    "three SIMULATED scanners. Label: DAB stain high or low. Confounder: scanner. Group: place. "
    "A margin above 0 says the stain is nearer than the scanner."
)


def build(folder: str | Path, on_progress: Callable[[str, str, float], None] | None = None) -> None:
    """Build the demo warehouse and score it; what is there already and unchanged is kept.

    Raises
    ------
    WarehouseError
        The folder holds something else, or cannot be written.
    """
    with as_file(files(__name__) / "data") as data:
        for encoder in ENCODERS:
            import_embeddings(
                folder,
                data / f"{encoder}.parquet",
                encoder=encoder,
                dataset=DATASET,
                samples=data / "samples.parquet",
            )
    add_benchmark(folder, BENCHMARK, _text("benchmark.sql"))
    score(folder, benchmark=BENCHMARK, on_progress=on_progress)


def queries() -> Iterator[tuple[str, str]]:
    """Title and text of the queries the demo asks, ``sql/demo/[0-9]*.sql``."""
    folder = files("croma_sql.sql") / "demo"
    for name in sorted(file.name for file in folder.iterdir() if file.name[0].isdigit()):
        text = _text(name)
        yield text.partition("\n")[0].removeprefix("-- "), text


def _text(name: str) -> str:
    return (files("croma_sql.sql") / "demo" / name).read_text(encoding="utf-8")
