"""Files of vectors and coordinates as the tools of pathology write them, by their schemas."""

import json

import h5py
import numpy as np
import torch

MAGNIFICATIONS = {"level0_magnification": 40, "target_magnification": 20}


def vectors(n, d=8, dtype=np.float16, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


def grid(n, step=512):
    """(n, 2) places of tiles, row by row of a square."""
    side = max(1, int(np.ceil(np.sqrt(n))))
    return np.array([(i % side * step, i // side * step) for i in range(n)], np.int64).reshape(n, 2)


def appendable(file, name, values, chunk_rows, attributes=()):
    values = np.asarray(values)
    row = values.shape[1:]
    stored = file.create_dataset(
        name, values.shape, values.dtype, chunks=(chunk_rows, *row), maxshape=(None, *row)
    )
    stored[:] = values
    for key, value in dict(attributes).items():
        stored.attrs[key] = json.dumps(value) if isinstance(value, dict) else value


def patched(name, size=256, level0=512):
    """What TRIDENT says of coordinates."""
    return MAGNIFICATIONS | {
        "patch_size": size,
        "patch_size_level0": level0,
        "overlap": 0,
        "name": name,
        "savetodir": "/data/patches",
        "level0_width": 90_000,
        "level0_height": 60_000,
    }


def trident(path, features, coords, *, encoder="uni_v2", **said):
    """Tiles with an encoder's name; without (None) a slide's vector."""
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"name": path.stem, "savetodir": str(path.parent)} | said
    with h5py.File(path, "w") as file:
        named = about if encoder is None else about | {"encoder": encoder}
        appendable(file, "features", features, 1, named)
        appendable(file, "coords", coords, 1, patched(path.stem))
    return path


def trident_patches(folder, slide, coords, **said):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{slide}_patches.h5"
    with h5py.File(path, "w") as file:
        appendable(file, "coords", coords, 1, patched(slide) | said)
    return path


def clam(folder, slide, features, coords):
    """The vectors of a slide, as .h5 and as .pt."""
    hdf5, tensor = folder / "h5_files" / f"{slide}.h5", folder / "pt_files" / f"{slide}.pt"
    for path in (hdf5, tensor):
        path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(hdf5, "w") as file:
        appendable(file, "features", features, 32)
        appendable(file, "coords", np.asarray(coords, np.int32), 32)
    torch.save(torch.from_numpy(features), tensor)
    return hdf5, tensor


def clam_patches(folder, slide, coords, size=256, level=1, downsample=(4.0001, 4.0003)):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{slide}.h5"
    said = {
        "patch_size": size,
        "patch_level": level,
        "downsample": downsample,
        "downsampled_level_dim": (22_500, 15_000),
        "level_dim": (22_500, 15_000),
        "name": slide,
        "save_path": str(folder),
    }
    with h5py.File(path, "w") as file:
        appendable(file, "coords", coords, 1, said)
    return path


STAMP = {
    "stamp_version": "2.4.0",
    "extractor": "uni2-1a2b3c4d",
    "unit": "um",
    "tile_size_um": 256.0,
    "tile_size_px": 224,
    "code_hash": "1a2b3c4d",
    "feat_type": "tile",
}


def stamp(path, feats, coords=None, said=STAMP):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        if coords is not None:
            file["coords"] = np.asarray(coords, np.float32)
        file["feats"] = feats
        file.attrs.update(said)
    return path


def stamp_encoded(path, feats, of):
    said = {
        "version": "2.4.0",
        "encoder": "titan",
        "precision": "torch.float16",
        "stamp_version": "2.4.0",
        "code_hash": "1a2b3c4d",
        "feat_type": of,
    }
    return stamp(path, feats, said=said)


def plain(path, **datasets):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name] = values
    return path


def tensor(path, saved, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(saved, path, **options)
    return path
