"""Tables of AnnData, in HDF5 or Zarr: which matrix holds vectors, its rows, and obs."""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from croma_sql.cohort import as_column, as_text
from croma_sql.errors import CohortError, CromaSqlError, SourceError, listed
from croma_sql.importers.finding import STORE
from croma_sql.importers.hdf5_datasets import dataset, opened, read_rows
from croma_sql.places import is_local
from croma_sql.vectors import Matrix, as_matrix

NAMES = "obs_names"  # the column of `read_obs` that is the index of obs
PLACES = ("obsm/spatial", "obsm/X_spatial")

_LINK = "uns/spatialdata_attrs"  # says of which shapes the rows of a table are
_PARTS = ("obsm", "layers")  # where matrices with a row per observation are, beside X


@dataclass(frozen=True, slots=True)
class Stored:
    """A matrix of a table: under which key, of which shape, and as what it is read."""

    key: str
    n: int
    d: int
    dtype: str


@contextmanager
def opened_store(path: Path, table: str = "", *, to_read: bool = True) -> Iterator[Any]:
    """Open an HDF5 file or a Zarr store, wherever it lies, at its root or at a table in it.

    Raises
    ------
    SourceError
        Here or in the block: not there, cut short, damaged, or the library is missing.
    """
    if path.suffix.lower() != STORE:
        with opened(path, to_read=to_read) as file:
            yield file[table] if table else file
        return
    zarr = library("zarr", path)
    try:
        if is_local(path):
            root = zarr.open_group(path, mode="r", use_consolidated=False)
        else:
            root = zarr.open_group(_remote(path), mode="r")
        yield root[table] if table else root
    except CromaSqlError:
        raise
    except Exception as error:  # damaged stores fail in any way
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SourceError(f"{path} cannot be read: {reason}. Write or copy it again") from error


def _remote(path: Any) -> Any:
    """Make a store of object storage; Zarr has an event loop of its own, and asks in threads."""
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
    from zarr.storage import FsspecStore

    storage = AsyncFileSystemWrapper(path.fs, asynchronous=True)
    return FsspecStore(storage, path=path.path, read_only=True)


