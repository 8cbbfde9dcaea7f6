"""Make the stores beside this file with LazySlide's own calls: lazyslide 0.13.0, wsidata 0.12.0.

The slide is made up: a block of tissue that holds four tiles. Nothing is embedded: the vectors are
`features`, all the rest is what LazySlide makes of a slide. Zarr stores are many files, so each is
an archive: 007-A.v2.zarr in the format Zarr 3 with two encoders and vectors of the slide, and
008.zarr in Zarr 2 with one encoder.

    pip install lazyslide==0.13.0 wsidata==0.12.0 tifffile && python make_stores.py
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np

TISSUE = slice(300, 1500), slice(400, 1700)  # y, x


def features(first, *shape):
    """Return numbers that float16 holds: first, first + 1/8, first + 2/8, ..."""
    return first + np.arange(np.prod(shape)).reshape(shape) / 8


def main(into):
    from spatialdata._io.format import SpatialDataContainerFormatV01

    with tempfile.TemporaryDirectory() as folder:
        wsi = tiled(Path(folder) / "007-A.v2.tiff")
        extract(wsi, "mini", np.float32, first=1)
        extract(wsi, "half", np.float16, first=100)
        aggregate(wsi, "mini")
        pack(wsi, into)
        wsi = tiled(Path(folder) / "008.tiff")
        extract(wsi, "mini", np.float32, first=9)
        pack(wsi, into, sdata_formats=SpatialDataContainerFormatV01())


def tiled(path):
    import lazyslide as zs
    import tifffile
    from wsidata import open_wsi

    image = np.full((2048, 2048, 3), 245, np.uint8)
    image[TISSUE] = (150, 80, 140)
    with tifffile.TiffWriter(path) as file:
        file.write(image, tile=(256, 256), subifds=0, photometric="rgb", compression="deflate")
        half = image[::2, ::2]
        file.write(half, tile=(256, 256), photometric="rgb", compression="deflate", subfiletype=1)
    wsi = open_wsi(path)
    wsi.set_mpp(0.5)
    zs.pp.find_tissues(wsi)
    zs.pp.tile_tissues(wsi, 224, mpp=1.0)
    return wsi


def extract(wsi, name, dtype, first):
    import lazyslide as zs
    import torch

    vectors = torch.from_numpy(features(first, len(wsi.shapes["tiles"]), 4).astype(dtype))
    batches = iter(vectors.split(2))
    zs.tl.feature_extraction(
        wsi, model=lambda images: next(batches), model_name=name, batch_size=2, num_workers=0
    )


def aggregate(wsi, name):
    import lazyslide as zs

    zs.tl.feature_aggregation(wsi, feature_key=name, encoder="mean")


def pack(wsi, into, **how):
    wsi.write(**how)
    store = Path(wsi.wsi_store)
    shutil.make_archive(into / store.name, "zip", store.parent, store.name)


if __name__ == "__main__":
    main(Path(__file__).parent)
