"""Intervals, differences and rank correlations, on any frame with a margin column.

intervals.py    intervals of statistics, by resampling groups
comparisons.py  differences between encoders or strata, and how stable their ranks are
correlation.py  Spearman correlations between columns

frames.py       reading whatever frame the user has
rows.py         its rows, told apart by level, subset and group
summaries.py    which statistic a name stands for
resampling.py   every statistic of every level under the same draws
"""

from croma_sql.statistics.comparisons import differences, rank_stability
from croma_sql.statistics.correlation import spearman
from croma_sql.statistics.intervals import bootstrap

__all__ = ["bootstrap", "differences", "rank_stability", "spearman"]
