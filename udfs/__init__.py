"""Numba kernels over arrays, and their registration in DuckDB and Polars.

neighbours/            the exact search for typed neighbours, and for those of any type
acquisitions/          the same units under several acquisitions
centre/                silhouettes
statistics/            sums for resampling and for subgroups
doors/                 all of it as functions of DuckDB and expressions of Polars

What they share:
scope.py               what a search takes and gives
exact.py               inner products, norms and distances in float64; residuals in float32
compiled.py            how functions are compiled
threads.py             who may use the cores, and spreading tasks over them
tracker.py             how far a computation is
jobs.py                a search in the background, which a query waits for and may leave
ctrl_c.py              which queries Ctrl-C has ended
"""
