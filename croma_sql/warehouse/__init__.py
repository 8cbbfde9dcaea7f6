"""A warehouse is a folder of Parquet, readable by any tool.

layout.py           where things lie, what names may be, what is there
publish.py          write beside, sync, rename: everything written goes through it
samples.py          ids and attributes
encoders.py         attributes of encoders
embeddings.py       vectors, one file per encoder and dataset; embedding_files.py reads them back
benchmarks.py       one SELECT each, run where it can read nothing but the samples
plan.py             who takes part in scoring a benchmark under an encoder, and what is up to date
scores.py           the search over that, kept as Parquet: what is there, what is scored again
parts.py            the search itself, part by part; memory.py decides how it is cut
vectors.py          the vectors it reads, in memory or set aside on disk (spill.py)
score_tables.py     columns of scores files, and writing them
views.py            SQL views over the files
info.py, check.py   what is there, and whether every file is as it should be
"""
