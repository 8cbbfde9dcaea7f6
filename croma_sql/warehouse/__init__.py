"""A warehouse is a folder of Parquet, readable by any tool.

layout.py      where things lie, what names may be, what is there
publish.py     write beside, sync, rename: everything written goes through it
samples.py     ids and attributes
embeddings.py  vectors, one file per encoder and dataset
benchmarks.py  one SELECT each, run where it can read nothing but the samples
scores.py      the search over a benchmark and an encoder, kept as Parquet
inspect.py     what is in a warehouse, and whether every file is as it should be
"""
