"""The exact search for neighbours.

search.py       one scope or many: which way for which size
tiled.py        large scopes, by blocks of matrix products
first_ranks.py  where the first SO and OS stand, counted over the same blocks
arrange.py      a scope in the order and form that is multiplied
tiles.py        which pairs are multiplied, in which blocks
blocks.py       what a search by blocks works on, and multiplying a list of tiles
small.py        many small scopes at once

Compiled:
chunks.py       holding 64 products against limits at once
selection.py    keeping the nearest candidates, and ordering them exactly
ranks.py        counting who is nearer than the first of a type
pairs.py        every pair of small scopes
votes.py        whether the nearest vote for the class of a sample
"""
