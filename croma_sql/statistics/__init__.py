"""What SQL cannot say well, on any frame with a margin column.

intervals.py    intervals of statistics, by resampling groups
pairwise.py     differences between encoders or strata
stability.py    how stable the ranks of encoders are
correlation.py  Spearman correlations between columns
enrichment.py   values that are over-represented in the tail
subgroups.py    the worst combinations of attributes

frames.py       reading whatever frame the user has
rows.py         its rows, told apart by level, subset and group
summaries.py    which statistic a name stands for
resampling.py   every statistic of every level under the same draws
contests.py     which levels are compared with each other
attributes.py   columns as values, numbers in bins; conditions.py: as SQL says them
slices.py       every combination that is large enough; worst.py: which of them are listed
blocks.py       sums over groups; contrasts.py, odds.py: tests that allow for them; shrinkage.py
options.py      checking what is asked for
"""

from croma_sql.statistics.correlation import spearman
from croma_sql.statistics.intervals import bootstrap
from croma_sql.statistics.pairwise import differences
from croma_sql.statistics.stability import rank_stability

__all__ = ["bootstrap", "differences", "rank_stability", "spearman"]
