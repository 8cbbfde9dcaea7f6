"""Read what others wrote: the only modules that know how.

sources.py       what importers give: a file of vectors, recognised and measured but not yet read
recognise.py     which files of a folder are whose: finding.py lists them, formats/ has a module per
                 writer, joining.py joins coordinates, together.py says what they have in common
vectors.py       embeddings that come as one: .npy, a table, a frame, an array
tables.py        samples and encoders: text (delimited.py), excel.py, Parquet, Arrow, any frame
attributes.py    of a cohort, matched with samples; spellings.py knows how else ids are written
table_files.py   rows of tables in batches; features.py tells which columns are vectors
anndata_tables.py, hdf5_datasets.py, torch_archives.py, polygons.py
                 what is in files of that kind
"""
