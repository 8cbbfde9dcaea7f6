"""The tables that the command line prints: margins of a warehouse, with intervals and ranks.

Each is a view of ``sql/`` or a function of `croma_sql.statistics` over the margins, or both side by
side; whoever wants something else asks these directly.

reading.py    margins and other views as frames
summaries.py  encoders, and strata of samples, with intervals
comparing.py  encoders against each other
each.py       one benchmark at a time
"""

from croma_sql.reports.comparing import compare, compare_overall, compare_pairs
from croma_sql.reports.reading import PUBLISHED_M, read_margins
from croma_sql.reports.summaries import strata, summary

__all__ = [
    "PUBLISHED_M",
    "compare",
    "compare_overall",
    "compare_pairs",
    "read_margins",
    "strata",
    "summary",
]
