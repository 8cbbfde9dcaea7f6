"""The search: numba kernels over arrays, and their registration in DuckDB and Polars.

scope.py               what the search takes and gives
search.py              the exact search of one scope or of many: which way for which size
tiled.py               large scopes, by blocks of matrix products
first_ranks.py         where the first SO and OS stand, counted over the same blocks
arrange.py             a scope in the order and form that is multiplied
tiles.py               which pairs are multiplied, in which blocks
blocks.py              what a search by blocks works on, and multiplying a list of tiles
small.py               many small scopes at once
silhouettes.py         cosine silhouettes of a scope, without a pair of samples
threads.py             who may use the cores, and spreading tasks over them
jobs.py                a search in the background, which a query waits for and may leave
ctrl_c.py              which queries Ctrl-C has ended

Compiled, serial, over arrays (compiled.py: how):
exact.py               inner products, norms and distances in float64; residuals in float32
chunks.py              holding 64 products against limits at once
selection.py           keeping the nearest candidates, and ordering them exactly
ranks.py               counting who is nearer than the first of a type
pairs.py               every pair of small scopes
votes.py               whether the nearest vote for the class of a sample
resampling.py          statistics of margins under many draws of groups
slices.py              sums over groups of the rows that share attribute values
cluster_means.py       sums over clusters, and how far a vector lies from each

duckdb_functions.py    the search as a DuckDB function, and the macros of ``sql/``
polars_expressions.py  the search and the tail statistics as Polars expressions
"""
