"""Compiled sums for statistics of any frame.

resampling.py  statistics of margins under many draws of groups
slices.py      sums over groups of the rows that share attribute values
"""
