"""The tables that the command line prints: margins of a warehouse, with intervals and ranks.

Each is a view of ``sql/`` or a function of `croma_sql.statistics` over the margins, or both side by
side; whoever wants something else asks these directly.

reading.py    margins and other views as frames
summaries.py  encoders, and strata of samples, with intervals
comparing.py  encoders against each other
each.py       one benchmark at a time
units.py, consistency.py, comparing_consistency.py  the same of units under several acquisitions
"""

from croma_sql.reports.comparing import compare, compare_overall, compare_pairs
from croma_sql.reports.comparing_consistency import (
    compare_consistency,
    compare_consistency_pairs,
)
from croma_sql.reports.consistency import (
    consistency_agreement,
    consistency_strata,
    consistency_summary,
)
from croma_sql.reports.reading import PUBLISHED_M, read_margins
from croma_sql.reports.summaries import strata, summary

__all__ = [
    "PUBLISHED_M",
    "compare",
    "compare_consistency",
    "compare_consistency_pairs",
    "compare_overall",
    "compare_pairs",
    "consistency_agreement",
    "consistency_strata",
    "consistency_summary",
    "read_margins",
    "strata",
    "summary",
]
