"""The doors: what computes over arrays, as functions of DuckDB and expressions of Polars.

duckdb_functions.py    the search, and the macros of ``sql/``: `register`
duckdb_consistency.py  units across acquisitions
duckdb_silhouettes.py  silhouettes
duckdb_lists.py        what DuckDB's functions get: columns of lists, a list per scope
polars_expressions.py  the search and the tail statistics
"""
