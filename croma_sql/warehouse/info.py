"""What is in a warehouse, what is scored, and what is out of date."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from croma_sql.errors import CromaSqlError
from croma_sql.places import frozen
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.selects import AnyBenchmark, read_benchmark
from croma_sql.warehouse.data.embedding_files import read_shape
from croma_sql.warehouse.data.encoders import validated
from croma_sql.warehouse.data.sources import read_sources
from croma_sql.warehouse.derived import harmonised, pooled
from croma_sql.warehouse.parquet import read_footer, read_metadata, read_table
from croma_sql.warehouse.scoring.plan import planned
from croma_sql.warehouse.scoring.schemas import SCHEMAS, Table

Read = Callable[[str], AnyBenchmark]


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A dataset: number of samples, names of attributes."""

    name: str
    n: int
    attributes: list[str]


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """Vectors of an encoder of a dataset.

    slides : how many they are of, or files, where they were imported by slide
    harmonised_from, fitted_on, method : encoder, benchmark and way, where harmonising made them
    pooled_from, pooled_by, method : encoder, attributes and way, where pooling did
    status : of these, as in `ScoresInfo`
    """

    name: str
    dataset: str
    n: int
    d: int
    dtype: str
    dropped: int
    slides: int | None = None
    harmonised_from: str | None = None
    fitted_on: str | None = None
    pooled_from: str | None = None
    pooled_by: list[str] | None = None
    method: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class EncoderAttributesInfo:
    """The table of encoder attributes.

    without_vectors : encoders that it tells of, but that have no vectors here
    """

    n: int
    attributes: list[str]
    controls: list[str]
    without_vectors: list[str]


@dataclass(frozen=True, slots=True)
class BenchmarkInfo:
    """A benchmark: its rows and how much there is of what in them; None where it has no such thing.

    strata : sets of rows that agree in the benchmark's match columns
    units, acquisitions, incomplete : of paired acquisitions; units that lack an acquisition
    problem : why it cannot be run, and then all counts are None
    """

    name: str
    n: int | None = None
    labels: int | None = None
    confounders: int | None = None
    groups: int | None = None
    subsets: int | None = None
    strata: int | None = None
    units: int | None = None
    acquisitions: int | None = None
    incomplete: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ScoresInfo:
    """Scores of a benchmark under an encoder.

    table : one of `croma_sql.warehouse.scoring.schemas.SCHEMAS`, such as 'typed_neighbours'
    depth : neighbours kept per type or of any type, or up to which those of a unit are compared;
        None of a table that has no column of that name
    status : 'up to date'; 'stale' if vectors, rows or version have changed; or why that cannot be
        told, as when its benchmark is gone
    """

    table: Table
    benchmark: str
    encoder: str
    depth: int | None
    n_undefined: int | None
    status: str


@dataclass(frozen=True, slots=True)
class WarehouseInfo:
    """Everything in a warehouse.

    encoder_attributes : None where none were imported
    """

    datasets: list[DatasetInfo]
    encoders: list[EncoderInfo]
    encoder_attributes: EncoderAttributesInfo | None
    benchmarks: list[BenchmarkInfo]
    scores: list[ScoresInfo]


def info(warehouse: str | Path) -> WarehouseInfo:
    """Describe a warehouse.

    Parameters
    ----------
    warehouse : path

    Returns
    -------
    WarehouseInfo

    Raises
    ------
    CromaSqlError
        A file that cannot be read; `check` names them all.
    """
    root = frozen(layout.open_warehouse(warehouse))
    read = cache(partial(read_benchmark, root))
    return WarehouseInfo(
        datasets=[_dataset(name, path) for name, path in layout.samples_files(root).items()],
        encoders=[_encoder(root, files) for files in layout.by_dataset(root)],
        encoder_attributes=_encoder_attributes(root),
        benchmarks=[_benchmark(read, name) for name in layout.benchmarks_files(root)],
        scores=[_scores(root, read, file) for file in layout.scores_files(root)],
    )


def _dataset(name: str, path: Path) -> DatasetInfo:
    file = read_footer(path)
    columns = [column for column in file.schema.to_arrow_schema().names if column != "sample_id"]
    return DatasetInfo(name, file.num_rows, columns)


def _encoder(root: Path, files: Sequence[layout.EmbeddingsFile]) -> EncoderInfo:
    file, shapes = files[0], [read_shape(file.path) for file in files]
    found = EncoderInfo(
        name=file.encoder,
        dataset=file.dataset,
        n=sum(read_footer(file.path).num_rows for file in files),
        d=shapes[0].d,
        dtype=shapes[0].dtype,
        dropped=sum(len(shape.dropped) for shape in shapes),
        slides=_slides(root, file) if file.part is not None else None,
    )
    about = harmonised.described(file.path)
    if about is not None:
        told = (about.get(name) for name in ("encoder", "benchmark", "method"))
        harmonised_from, fitted_on, method = map(str, told)
        return replace(
            found,
            harmonised_from=harmonised_from,
            fitted_on=fitted_on,
            method=method,
            status=harmonised.status_of(root, about),
        )
    about = pooled.described(file.path)
    if about is not None:
        return replace(
            found,
            pooled_from=str(about.get("encoder")),
            pooled_by=list(map(str, about["by"])),
            method=str(about.get("how")),
            status=pooled.status_of(root, about, file.dataset),
        )
    return found


def _slides(root: Path, file: layout.EmbeddingsFile) -> int:
    return len({record.key for record in read_sources(root, file.encoder, file.dataset)})


def _encoder_attributes(root: Path) -> EncoderAttributesInfo | None:
    for path in layout.encoders_files(root):
        table = validated(read_table(path), str(path), "encoder")
        names = table.column("encoder").to_pylist()
        controls = table.column("encoder").filter(table.column("is_control")).to_pylist()
        with_vectors = {file.encoder for file in layout.embeddings_files(root)}
        unknown = [name for name in names if name not in with_vectors]
        return EncoderAttributesInfo(len(names), table.column_names[2:], controls, unknown)
    return None


def _benchmark(read: Read, name: str) -> BenchmarkInfo:
    try:
        benchmark = read(name)
    except CromaSqlError as error:
        return BenchmarkInfo(name, problem=str(error))
    return BenchmarkInfo(name, n=len(benchmark.rows), problem=None, **benchmark.counts())


def _scores(root: Path, read: Read, file: layout.ScoresFile) -> ScoresInfo:
    about = read_metadata(file.path)
    try:
        work = planned(root, file, read(file.benchmark))
        status = "up to date" if work.is_up_to_date(file.path) else "stale"
    except CromaSqlError as error:
        status = str(error)
    depth, n_undefined = (
        number if isinstance(number := about.get(name), int) else None
        for name in ("depth", "n_undefined")
    )
    depth = depth if "depth" in SCHEMAS[file.table].names else None
    return ScoresInfo(file.table, file.benchmark, file.encoder, depth, n_undefined, status)
