"""What is computed of benchmarks under encoders, kept as Parquet and done once.

plan.py            who takes part, and what is up to date
schemas.py         the tables and their columns
scores.py          the search for neighbours: what is there, what is scored again
parts.py           the search itself, part by part; memory.py decides how it is cut
vectors.py         the vectors it reads, in memory or set aside on disk (spill.py)
edge_tables.py     writing what it found
consistency.py     units compared across acquisitions
complete_units.py  their mean vectors, and who is left out; pooled.py adds them up in a stream
centre.py          how strongly the confounder is encoded; centre_tables.py measures it
"""
