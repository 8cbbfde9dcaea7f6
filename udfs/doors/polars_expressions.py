"""The Polars door: the namespace ``.croma`` on expressions, eager, lazy and streaming."""

from collections.abc import Callable
from typing import Literal

import polars as pl
import pyarrow as pa

from croma_sql.cohort import Names, as_column, build_scope, checked_k, checked_m
from croma_sql.edges import margins_of, nearest_lists, typed_lists
from croma_sql.errors import CohortError
from croma_sql.udfs.neighbours.search import search
from croma_sql.udfs.scope import Edges, Scope, Wanted

IntoExpr = pl.Expr | str
KeepRows = Literal["error", "null"]


@pl.api.register_expr_namespace("croma")
class CromaExpressions:
    """Margins of a column of vectors, and tail statistics of a column of margins.

    Registered when `croma_sql` is imported. Every method works in ``select``, ``with_columns``,
    ``.over(...)`` and ``group_by(...).agg(...)``, in both engines.
    """

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def margin(
        self,
        label: IntoExpr,
        confounder: IntoExpr,
        group: IntoExpr,
        *,
        m: int = 5,
        sample_id: IntoExpr | None = None,
        on_bad_vectors: KeepRows = "error",
    ) -> pl.Expr:
        """Margin of every row among the rows of its group; see `croma_sql.margins`.

        Parameters
        ----------
        label, confounder, group : column name or expression
        m : int
            Neighbours averaged per type.
        sample_id : column name or expression, optional
            Breaks ties between equal distances; without it the order of rows does.
        on_bad_vectors : {'error', 'null'}

        Returns
        -------
        polars.Expr
            Float64; NULL where undefined.

        Examples
        --------
        >>> import croma_sql
        >>> df = pl.DataFrame({
        ...     "embedding": [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]],
        ...     "class": ["a", "a", "b", "b"],
        ...     "centre": ["x", "y", "x", "y"],
        ...     "slide": [1, 2, 3, 4],
        ... })
        >>> margin = pl.col("embedding").croma.margin("class", "centre", "slide", m=1)
        >>> df.select(margin.round(6)).to_series().to_list()
        [0.666667, -0.666667, 0.666667, -0.666667]
        """
        m = checked_m(m)

        def margin_of(edges: Edges, *_: object) -> pl.Series:
            return pl.Series(margins_of(edges, m).margin, nan_to_null=True)

        return self._searched(
            _columns(label, confounder, group, sample_id),
            Wanted(m),
            on_bad_vectors,
            margin_of,
            pl.Float64(),
        )

    def typed_neighbours(
        self,
        label: IntoExpr,
        confounder: IntoExpr,
        group: IntoExpr,
        *,
        m: int = 20,
        sample_id: IntoExpr | None = None,
        on_bad_vectors: KeepRows = "error",
    ) -> pl.Expr:
        """Find the ``m`` nearest SO and OS neighbours of every row; parameters as in `margin`.

        Returns
        -------
        polars.Expr
            Struct of the lists ``so_id``, ``so_distance``, ``os_id``, ``os_distance``, nearest
            first. Ids are those of ``sample_id`` as text, else row numbers within the group.
        """
        m = checked_m(m)
        id_type = pl.Int64() if sample_id is None else pl.String()
        lists = {
            f"{kind}_{what}": pl.List(inner)
            for kind in ("so", "os")
            for what, inner in (("id", id_type), ("distance", pl.Float64()))
        }

        def lists_of(edges: Edges, _: Scope, ids: pl.Series | None) -> pl.Series:
            return pl.Series(typed_lists([edges], _ids(edges, ids)))

        return self._searched(
            _columns(label, confounder, group, sample_id),
            Wanted(m),
            on_bad_vectors,
            lists_of,
            pl.Struct(lists),
        )

    def neighbours(
        self,
        label: IntoExpr,
        confounder: IntoExpr,
        group: IntoExpr,
        *,
        k: int = 101,
        sample_id: IntoExpr | None = None,
        on_bad_vectors: KeepRows = "error",
    ) -> pl.Expr:
        """Find the ``k`` nearest neighbours of any type of every row; parameters as in `margin`.

        Returns
        -------
        polars.Expr
            Struct of the lists ``id``, ``type`` (``'SS'``, ``'SO'``, ``'OS'``, ``'OO'``),
            ``distance``, ``label_hit`` and ``confounder_hit``, nearest first. Ids as in
            `typed_neighbours`; hits as in `croma_sql.neighbours`.
        """
        k = checked_k(k)
        id_type = pl.Int64() if sample_id is None else pl.String()
        lists: dict[str, pl.DataType] = {
            "id": id_type, "type": pl.String(), "distance": pl.Float64(),
            "label_hit": pl.Boolean(), "confounder_hit": pl.Boolean(),
        }  # fmt: skip

        def lists_of(edges: Edges, scope: Scope, ids: pl.Series | None) -> pl.Series:
            return pl.Series(nearest_lists([edges], [scope], _ids(edges, ids)))

        return self._searched(
            _columns(label, confounder, group, sample_id),
            Wanted(1, k=k),
            on_bad_vectors,
            lists_of,
            pl.Struct({name: pl.List(inner) for name, inner in lists.items()}),
        )

    def f0(self) -> pl.Expr:
        """F(0): the fraction of margins at or below 0. NULL and NaN are left out.

        Examples
        --------
        >>> import croma_sql
        >>> df = pl.DataFrame({"margin": [-0.5, 0.0, 0.5, None]})
        >>> df.select(pl.col("margin").croma.f0()).item()
        0.6666666666666666
        """
        return (self._expr.fill_nan(None) <= 0).mean()

    def ltm(self, alpha: float = 0.10) -> pl.Expr:
        """Lower-tail mean: the mean of the margins at or below their ``alpha``-quantile.

        The quantile is linearly interpolated. NULL and NaN are left out.

        Examples
        --------
        >>> import croma_sql
        >>> df = pl.DataFrame({"margin": [-0.5, -0.25, 0.5, 0.75]})
        >>> df.select(pl.col("margin").croma.ltm(0.5)).item()  # quantile 0.125
        -0.375
        """
        if not 0 <= alpha <= 1:
            raise CohortError(f"ltm: alpha is {alpha}; it is a fraction from 0 to 1")
        margins = self._expr.cast(pl.Float64).fill_nan(None).drop_nulls()
        # At or below the interpolated quantile is at or below the margin next below it.
        tail = margins.filter(margins <= margins.quantile(alpha, "lower")).sort()
        return tail.cum_sum().last() / tail.len()  # added in order, as in SQL: the same last bit

    def _searched(
        self,
        columns: dict[str, pl.Expr],
        wanted: Wanted,
        on_bad_vectors: KeepRows,
        result: Callable[[Edges, Scope, pl.Series | None], pl.Series],
        return_dtype: pl.DataType,
    ) -> pl.Expr:
        if on_bad_vectors not in ("error", "null"):
            raise CohortError(
                f"on_bad_vectors is {on_bad_vectors!r}; an expression keeps its rows, so it can be "
                "'error' or 'null'"
            )
        named = {"embedding": self._expr, **columns}
        names = Names(**{name: _name(expr) or name for name, expr in named.items()})

        def searched(rows: pl.Series) -> pl.Series:
            ids = rows.struct.field("sample_id") if "sample_id" in columns else None
            scope = build_scope(
                rows.struct.field("embedding"),
                rows.struct.field("label"),
                rows.struct.field("confounder"),
                rows.struct.field("group"),
                ids,
                names=names,
                on_bad_vectors=on_bad_vectors,
            )
            return result(search(scope, wanted), scope, ids)

        fields = [expr.alias(name) for name, expr in columns.items()]
        return (
            pl.struct(self._expr.alias("embedding"), *fields)
            .map_batches(searched, return_dtype=return_dtype, is_elementwise=False)
            .alias(_name(self._expr) or "embedding")
        )


def _name(expr: pl.Expr) -> str | None:
    return expr.meta.output_name(raise_if_undetermined=False)


def _ids(edges: Edges, ids: pl.Series | None) -> pa.Array:
    """Ids as text, or row numbers."""
    named = range(len(edges.usable)) if ids is None else ids.cast(pl.String)
    return as_column(named, "sample_id")


def _columns(
    label: IntoExpr, confounder: IntoExpr, group: IntoExpr, sample_id: IntoExpr | None
) -> dict[str, pl.Expr]:
    given = {"label": label, "confounder": confounder, "group": group, "sample_id": sample_id}
    return {
        name: pl.col(column) if isinstance(column, str) else column
        for name, column in given.items()
        if column is not None
    }
