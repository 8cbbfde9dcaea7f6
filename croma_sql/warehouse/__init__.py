"""A warehouse is a folder of Parquet, readable by any tool.

layout.py    where things lie, what names may be, what is there
publish.py   the old file or the new one: everything written goes through it, by renaming.py on a
             disk and uploading.py on object storage; parquet.py: how tables are written
data/        samples, encoders, vectors, and where they are from
slides/      vectors that come in by slide, in parts
derived/     encoders made from others: harmonised, pooled
benchmarks/  what is scored: SELECTs
scoring/     what is computed of them, kept as Parquet
views.py     SQL views over the files
info.py      what is there, and what of it is up to date
checks/      whether every file is as it should be
"""
