"""Which columns of a view of results are attributes, by which rows may be told apart."""

from collections.abc import Sequence

from croma_sql.errors import StatisticsError

RESULTS = ("margin", "d_so", "d_os", "undefined_reason")
_LEVELS = ("benchmark", "encoder")  # of every table, without being named


def check_attributes(
    names: Sequence[str], columns: Sequence[str], option: str, results: Sequence[str] = RESULTS
) -> None:
    """Refuse results where attributes are named, and say what an attribute of that name is called.

    Parameters
    ----------
    names : that were given
    columns : of the view
    option : by which they were given
    results : columns of the view that are no attributes

    Raises
    ------
    StatisticsError
    """
    there = {column.lower(): column for column in columns}
    for name in names:
        other = there.get(f"sample_{name.lower()}")
        if name.lower() in results or (other is not None and name.lower() in _LEVELS):
            cure = (
                f"name an attribute of samples with {option}"
                if other is None
                else f"the attribute of that name is {other!r}: {option} {other}"
            )
            raise StatisticsError(f"{name!r} is a column of results, not an attribute; {cure}")
