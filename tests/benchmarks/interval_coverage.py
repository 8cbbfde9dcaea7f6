"""How often intervals hold the truth, and equal encoders are told apart, where groups are unequal.

    python tests/benchmarks/interval_coverage.py [--cohorts 400] [--groups 6 10 20 40]

Sizes of groups are Pareto-distributed (shape 1.5, 10 to 1,000 rows), the intraclass correlation is
0.4, margins are tanh of normal values or of gamma-distributed ones turned downwards. Four encoders
share half of their variance. A row says of each statistic: the share of cohorts whose interval
holds the truth, of those that have one, and that share; of any of 6 pairs, and of two encoders, the
share of cohorts in which an interval excludes 0. It takes about 20 minutes on one core.
"""

import argparse

import numpy as np
import polars as pl
from report import tell

import croma_sql

MEAN, SPREAD, ALIKE = 0.15, 0.4, 0.4
SHAPE, LEAST, MOST = 1.5, 10, 1000
ALONE = 4
STATISTICS = ("croma", "f0", "ltm10")
TRUTH_ROWS = 4_000_000
Values = np.ndarray


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cohorts", type=int, default=400)
    parser.add_argument("--groups", type=int, nargs="+", default=[6, 10, 20, 40])
    given = parser.parse_args()
    for skewed in (False, True):
        expected = truth(skewed)
        for groups in given.groups:
            rng = np.random.default_rng(groups)
            frame = cohorts(rng, given.cohorts, groups, skewed)
            what = f"{'skewed' if skewed else 'normal'}, {groups} groups:"
            tell(f"{what} {single(frame.filter(encoder=ALONE), expected)}")
            for told, n in (("any of 6 pairs", 4), ("two encoders", 2)):
                tell(f"{what} {told} {told_apart(frame.filter(pl.col('encoder') < n))}")


def draw(rng: np.random.Generator, n: int, skewed: bool) -> Values:
    """Values of mean 0 and variance 1."""
    return -(rng.gamma(2, 1, n) - 2) / np.sqrt(2) if skewed else rng.standard_normal(n)


def mixed(alike: float, one: Values, other: Values) -> Values:
    """Sum of which the first part has this share of the variance."""
    return np.sqrt(alike) * one + np.sqrt(1 - alike) * other


def cohorts(rng: np.random.Generator, n: int, groups: int, skewed: bool) -> pl.DataFrame:
    """Margins of four equal encoders in every cohort, and of one alone."""
    parts = []
    for cohort in range(n):
        sizes = np.minimum(MOST, LEAST * rng.random(groups) ** (-1 / SHAPE)).astype(int)
        group = np.repeat(np.arange(groups), sizes)
        rows = len(group)
        common = [draw(rng, groups, skewed), draw(rng, rows, skewed)]
        for encoder in range(5):
            of_group = mixed(0.5, common[0], draw(rng, groups, skewed))
            of_row = mixed(0.5, common[1], draw(rng, rows, skewed))
            if encoder == ALONE:  # of the distribution that the truth is of
                of_group, of_row = common
            z = mixed(ALIKE, of_group[group], of_row)
            columns = {"group_id": group, "margin": np.tanh(MEAN + SPREAD * z)}
            parts.append(
                pl.DataFrame(columns).with_columns(cohort=pl.lit(cohort), encoder=pl.lit(encoder))
            )
    return pl.concat(parts)


def truth(skewed: bool) -> dict[str, float]:
    """Statistics of all samples there could be."""
    rng = np.random.default_rng(99)
    z = mixed(ALIKE, draw(rng, TRUTH_ROWS, skewed), draw(rng, TRUTH_ROWS, skewed))
    x = np.tanh(MEAN + SPREAD * z)
    tail = x[x <= np.quantile(x, 0.1)]
    values = (np.median(x), np.mean(x <= 0), tail.mean())
    return dict(zip(STATISTICS, map(float, values), strict=True))


def single(frame: pl.DataFrame, expected: dict[str, float]) -> str:
    """Share of intervals that hold the truth, and of cohorts that have one."""
    found = croma_sql.intervals(frame, by="cohort", statistics=STATISTICS)
    value = pl.col("statistic").replace_strict(expected, return_dtype=pl.Float64)
    shares = found.group_by("statistic", maintain_order=True).agg(
        value.is_between("lo", "hi").mean().alias("held"),
        pl.col("lo").is_not_null().mean().alias("known"),
    )
    return ", ".join(f"{name} {held:.3f} of {known:.2f}" for name, held, known in shares.rows())


def told_apart(frame: pl.DataFrame) -> str:
    """Share of cohorts in which any interval of a difference excludes 0."""
    found = croma_sql.differences(frame, by="cohort", statistics=STATISTICS)
    apart = ((pl.col("lo") > 0) | (pl.col("hi") < 0)).fill_null(value=False)
    any_pair = found.group_by("statistic", "cohort", maintain_order=True).agg(apart.any())
    shares = any_pair.group_by("statistic", maintain_order=True).agg(pl.col("lo").mean())
    return ", ".join(f"{name} {share:.3f}" for name, share in shares.rows())


if __name__ == "__main__":
    main()
