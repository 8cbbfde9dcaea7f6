"""Vectors by slide: what is new or has changed, in parts of many slides.

slides.py        the order in which all of it happens; asked.py is what the user wants
changes.py       sources compared with what is there
fitting.py       whether slides fit together, and what is there; taken.py ids elsewhere
parts.py         which slides lie in which part; pieces.py reads their rows, part_files.py writes
                 parts, part_threads.py many at once
arrivals.py      their samples on their way in: merging.py puts them among those of the dataset
"""
