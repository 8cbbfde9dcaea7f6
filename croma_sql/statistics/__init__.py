"""Intervals, differences and rank correlations, on any frame with a margin column.

intervals.py    intervals of statistics, by resampling groups
pairwise.py     differences between encoders or strata
stability.py    how stable the ranks of encoders are
correlation.py  Spearman correlations between columns

frames.py       reading whatever frame the user has
rows.py         its rows, told apart by level, subset and group
summaries.py    which statistic a name stands for
resampling.py   every statistic of every level under the same draws
contests.py     which levels are compared with each other
"""

from croma_sql.statistics.correlation import spearman
from croma_sql.statistics.intervals import bootstrap
from croma_sql.statistics.pairwise import differences
from croma_sql.statistics.stability import rank_stability

__all__ = ["bootstrap", "differences", "rank_stability", "spearman"]
