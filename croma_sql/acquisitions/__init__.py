"""The same units under several acquisitions: consistency, from rows to tables.

units.py     rows validated, and their vectors pooled into units
compared.py  what a comparison gives, as tables; and what may be asked of it
paired.py    the Python door: arrays in, frames out
"""
