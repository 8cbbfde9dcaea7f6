"""AnnData, as .h5ad or .zarr, or a table of SpatialData: observations are samples.

Vectors are X, or an entry of obsm or layers that the user names; obs has the attributes, and its
index the ids, unless it has a column of unique ids of that name. ``obsm['spatial']`` is where
observations lie, in pixels unless obs has a column ``coord_unit``.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.cohort import as_text
from croma_sql.errors import SourceError, listed
from croma_sql.importers.anndata_tables import (
    NAMES,
    PLACES,
    Stored,
    find_matrix,
    find_table,
    opened_store,
    read_matrix,
    read_obs,
)
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.formats.places import PLACED
from croma_sql.importers.listing import Listing, Options
from croma_sql.importers.sources import Rows, SourceFile

FORMAT = "anndata"
SUFFIXES = (".h5ad", ".zarr", ".h5", ".hdf5")


@dataclass(frozen=True, slots=True)
class _Samples:
    """The samples of a table.

    table : its path in the file; empty: it is the file
    ids : the column of obs that has the ids; `NAMES`: its index
    places : key of the coordinates; None: there are none
    """

    path: Path
    table: str
    mtime_ns: int
    matrix: Stored
    ids: str
    places: str | None

    def read(self, start: int, stop: int) -> Rows:
        """Read some rows."""
        with opened_store(self.path, self.table) as group:
            vectors = read_matrix(group, self.matrix.key, start, stop)
            places = None if self.places is None else read_matrix(group, self.places, start, stop)
        obs = read_obs(self.path, self.table, self.mtime_ns)
        samples = _attributes(obs, self.ids).slice(start, stop - start)
        if places is None:
            return Rows(samples, vectors)
        for name, column in _placed(places.astype(np.float64)).items():
            if name not in samples.column_names:
                samples = samples.append_column(name, column)
        return Rows(samples, vectors)


def recognise(path: Path, listing: Listing, options: Options) -> SourceFile | None:
    """Recognise a table.

    Returns
    -------
    None where there is none

    Raises
    ------
    SourceError
        Damaged, more than one table or matrix to choose from, or ids that are not unique.
    """
    with opened_store(path, to_read=False) as root:
        found = find_table(root, options.embedding, str(path))
        if found is None:
            return None
        table, embedding = found
        group = root[table] if table else root
        matrix = find_matrix(group, embedding, f"{path}{table and f', {table},'}")
        places = next((key for key in PLACES if key in group), None)
    size, mtime_ns = size_and_time(path)
    obs = read_obs(path, table, mtime_ns)
    if len(obs) != matrix.n:
        raise SourceError(f"{path} has {matrix.n} vectors but {len(obs)} observations in obs")
    samples = _Samples(path, table, mtime_ns, matrix, _ids(obs, options, path), places)
    return SourceFile(
        path=path,
        format=FORMAT,
        level="sample",
        slide_id=None,
        n=matrix.n,
        d=matrix.d,
        dtype=matrix.dtype,
        size=size,
        mtime_ns=mtime_ns,
        read=samples.read,
        attributes={"matrix": matrix.key} | ({"table": table} if table else {}),
    )


def _ids(obs: pa.Table, options: Options, path: Path) -> str:
    """Choose the column of ids: the one of that name, else the index."""
    column = options.sample_id
    if column not in obs.column_names:
        if column != "sample_id":
            raise SourceError(
                f"{path}: obs has no column {column!r}; its columns are "
                f"{listed(obs.column_names[1:], show=20)}. Name that of ids with --sample-id"
            )
        return NAMES
    counts = pc.value_counts(obs.column(column))
    repeated = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if len(repeated):
        raise SourceError(
            f"{path}: obs has a column {column!r} that is not unique "
            f"({listed(repeated.to_pylist())}), so it cannot be the ids of observations. Rename it "
            "in the file, or name that of ids with --sample-id"
        )
    return column


def _attributes(obs: pa.Table, ids: str) -> pa.Table:
    """Put the ids first; an index that only counts the rows says nothing."""
    names = obs.column_names
    sample_id = as_text(obs.column(ids).combine_chunks(), ids)
    index = obs.column(NAMES).combine_chunks()
    counts = index.equals(pa.array(map(str, range(len(index)))))
    left = [name for name in names if name != ids and not (name == NAMES and counts)]
    return pa.table([sample_id, *(obs.column(name) for name in left)], ["sample_id", *left])


def _placed(places: np.ndarray) -> dict[str, pa.Array]:
    n = len(places)
    columns = (
        pa.array(np.ascontiguousarray(places[:, 0])),
        pa.array(np.ascontiguousarray(places[:, 1])),
        pa.repeat("px", n),
        pa.repeat(pa.scalar(None, pa.float64()), n),
    )
    return dict(zip(PLACED, columns, strict=True))
