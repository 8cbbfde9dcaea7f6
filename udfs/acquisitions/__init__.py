"""The same units under several acquisitions.

compare.py         all that is measured of them, block by block
across.py          units under one acquisition looked for under another
within.py          units among their kind: shared neighbours and correlated distances
shuffles.py        permutation test of the correlation
spread.py          how far vectors spread, and along how many directions

Compiled:
pooling.py         means and maxima of many vectors, made up as they stream by
directions.py      unit vectors in float64, and distances that stay accurate between near ones
retrieval.py       who is nearest under another acquisition, and at which rank the unit itself
neighbourhoods.py  neighbours that a unit keeps under every acquisition
medians.py         distance of the unit in the middle of all others
mantel.py          sums over pairs of units
"""
