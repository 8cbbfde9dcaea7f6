"""What is scored: one SELECT each.

selects.py  kept, and run where it can read nothing but the samples; the two kinds of rows:
margin.py   labels under confounders; designs.py says which cells a subset lacks
paired.py   units under acquisitions
rows.py     what both kinds are validated with
every.py    benchmarks of a kind under encoders, one after the other
"""
