"""What was imported, or made from that.

samples.py             ids and attributes; attributes.py joins those of a cohort
encoders.py            attributes of encoders
embeddings.py          the door by which vectors come in: as a whole (whole.py), a file per encoder
                       and dataset, or by slide; embedding_files.py reads them back
slides.py              by slide: what is new or has changed, in parts of many slides
  sources.py           where vectors are from, and in which part they lie; changes.py compares
  fitting.py           whether slides fit together, and what is there; taken.py ids elsewhere
  parts.py             which slides lie in which part; pieces.py reads their rows, part_files.py
                       writes parts, part_threads.py many at once
  arrivals.py          their samples on their way in: merging.py puts them among those of the
                       dataset, schemas.py knows their columns
harmonise.py           an encoder without a confounder, into a new one; harmonised_vectors.py
                       writes it
harmonised.py          what it was made from, and whether that is still so
pool.py                one vector per slide or other group, as a new encoder; groups.py says who is
                       in which, pooled_vectors.py adds up, pooled.py knows what it was made from
"""
