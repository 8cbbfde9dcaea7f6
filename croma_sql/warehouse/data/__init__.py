"""What was imported, or made from that.

samples.py             ids and attributes
encoders.py            attributes of encoders
embeddings.py          vectors, a file per encoder and dataset; embedding_files.py reads them back
harmonise.py           an encoder without a confounder, into a new one; harmonised_vectors.py
                       writes it
harmonised.py          what it was made from, and whether that is still so
"""
