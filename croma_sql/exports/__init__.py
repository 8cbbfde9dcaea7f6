"""The way out of a warehouse.

tables.py    rows of any view or query, as Parquet, CSV or Arrow
anndata.py   margins as columns of the observations of AnnData; observations.py matches them
geojson.py   tiles of slides coloured by margin, for QuPath; tiles.py knows where they lie,
             features.py what a tile is there, colours.py how it looks
scored.py    which margins are meant
"""
