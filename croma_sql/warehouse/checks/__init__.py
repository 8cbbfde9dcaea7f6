"""Whether every file is as it should be.

check.py     all of them, one after the other
sources.py   files of sources: parts they list, rows they tell of
vectors.py   vectors: bytes, checksums, ids
scores.py    files of scores: columns, rows, the benchmark and the encoder that they are of
families.py  tables that belong together
units.py     tables of units, by what they say of themselves
values.py    ranges, and which NULLs may be
"""
