"""Read what others wrote, a module per kind of source.

tables.py   samples: CSV, TSV, Parquet, Arrow files, any frame
vectors.py  embeddings: .npy, Parquet, Arrow files, any frame, arrays
"""
