"""Margins, or rows of any query, as columns of the observations of AnnData."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from croma_sql.errors import CromaSqlError, SourceError, listed
from croma_sql.exports.observations import Matched, beside, margins_of_samples, rows_of_samples
from croma_sql.exports.scored import Scope
from croma_sql.exports.tables import replacing
from croma_sql.importers.tables import unreadable
from croma_sql.places import is_local, place
from croma_sql.reports.reading import PUBLISHED_M

ORDER, INDEX = "column-order", "_index"


def to_anndata(
    adata: Any,
    warehouse: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    subset: str | None = None,
    m: int = PUBLISHED_M,
    query: str | None = None,
    key: str = "croma",
    on: str | None = None,
) -> Matched:
    """Add margins to the observations of an AnnData in memory.

    Parameters
    ----------
    adata : anndata.AnnData
        Its ``obs`` gets the columns; nothing else changes.
    warehouse : path
    benchmark, encoder, subset : str, optional
        Whose margins; may be left out where there is one.
    m : int, default 5
        Neighbours per type that a margin is a mean over.
    query : str, optional
        Instead, the columns of a SELECT that has ``sample_id``, once each, by their own names.
    key : str, default 'croma'
        What the names begin with: ``croma_margin``, ``croma_undefined_reason``, ``croma_d_so``,
        ``croma_d_os``. With another for each, several encoders or benchmarks stand side by side.
    on : str, optional
        Column of ``obs`` that holds sample ids, as of slides; default the names of observations.

    Returns
    -------
    Matched
        An observation without a row has NaN, or a missing category.

    Raises
    ------
    CromaSqlError
        No observation has a row, columns that are there already, a sample in two rows, nothing
        scored.
    """
    scope = {"benchmark": benchmark, "encoder": encoder, "subset": subset}
    rows = _rows(warehouse, scope, m, query, key)
    if on is not None and on not in adata.obs:
        raise _no_column(on, list(adata.obs))
    ids = adata.obs_names if on is None else adata.obs[on]
    added, matched = beside(rows, list(ids), list(adata.obs))
    for name, values in added.items():
        adata.obs[name] = values
    return matched


def export_anndata(
    warehouse: str | Path,
    source: str | Path,
    output: str | Path,
    *,
    benchmark: str | None = None,
    encoder: str | None = None,
    subset: str | None = None,
    m: int = PUBLISHED_M,
    query: str | None = None,
    key: str = "croma",
    on: str | None = None,
) -> Matched:
    """Write an .h5ad once more, with margins beside its observations.

    The file is copied, and only ``obs`` of the copy is opened: whatever else it holds is neither
    read nor changed, and takes no memory.

    Parameters
    ----------
    warehouse : path
    source, output : paths to .h5ad on this machine
        ``output`` appears whole or not at all; it may be ``source``.
    benchmark, encoder, subset, m, query, key, on
        As in `to_anndata`.

    Returns
    -------
    Matched

    Raises
    ------
    CromaSqlError
        As `to_anndata`; also a source that is no .h5ad, and an output that cannot be written.
    """
    scope = {"benchmark": benchmark, "encoder": encoder, "subset": subset}
    source, output = _on_this_machine(source), _on_this_machine(output)
    read, write = _library(source)
    with _observations(source, "r") as obs:
        columns = list(obs.attrs[ORDER])
        if on is not None and on not in columns:
            raise _no_column(on, columns)
        ids, taken = read(obs[on or obs.attrs[INDEX]]), [*columns, *obs]
    added, matched = beside(_rows(warehouse, scope, m, query, key), list(ids), taken)
    with replacing(output) as file, source.open("rb") as original:
        shutil.copyfileobj(original, file)
        file.flush()
        with _observations(Path(file.name), "r+") as obs:
            for name, values in added.items():
                write(obs, name, values)
            obs.attrs[ORDER] = [*columns, *added]
    return matched


def _rows(warehouse: str | Path, scope: Scope, m: int, query: str | None, key: str) -> pl.DataFrame:
    if query is None:
        return margins_of_samples(warehouse, scope, m, key)
    if any(scope.values()):
        raise CromaSqlError(
            "a query says itself which benchmark and encoder its rows are of; leave --benchmark, "
            "--encoder and --subset out"
        )
    return rows_of_samples(warehouse, query)


def _on_this_machine(where: str | Path) -> Path:
    path = place(where)
    if not is_local(path):
        raise CromaSqlError(
            f"{path} is on object storage, where an .h5ad cannot be changed; copy it to this "
            "machine, and the result back"
        )
    return path


def _no_column(on: str, columns: list[str]) -> SourceError:
    return SourceError(f"obs has no column {on!r}; it has {listed(columns, show=50)}")


def _library(source: Path) -> tuple[Callable[[Any], Any], Callable[[Any, str, Any], None]]:
    """Give what reads and writes parts of AnnData."""
    try:
        from anndata.io import read_elem, write_elem
    except ImportError:
        raise CromaSqlError(
            f"{source} is read by anndata, which is missing: pip install 'croma-sql[anndata]'"
        ) from None
    return read_elem, write_elem


@contextmanager
def _observations(path: Path, mode: str) -> Iterator[Any]:
    """Open ``obs`` of an .h5ad.

    Raises
    ------
    SourceError
        It is none, or of a version of AnnData that kept ``obs`` in another way.
    """
    import h5py

    try:
        opened = h5py.File(path, mode, locking=False)  # what is being written is locked already
    except OSError as error:
        raise unreadable(path, error) from error
    with opened as file:
        obs = file.get("obs")
        if not isinstance(obs, h5py.Group) or not {ORDER, INDEX} <= obs.attrs.keys():
            raise SourceError(
                f"{path} has no obs as AnnData has written it since version 0.7; read it and write "
                "it again with a newer one"
            )
        yield obs
