"""The search: numba kernels over arrays, and their registration in DuckDB and Polars.

scope.py               what the search takes and gives
arrange.py             a scope in the order and form that is multiplied
tiles.py               which pairs are multiplied, in which blocks
kernels.py             serial compiled loops over a range of rows
threads.py             who may use the cores, and spreading tasks over them
search.py              the exact typed-neighbour search, built from these
duckdb_functions.py    the search as a DuckDB function, and the macros of ``sql/``
polars_expressions.py  the search and the tail statistics as Polars expressions
"""
