"""A small warehouse of real tissue under three simulated scanners, from data in the package."""

from collections.abc import Callable, Iterator
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

from croma_sql.errors import WarehouseError, listed
from croma_sql.udfs.scope import Progress
from croma_sql.warehouse.benchmarks.paired import PairedBenchmark
from croma_sql.warehouse.benchmarks.selects import add_benchmark
from croma_sql.warehouse.data.embeddings import import_embeddings
from croma_sql.warehouse.data.encoders import import_encoders
from croma_sql.warehouse.layout import create_warehouse, samples_files
from croma_sql.warehouse.scoring.consistency import score_consistency
from croma_sql.warehouse.scoring.scores import score

DATASET = "ihc_photograph"
ENCODERS = ("efficientnet_lite0", "efficientnet_lite2", "rgb_histogram")
ABOUT = """\
256 places of one immunohistochemistry photograph (real tissue, from scikit-image), each seen by
three SIMULATED scanners, embedded by two ImageNet networks and by a colour histogram.
Biology: DAB stain high or low, or nuclei many or few. Confounder: the scanner. Group: the place.
Above 0 the biology is nearer than the scanner; F(0) is the fraction at or below 0, LTM10 the mean
of the worst tenth. d_cos is how far a place moves from scanner to scanner, relative_d_cos the same
as a share of how far places lie apart, and mr_1nn how often a place is found again as the nearest.
"""


def build(
    folder: str | Path, on_progress: Callable[[str, str, Progress | float], None] | None = None
) -> None:
    """Build the demo warehouse and score it; what is there already and unchanged is kept.

    Raises
    ------
    WarehouseError
        The folder holds something else, or cannot be written.
    """
    others = set(samples_files(create_warehouse(folder))) - {DATASET}
    if others:
        raise WarehouseError(
            f"{folder} is a warehouse of {listed(sorted(others))}; name a new folder for the demo"
        )
    with as_file(files(__name__) / "data") as data:
        for encoder in ENCODERS:
            import_embeddings(
                folder,
                data / f"{encoder}.parquet",
                encoder=encoder,
                dataset=DATASET,
                samples=data / "samples.parquet",
            )
        import_encoders(folder, data / "encoders.csv")
    for file in _statements("benchmarks"):
        name = file.name.removesuffix(".sql")
        benchmark = add_benchmark(folder, name, file.read_text(encoding="utf-8"))
        if isinstance(benchmark, PairedBenchmark):
            score_consistency(folder, benchmark=name, on_progress=on_progress)
        else:
            score(folder, benchmark=name, k=101, first_ranks=True, on_progress=on_progress)


def queries() -> Iterator[tuple[str, str]]:
    """Title and text of what the demo asks, from ``sql/demo/queries``."""
    for file in _statements("queries"):
        text = file.read_text(encoding="utf-8")
        yield text.partition("\n")[0].removeprefix("-- "), text


def _statements(folder: str) -> list[Traversable]:
    found = (files("croma_sql.sql") / "demo" / folder).iterdir()
    return sorted(found, key=lambda file: file.name)
