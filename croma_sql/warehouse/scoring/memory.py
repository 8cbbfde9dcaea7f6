"""How a search is cut so that it stays within the memory it is given."""

import re
from dataclasses import dataclass, replace

from croma_sql.errors import ScoringError
from croma_sql.udfs.neighbours.blocks import BLOCK, BLOCKS, bytes_of_blocks
from croma_sql.udfs.neighbours.tiled import bytes_per_anchor, least_room
from croma_sql.udfs.scope import Wanted

GROUP_ROWS = 8192  # of a row group in a scores file

UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]+)?)\s*((?:[KMGT]I?)?)B?\s*", re.IGNORECASE | re.ASCII)

BESIDES = 380 * 10**6  # of the 600 MB beside the float32 matrix; the rest is the interpreter's
PER_ROW = 320  # bytes of a row's text, codes, norms and places in sorting, on top of its vector
OF_READING = 64 * 10**6  # buffers of Parquet, and what is read at a time
ENGINES = 150 * 10**6  # what DuckDB, Arrow and compiled code come to hold, over the interpreter


def _bytes_of_group(wanted: Wanted) -> int:
    """Memory in which one group of rows becomes part of a file."""
    return GROUP_ROWS * (500 + 90 * (2 * wanted.m + wanted.k))


@dataclass(frozen=True, slots=True)
class Cut:
    """How to search.

    in_memory : whether the vectors are held in memory; else they are read as needed
    anchors : samples whose neighbours are searched at a time
    room : bytes for the search's own copies of vectors
    """

    in_memory: bool
    anchors: int
    room: int


@dataclass(frozen=True, slots=True)
class Size:
    """What there is to search: rows of the benchmark, and distinct vectors under them."""

    rows: int
    vectors: int
    d: int
    itemsize: int

    @property
    def stored(self) -> int:
        """Bytes of the vectors in their own precision."""
        return self.vectors * self.d * self.itemsize


def checked_memory(memory: int | str | None) -> int | None:
    """Read a limit: bytes, or text such as ``4GB``, ``512 MiB``.

    Examples
    --------
    >>> checked_memory("1.5GB"), checked_memory("2 MiB")
    (1500000000, 2097152)
    """
    if memory is None:
        return None
    found = SIZE.fullmatch(str(memory))
    if found is None:
        raise ScoringError(
            f"memory is {memory!r}; it is a number of bytes, or a size such as 4GB or 512MiB"
        )
    return int(float(found[1]) * {**UNITS, **BINARY}[found[2].upper()])


def cut(memory: int | None, size: Size, wanted: Wanted, threads: int) -> Cut:
    """Decide what is held in memory and how many samples are searched at a time.

    Without a limit the vectors are held in memory, and everything else takes no more than the
    float32 matrix and 600 MB in all.

    Raises
    ------
    ScoringError
        A limit in which not even one group of rows could be searched.
    """
    wanted = replace(wanted, m=min(wanted.m, size.rows), k=min(wanted.k, size.rows))
    fixed = size.rows * PER_ROW + max(OF_READING, _bytes_of_group(wanted))
    lists = size.rows * bytes_per_anchor(wanted)
    if memory is None:
        residuals = 4 * size.vectors * size.d
        blocks = _bytes_of_blocks(size.d, threads, stored_too=False)
        left = residuals + BESIDES - fixed - size.stored - blocks
        if left - residuals >= lists:
            return Cut(True, size.rows, blocks + residuals)
        return Cut(True, _whole_groups(left, size, wanted), blocks)
    least = least_room(size.d, size.itemsize, wanted, threads)
    fixed += ENGINES
    left = memory - fixed - least - min(GROUP_ROWS, size.rows) * bytes_per_anchor(wanted)
    if left < 0:
        raise ScoringError(
            f"memory is {memory / 1e6:.0f} MB; {size.rows} rows of {size.d} dimensions on "
            f"{threads} threads need at least {1 + (memory - left) / 1e6:.0f} MB"
        )
    blocks = _bytes_of_blocks(size.d, threads, stored_too=True)
    room = max(least, min(blocks, least + left // 2))
    left = memory - fixed - room
    if left >= size.stored + lists:
        return Cut(True, size.rows, room + left - size.stored - lists)
    return Cut(False, _whole_groups(left, size, wanted), room)


def _bytes_of_blocks(d: int, threads: int, *, stored_too: bool) -> int:
    """Tell what the blocks take at full speed."""
    return min(BLOCKS, bytes_of_blocks(BLOCK, d, threads, stored_too=stored_too))


def _whole_groups(left: int, size: Size, wanted: Wanted) -> int:
    """Anchors that fit, in whole groups of rows, and one group at least."""
    fits = left // bytes_per_anchor(wanted)
    if fits >= size.rows:
        return size.rows
    return max(GROUP_ROWS, fits - fits % GROUP_ROWS)
