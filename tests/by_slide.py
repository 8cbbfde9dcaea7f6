"""Folders of slides, imported in parts that are small enough to be many."""

import os
import zlib

import h5py
import numpy as np
import polars as pl

import croma_sql
from croma_sql.warehouse.layout import embeddings_files
from croma_sql.warehouse.slides import parts

D = 8
PART = 100  # rows of such vectors that make a part


def part_bytes():
    """Bytes of a part that is to hold so many rows."""
    return PART * (2 * D + parts.BESIDE)


def vectors(slide, n, d=D, dtype=np.float16):
    return np.random.default_rng(zlib.crc32(slide.encode())).standard_normal((n, d)).astype(dtype)


def places(slide, n):
    return np.random.default_rng(zlib.crc32(slide.encode())).integers(0, 90_000, (n, 2))


def write(folder, slide, n, features=None, coords=None, at=None, **attributes):
    """Write a slide as TRIDENT does; ``at`` is when, in seconds, as clocks may stand still."""
    path = folder / f"{slide}.h5"
    path.parent.mkdir(parents=True, exist_ok=True)
    features = vectors(slide, n) if features is None else features
    with h5py.File(path, "w") as file:
        file["features"] = features
        file["features"].attrs.update({"encoder": "uni", "savetodir": "/x"} | attributes)
        if coords is not False:
            file["coords"] = places(slide, len(features)) if coords is None else coords
            file["coords"].attrs.update({"patch_size_level0": 512, "level0_magnification": 40})
    if at is not None:
        os.utime(path, (at, at))
    return path


def write_slides(folder, sizes):
    """Write a slide of each size; give their names."""
    names = [f"s{i:03}" for i in range(len(sizes))]
    for i, (name, n) in enumerate(zip(names, sizes, strict=True)):
        write(folder, name, n, at=1_000_000 + i)
    return names


def bring(root, source, encoder="e", dataset="d", **options):
    return croma_sql.import_embeddings(root, source, encoder=encoder, dataset=dataset, **options)


def stored(root, encoder="e", dataset="d"):
    """All vectors in force, by id."""
    frames = [
        pl.read_parquet(file.path, hive_partitioning=False, glob=False)
        for file in embeddings_files(root)
        if (file.encoder, file.dataset) == (encoder, dataset)
    ]
    return {
        name: None if vector is None else tuple(vector)
        for frame in frames
        for name, vector in frame.iter_rows()
    }


def table(root, query):
    with croma_sql.connect(root) as con:
        return con.sql(query).pl()


def samples(root, dataset="d"):
    return pl.read_parquet(next(root.glob(f"samples/{dataset}.parquet")), hive_partitioning=False)


def contents(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def part_files(root, encoder="e", dataset="d"):
    return sorted(root.glob(f"embeddings/encoder={encoder}/{dataset}/*.parquet"))
