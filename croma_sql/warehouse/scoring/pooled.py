"""Mean vectors of units under acquisitions, in one pass over the files that hold the samples'."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from croma_sql.udfs.acquisitions.pooling import Pool
from croma_sql.udfs.scope import Float, Int
from croma_sql.warehouse.data.embedding_files import read_vectors
from croma_sql.warehouse.data.samples import read_ids
from croma_sql.warehouse.scoring.plan import Work
from croma_sql.warehouse.scoring.vectors import shape_of


@dataclass(frozen=True, slots=True)
class Pooled:
    """N units under S acquisitions, both in the order of text.

    means : (S, N, d) float64, of the vectors as they are stored; NaN where there is none
    n_samples : (S, N) int64, vectors in each mean
    """

    units: list[str]
    acquisitions: list[str]
    means: Float
    n_samples: Int

    def without(self, units: set[str]) -> "Pooled":
        """Leave units out."""
        if not units:
            return self
        keep = np.array([unit not in units for unit in self.units], np.bool_)
        kept = [unit for unit in self.units if unit not in units]
        return Pooled(kept, self.acquisitions, self.means[:, keep], self.n_samples[:, keep])

    def cells(self) -> pa.Table:
        """Units and acquisitions that have a vector, one row each."""
        acquisition, unit = np.nonzero(self.n_samples)
        return pa.table(
            {
                "unit": pa.array(self.units, pa.string()).take(unit),
                "acquisition": pa.array(self.acquisitions, pa.string()).take(acquisition),
            }
        )


def pooled(work: Work, report: Callable[[float], None]) -> Pooled:
    """Add up the vectors of every unit under every acquisition as they are read.

    What is held is a sum for each, however many samples there are. A NULL vector is passed over.

    Parameters
    ----------
    work : of a paired benchmark; its units are those that the result has
    report : gets the share of samples read
    """
    ids = work.rows.column("sample_id").combine_chunks()
    units, unit = _coded(work.rows.column("unit"))
    acquisitions, acquisition = _coded(work.rows.column("acquisition"))
    place = acquisition * len(units) + unit
    pool = Pool(len(units) * len(acquisitions), shape_of(work.files).d)
    read = 0
    for path in work.files:
        row = pc.fill_null(pc.index_in(read_ids(path), ids), -1).to_numpy()
        of_file = np.where(row < 0, -1, place[row])
        at = 0
        for _, batch in read_vectors(path):
            is_null = np.isnan(batch[:, 0])  # a vector that is not NULL is finite
            there = np.where(is_null, -1, of_file[at : at + len(batch)])
            pool.add(batch, there)
            at += len(batch)
            read += int(np.count_nonzero(of_file[at - len(batch) : at] >= 0))
            report(read / len(ids))
    pa.default_memory_pool().release_unused()
    grid = len(acquisitions), len(units)
    return Pooled(units, acquisitions, pool.means().reshape(*grid, -1), pool.count.reshape(grid))


def _coded(values: pa.ChunkedArray) -> tuple[list[str], Int]:
    """Distinct values in the order of text, and which of them each value is."""
    names = sorted(values.unique().to_pylist())
    return names, pc.index_in(values, pa.array(names)).to_numpy().astype(np.int64)
