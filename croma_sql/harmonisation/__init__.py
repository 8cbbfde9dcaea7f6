"""Remove a confounder from vectors: ComBat, centring on means, projecting directions out.

`design` says which row is what, `linear` adds up and solves, `location`, `combat` and `directions`
are the methods, `fitting` chooses among them, `scaling` lets vectors be of any size. Vectors are
only ever read in blocks: what is held grows with the confounders, the folds and the dimension, not
with the samples; fitted on groups, with their number.
"""
