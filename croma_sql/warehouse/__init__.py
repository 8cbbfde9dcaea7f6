"""A warehouse is a folder of Parquet, readable by any tool.

layout.py           where things lie, what names may be, what is there
publish.py          write beside, sync, rename: everything written goes through it
samples.py          ids and attributes
encoders.py         attributes of encoders
embeddings.py       vectors, one file per encoder and dataset; embedding_files.py reads them back
benchmarks.py       one SELECT each, run where it can read nothing but the samples;
                    margin_benchmark.py and paired_benchmark.py are the two kinds
every.py            benchmarks of a kind under encoders, one after the other
plan.py             who takes part in scoring a benchmark under an encoder, and what is up to date
scores.py           the search over that, kept as Parquet: what is there, what is scored again
parts.py            the search itself, part by part; memory.py decides how it is cut
vectors.py          the vectors it reads, in memory or set aside on disk (spill.py)
score_schemas.py    tables of scores and their columns; score_tables.py writes those of the search
consistency.py      units compared across acquisitions, kept as Parquet
complete_units.py   their mean vectors, and who is left out; pooled.py adds them up in a stream
centre.py           how strongly the confounder is encoded, kept as Parquet; centre_tables.py
                    measures it
views.py            SQL views over the files
info.py, check.py   what is there, and whether every file is as it should be (check_scores.py)
"""
