"""Refuse options that make no sense, before anything is read."""

from typing import Any

import numpy as np

from croma_sql.errors import StatisticsError

LARGEST = 2**31 - 1  # of what nobody makes that large, so that it is told only to those who do


def whole_number(name: str, given: Any, *, least: int = 1, most: int = LARGEST) -> int:
    """Check a whole number.

    Raises
    ------
    StatisticsError

    Examples
    --------
    >>> whole_number("bins", 5)
    5
    """
    is_whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not is_whole or not least <= given <= most:
        too_large = is_whole and given > most
        upper = f" and at most {most}" if too_large or most != LARGEST else ""
        raise StatisticsError(
            f"{name} is {given!r}; it is a whole number of at least {least}{upper}"
        )
    return int(given)


def fraction(name: str, given: Any, like: float) -> float:
    """Check a number between 0 and 1, both excluded.

    Raises
    ------
    StatisticsError

    Examples
    --------
    >>> fraction("level", 0.9, like=0.95)
    0.9
    """
    is_number = isinstance(given, int | float | np.floating) and not isinstance(given, bool)
    if not is_number or not 0 < given < 1:
        raise StatisticsError(f"{name} is {given!r}; it lies between 0 and 1, as {like} does")
    return float(given)
