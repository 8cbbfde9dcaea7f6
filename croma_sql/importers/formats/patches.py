"""PathoROB's metadata: what each of its patches is."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import polars as pl

from croma_sql.errors import SourceError, listed
from croma_sql.importers.delimited import read_layout
from croma_sql.importers.finding import size_and_time
from croma_sql.importers.tables import TEXT, read_table, unreadable

Measure = tuple[int, int]

_IDS = ("slide_id", "patch_id")
_REQUIRED = (*_IDS, "biological_class", "medical_center")
_KEY = "sample_id"
_SUBSET, _SUBSETS = "subset", "subsets"


def is_metadata(path: Path) -> bool:
    """Tell a table of PathoROB's patches by its columns.

    Raises
    ------
    SourceError
        It cannot be read.
    """
    return set(_REQUIRED) <= _columns(path, size_and_time(path))


def patches(paths: Sequence[Path]) -> pl.DataFrame:
    """Read metadata, one row per patch.

    Returns
    -------
    polars.DataFrame
        ``sample_id`` (the key ``<slide_id>-<patch_id>``), the columns of the tables, and of their
        ``subset`` the text where every patch is in one; where any is in several, as in the 2x2
        designs of TCGA, of each patch the list ``subsets``, which SQL can ``unnest``.

    Raises
    ------
    SourceError
        Empty ids, or rows of one patch that contradict each other.
    """
    return _patches(tuple((path, size_and_time(path)) for path in paths))


@lru_cache(maxsize=256)
def _columns(path: Path, measure: Measure) -> frozenset[str]:
    if path.suffix.lower() in TEXT:
        try:
            return frozenset(read_layout(path).names)
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable(path, error) from error
    return frozenset(read_table(path).column_names)


@lru_cache(maxsize=2)  # all archives of a dataset ask for the same
def _patches(measured: tuple[tuple[Path, Measure], ...]) -> pl.DataFrame:
    rows = pl.concat([_rows(path) for path, _ in measured], how="diagonal_relaxed").unique(
        maintain_order=True
    )
    of_patch = rows.group_by(_KEY, maintain_order=True)
    others = pl.all().exclude(_SUBSET).drop_nulls()
    differ = of_patch.agg(others.n_unique() > 1).filter(pl.any_horizontal(pl.all().exclude(_KEY)))
    if len(differ):
        columns = [name for name in differ.columns if name != _KEY and differ[name].any()]
        raise SourceError(
            f"{listed([str(path) for path, _ in measured])}: {len(differ)} patches have rows that "
            f"differ in column {listed(columns)}: {listed(differ[_KEY])}. A key "
            "<slide_id>-<patch_id> is one patch; correct the rows"
        )
    found = of_patch.agg(others.first())
    if _SUBSET not in rows.columns:
        return found
    subsets = of_patch.agg(pl.col(_SUBSET).drop_nulls().unique(maintain_order=True).alias(_SUBSETS))
    if subsets.select(pl.col(_SUBSETS).list.len().max() > 1).item():
        return found.join(subsets, on=_KEY, maintain_order="left")
    single = subsets.select(_KEY, pl.col(_SUBSETS).list.first().alias(_SUBSET))
    return found.join(single, on=_KEY, maintain_order="left")


def _rows(path: Path) -> pl.DataFrame:
    rows = pl.DataFrame(read_table(path, text=(*_REQUIRED, _SUBSET)))
    if _KEY in rows.columns:
        raise SourceError(
            f"{path} has a column {_KEY!r}, which is made of slide_id and patch_id here; rename it"
        )
    empty = rows.with_row_index(offset=1).filter(pl.any_horizontal(pl.col(_IDS).is_null()))
    if len(empty):
        raise SourceError(
            f"{path} lacks slide_id or patch_id in row(s) {listed(empty['index'])}; fill them in"
        )
    return rows.select(pl.concat_str(_IDS, separator="-").alias(_KEY), pl.all())
