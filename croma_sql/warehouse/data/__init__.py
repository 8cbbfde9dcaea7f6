"""What was imported.

samples.py         ids and attributes; attributes.py joins those of a cohort, schemas.py knows their
                   columns
encoders.py        attributes of encoders
embeddings.py      the door by which vectors come in: as a whole (whole.py), a file per encoder and
                   dataset, or by slide (../slides); embedding_files.py reads them back
sources.py         where vectors are from, and in which part they lie
imported.py        what an import did, and how far it is
"""
