"""The search: numba kernels over arrays, and their registration in DuckDB and Polars.

kernels.py             serial compiled loops over a range of rows
threads.py             who may use the cores, and spreading ranges over them
search.py              the exact typed-neighbour search, built from both
duckdb_functions.py    the search as a DuckDB function, and the macros of ``sql/``
polars_expressions.py  the search and the tail statistics as Polars expressions
"""