def library(name: str, path: Path) -> Any:
    """Import a library that reads AnnData."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise SourceError(
            f"{path} needs a library to be read: pip install 'croma-sql[anndata]'"
        ) from None


def is_table(group: Any) -> bool:
    """Tell the group of a table, of any version of AnnData."""
    return group.attrs.get("encoding-type") == "anndata" or ("obs" in group and "var" in group)


def find_table(root: Any, embedding: str | None, name: str) -> tuple[str, str | None] | None:
    """Find the table of vectors of a file: itself, or one of the tables of SpatialData.

    Parameters
    ----------
    root : group of the file
    embedding : name of a table, where there is a choice, or of its encoder, where it has only one;
        or of a matrix in it; or of both, with a slash between them
    name : what to call the file in messages

    Returns
    -------
    The path of the table, empty for the file itself, and which matrix is asked for; None where
    there is no table

    Raises
    ------
    SourceError
        More than one table, and none is named.
    """
    if is_table(root):
        return "", embedding
    if "tables" not in root:
        return None
    tables = sorted(root["tables"])
    for said, table in _by_name(root["tables"]).items():
        if embedding is not None and f"{embedding}/".startswith(f"{said}/"):
            return f"tables/{table}", embedding[len(said) + 1 :] or None
    if len(tables) == 1:
        return f"tables/{tables[0]}", embedding
    if not tables:
        raise SourceError(f"{name} has no tables, so nobody has extracted features into it yet")
    none = "" if embedding is None else f", none of them {embedding!r}"
    raise SourceError(
        f"{name} has {len(tables)} tables{none}: {listed(tables, show=20)}. Name one with "
        "--embedding"
    )


def link_of(group: Any) -> dict[str, list[str]]:
    """Read of which shapes the rows of a table are, by which columns of obs; empty: of none."""
    return {key: text_of(group[f"{_LINK}/{key}"]) for key in group.get(_LINK, ())}


def encoder_of(table: str, region: str) -> str:
    """Name the encoder of a table, which LazySlide calls ``<encoder>_<region>``."""
    return table.removesuffix(f"_{region}")


def _by_name(tables: Any) -> dict[str, str]:
    """List tables by their names, and by those of encoders that have one."""
    of_encoder = defaultdict(list)
    for table in sorted(tables):
        for region in link_of(tables[table]).get("region", ()):
            of_encoder[encoder_of(table, region)].append(table)
    once = {
        encoder: found[0]
        for encoder, found in of_encoder.items()
        if len(found) == 1
        if not any(f"{part}/{encoder}" in tables[found[0]] for part in _PARTS)
    }
    return once | {table: table for table in tables}


def find_matrix(group: Any, embedding: str | None, name: str) -> Stored:
    """Find the matrix of vectors of a table.

    Parameters
    ----------
    group : of the table
    embedding : ``X``; an entry of ``obsm`` or ``layers``, with or without that before it
        (``obsm/X_uni``, ``X_uni``); None: ``X``, or without it the only entry of obsm but for the
        places of observations
    name : what to call the table in messages

    Raises
    ------
    SourceError
        Not there, more than one choice, or not numbers.
    """
    found = list(_matrices(group))
    if embedding is None:
        of_obsm = [key for key in found if key.startswith("obsm/") and key not in PLACES]
        keys = ["X"] if "X" in found else of_obsm
    else:
        possible = (embedding, *(f"{part}/{embedding}" for part in _PARTS))
        keys = [key for key in possible if key in found]
    if len(keys) != 1:
        problem = "more than one choice of vectors" if keys else "no vectors"
        under = "" if embedding is None else f" under {embedding!r}"
        raise SourceError(
            f"{name} has {problem}{under}; its matrices are {listed(found, show=20) or 'none'}. "
            "Name one with --embedding"
        )
    return measured(group, keys[0], name)


def measured(group: Any, key: str, name: str) -> Stored:
    """Measure a matrix of a table; errors as `find_matrix`."""
    (n, d), dtype = _shape(group[key])
    if dtype == np.float16 and _kind(group[key]) == "sparse":
        raise SourceError(f"{name}: {key!r} is sparse float16, which nobody reads; write it dense")
    try:
        return Stored(key, int(n), int(d), as_matrix(np.empty((0, 1), dtype)).dtype.name)
    except CohortError:
        raise SourceError(f"{name}: {key!r} is of dtype {dtype}; expected numbers") from None


def text_of(item: Any) -> list[str]:
    """Read a string of a table, or several."""
    values = np.atleast_1d(item[()]).tolist()
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def read_matrix(group: Any, key: str, start: int, stop: int) -> Matrix:
    """Read rows of a matrix; a sparse one is filled up with zeros."""
    item = group[key]
    kind = _kind(item)
    if kind == "array":
        return as_matrix(read_rows(item, start, stop) if _is_hdf5(item) else item[start:stop])
    import anndata.io

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of files of older versions
        if kind == "dataframe":
            return as_matrix(anndata.io.read_elem(item).to_numpy()[start:stop])
        return as_matrix(anndata.io.sparse_dataset(item)[start:stop].toarray())


@lru_cache(maxsize=4)  # rows are read part by part, from several threads
def read_obs(path: Path, table: str, mtime_ns: int) -> pa.Table:
    """Read what is known of the observations of a table: their names, then the columns of obs.

    ``mtime_ns`` is that of the file, so that one that has changed is read again.

    Raises
    ------
    SourceError
        See `opened_store`; or of a version of long ago, or a column of odd things.
    """
    library("anndata", path)
    import anndata.io

    with opened_store(path, table) as group, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of files of older versions
        _refuse_links(group, "obs")
        frame = anndata.io.read_elem(group["obs"])
    if not hasattr(frame, "columns"):
        raise SourceError(
            f"{path} is of a version of AnnData before 0.7, which keeps obs as one array. Read it "
            "with anndata.read_h5ad and write it again"
        )
    try:
        columns = {str(name): as_column(frame[name], f"obs[{name!r}]") for name in frame.columns}
        names = as_text(as_column(frame.index, "obs_names"), "obs_names")
    except CohortError as error:
        raise SourceError(f"{path}: {error}") from error
    return pa.table([names, *columns.values()], names=[NAMES, *columns])


def _matrices(group: Any) -> Iterator[str]:
    """List the matrices of a table that have a row per observation."""
    parts = [part for part in ("X", *_PARTS) if part in group]
    for part in parts:
        _refuse_links(group, part)
    keys = [f"{part}/{key}" for part in parts if part != "X" for key in group[part]]
    for key in (["X"] if "X" in parts else []) + keys:
        shape, _ = _shape(group[key])
        if len(shape) == 2 and shape[1]:
            yield key


def _shape(item: Any) -> tuple[Sequence[int], np.dtype[Any]]:
    kind = _kind(item)
    if kind == "array":
        return item.shape, item.dtype
    if kind == "sparse":
        return item.attrs.get("shape", item.attrs.get("h5sparse_shape")), item["data"].dtype
    if kind == "dataframe":
        columns = [item[name] for name in item.attrs["column-order"]]
        dtypes = [getattr(column, "dtype", np.dtype(object)) for column in columns]
        shape = (*item[item.attrs["_index"]].shape, len(columns))
        return shape, np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    return (), np.dtype(object)


def _kind(item: Any) -> str:
    if hasattr(item, "shape"):
        return "array"
    if item.attrs.get("encoding-type") == "dataframe":
        return "dataframe"
    return "sparse" if "indptr" in item else "other"


def _is_hdf5(item: Any) -> bool:
    return hasattr(item, "file")


def _refuse_links(group: Any, name: str) -> None:
    """Refuse what an HDF5 file keeps in another one, which could be any file of this machine."""
    if not _is_hdf5(group):
        return
    item = group[name]
    if item.file.filename != group.file.filename:
        raise OSError(f"it keeps {name!r} in another file; write one that holds it itself")
    if hasattr(item, "shape"):
        dataset(group, name)
    else:
        for child in item:
            _refuse_links(item, child)
