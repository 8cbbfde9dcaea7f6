"""What was imported, or made from that.

samples.py             ids and attributes; attributes.py joins those of a cohort
encoders.py            attributes of encoders
embeddings.py          vectors, a file per encoder and dataset; embedding_files.py reads them back
harmonise.py           an encoder without a confounder, into a new one; harmonised_vectors.py
                       writes it
harmonised.py          what it was made from, and whether that is still so
pool.py                one vector per slide or other group, as a new encoder; groups.py says who is
                       in which, pooled_vectors.py adds up, pooled.py knows what it was made from
"""
