"""Columns of lists, one list per scope, as DuckDB hands them to a function."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from croma_sql.errors import CohortError
from croma_sql.udfs import jobs


@cache  # nothing else keeps a function alive that was added through a cursor that is closed
def beginning(search: Callable[..., Any]) -> Callable[..., pa.Array]:
    """Make the function that begins a search.

    It takes the columns that the search does, and the number of the query.
    """

    def begin(*arguments: pa.ChunkedArray) -> pa.Array:
        *columns, query = arguments
        tickets = jobs.begin(partial(search, *columns), len(query), query[0].as_py())
        return pa.array(tickets)  # the same memory, which DuckDB keeps

    return begin


def wait(tickets: pa.ChunkedArray) -> pa.Array:
    """Wait a moment; returns the tickets again, below 0 once their search is over."""
    over = jobs.is_over(tickets[0].as_py())
    return pa.array(-tickets.to_numpy()) if over else tickets


def take(tickets: pa.ChunkedArray) -> pa.Array:
    """Take what was found; waits on where so many waits were not enough."""
    return jobs.result(abs(tickets[0].as_py()))


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Join the chunks that DuckDB has filled."""
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def bounds_of(lists: pa.Array) -> NDArray[np.int64]:
    """Where each list begins among the values of all, and the end."""
    return np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())]).astype(np.int64)


def given(value: Any, name: str) -> Any:
    """Refuse NULL for an argument that has a default."""
    if value is None:
        raise CohortError(f"{name} is NULL; leave it out to take its default")
    return value
