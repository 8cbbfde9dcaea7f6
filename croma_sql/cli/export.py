"""croma-sql export table, export anndata, export geojson."""

from typing import Annotated

import typer

from croma_sql.cli.options import M, Place, Warehouse
from croma_sql.errors import counted, listed
from croma_sql.exports.anndata import export_anndata
from croma_sql.exports.geojson import export_geojson
from croma_sql.exports.tables import export_table
from croma_sql.progress import progress_bars
from croma_sql.reports import PUBLISHED_M

app = typer.Typer(
    help="Take margins, neighbours or any query to other tools.", no_args_is_help=True
)

Benchmark = Annotated[
    str | None, typer.Option(help="Whose margins; needed where several benchmarks are scored.")
]
Encoder = Annotated[
    str | None, typer.Option(help="Whose margins; needed where several encoders are scored.")
]
Subset = Annotated[
    str | None,
    typer.Option(help="Of the benchmark; needed where a sample is in several of its subsets."),
]


@app.command("table")
def table(
    warehouse: Warehouse,
    query: Annotated[str, typer.Argument(help="A view such as margins, or a SELECT.")],
    output: Annotated[
        Place, typer.Option(help="A .parquet, .csv or .arrow file; may be a URL, as of s3://.")
    ],
) -> None:
    """Write a view or a query as Parquet, CSV or Arrow, however many rows it has."""
    n = export_table(warehouse, query, output)
    typer.echo(f"{counted(n, 'row')} in {output}")


@app.command("anndata")
def anndata(
    warehouse: Warehouse,
    source: Annotated[Place, typer.Argument(help="An .h5ad file.", show_default=False)],
    output: Annotated[Place, typer.Option(help="The .h5ad file to write.")],
    benchmark: Benchmark = None,
    encoder: Encoder = None,
    subset: Subset = None,
    m: M = PUBLISHED_M,
    query: Annotated[
        str | None,
        typer.Option(help="Instead of margins, a SELECT that has sample_id and other columns."),
    ] = None,
    key: Annotated[str, typer.Option(help="What the names of the columns begin with.")] = "croma",
    on: Annotated[
        str | None,
        typer.Option(help="Column of obs that holds sample ids; default obs_names."),
    ] = None,
) -> None:
    """Write an .h5ad once more, with margins as columns of obs and all else as it is."""
    done = export_anndata(
        warehouse,
        source,
        output,
        benchmark=benchmark,
        encoder=encoder,
        subset=subset,
        m=m,
        query=query,
        key=key,
        on=on,
    )
    typer.echo(f"{', '.join(done.columns)} of {counted(done.n, 'observation')} in {output}")
    if done.n_without:
        observations = counted(done.n_without, "observation")
        typer.echo(f"without a row: {observations}: {listed(done.without)}")
    if done.n_unused:
        samples = counted(done.n_unused, "sample")
        typer.echo(f"without an observation: {samples}: {listed(done.unused)}")


@app.command("geojson")
def geojson(
    warehouse: Warehouse,
    output: Annotated[
        Place,
        typer.Option(
            help="A folder for a file per slide, or a .geojson of one; either may be a URL."
        ),
    ],
    benchmark: Benchmark = None,
    encoder: Encoder = None,
    subset: Subset = None,
    m: M = PUBLISHED_M,
    slide: Annotated[
        list[str] | None, typer.Option(help="Only this slide; may be repeated; default all.")
    ] = None,
    mpp: Annotated[
        str | None,
        typer.Option(
            help="Micrometres per pixel of level 0, for coordinates in micrometres: a number, or "
            "the attribute of samples that holds it."
        ),
    ] = None,
    tile_size: Annotated[
        float | None,
        typer.Option(help="Edge of tiles that do not say it, in the unit of their coordinates."),
    ] = None,
    offset_from: Annotated[
        str | None,
        typer.Option(
            metavar="X,Y",
            help="Two attributes of slides to subtract from x and y, in pixels of level 0: "
            "OpenSlide's bounds, to which QuPath crops MRXS slides; as in bounds_x,bounds_y.",
        ),
    ] = None,
) -> None:
    """Draw tiles coloured by margin, for QuPath: where on a slide an encoder is fragile."""
    with progress_bars() as report:
        drawn = export_geojson(
            warehouse,
            output,
            benchmark=benchmark,
            encoder=encoder,
            subset=subset,
            m=m,
            slides=slide,
            mpp=_number(mpp),
            tile_size=tile_size,
            offset_from=None if offset_from is None else _pair(offset_from),
            on_progress=lambda share: report("drawing tiles", share),
        )
    tiles = counted(drawn.n, "tile")
    undefined = f", {drawn.n_undefined} of them without a margin" if drawn.n_undefined else ""
    typer.echo(f"{tiles} of {counted(len(drawn.files), 'slide')} in {output}{undefined}")
    typer.echo("next: open a slide in QuPath and drop its file onto it")


def _pair(text: str) -> tuple[str, str]:
    x, _, y = text.partition(",")
    return x.strip(), y.strip()


def _number(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
