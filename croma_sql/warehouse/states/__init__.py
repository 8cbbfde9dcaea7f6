"""Whether what is stored is up to date: of the vectors, samples and benchmarks that there are now.

present.py  what there is now
derived.py  encoders that harmonising or pooling made
stored.py   every table of scores, and every such encoder, with a state and a reason
view.py     the same for SQL
telling.py  the sentence that a report, an export or a query begins with where something is stale
"""
