"""Make the runs beside this file with the writers' own calls: slide2vec 7.1.4 and hs2p 6.1.0.

Nothing is embedded: the vectors are `features`, all the rest is what the writers make of a run.

    pip install slide2vec==7.1.4 hs2p==6.1.0 && python make_runs.py
"""

import shutil
from pathlib import Path

import numpy as np

RECORDED = Path("/data/runs")  # where the sidecars say that they were made
TILE = 224


def features(first, *shape):
    """Return numbers that float16 holds: first, first + 1/8, first + 2/8, ..."""
    return first + np.arange(np.prod(shape)).reshape(shape) / 8


def main(into):
    from slide2vec import ExecutionOptions, Model

    for run in ("npz", "pt", "regions", "slides", "patients", "images"):
        shutil.rmtree(into / run, ignore_errors=True)
    tiles = Model.from_preset("prost40m", device="cpu")
    half = {"precision": "fp16", "output_dtype": "fp16"}
    as_npz = ExecutionOptions(output_dir=into / "npz", output_format="npz", precision="fp32")
    _tiles(tiles, as_npz, "007-A.v2", [(448, 0), (0, 448), (0, 0)], first=1)
    _tiles(tiles, as_npz, "008", [(0, 0)], first=100)
    _tiles(tiles, as_npz, "empty", [], first=0)
    as_pt = ExecutionOptions(output_dir=into / "pt", output_format="pt", **half)
    for annotation, x, first in (("tumor", 0, 1), ("stroma", 896, 9)):
        _tiles(tiles, as_pt, "TCGA-AA-0001", [(x, 0), (x, 448)], first, annotation)
    _regions(tiles, ExecutionOptions(output_dir=into / "regions", output_format="npz", **half))
    _single(into)


def _tiling(run, sample_id, corners, annotation=None, size=448):
    from hs2p import save_tiling_result
    from hs2p.tiling.result import TileGeometry, TilingResult

    x, y = np.array(corners, np.int64).reshape(-1, 2).T
    geometry = TileGeometry(
        x=x, y=y, tissue_fractions=np.linspace(0.5, 1, len(x), dtype=np.float32),
        requested_tile_size_px=size // 2, requested_spacing_um=0.5, read_level=1,
        read_tile_size_px=size // 2, read_spacing_um=0.5, tile_size_lv0=size,
        is_within_tolerance=True, base_spacing_um=0.25, slide_dimensions=[4000, 3000],
        level_downsamples=[1.0, 2.0], overlap=0.0, min_tissue_fraction=0.1,
    )  # fmt: skip
    tiling = TilingResult(
        tiles=geometry, sample_id=sample_id, image_path=f"/data/slides/{sample_id}.svs",
        backend="openslide", requested_backend="auto", tolerance=0.05, step_px_lv0=size,
        tissue_method="hsv", requested_seg_downsample=64, seg_downsample=64, seg_level=1,
        seg_spacing_um=16.0, seg_sthresh=8, seg_sthresh_up=255, seg_mthresh=7, seg_close=4,
        ref_tile_size_px=16, a_t=4.0, a_h=2.0, filter_white=False, filter_black=False,
        white_threshold=220, black_threshold=25, fraction_threshold=0.9, annotation=annotation,
    )  # fmt: skip
    saved = save_tiling_result(tiling, run, annotation=annotation)
    for name in ("coordinates_npz_path", "coordinates_meta_path"):
        path = getattr(saved, name)
        setattr(tiling, name, path and RECORDED / path.relative_to(run.parent))
    return tiling


def _tiles(model, execution, sample_id, corners, first, annotation=None):
    from slide2vec.artifacts import write_tile_embedding_metadata
    from slide2vec.runtime.embedding import (
        build_tile_embedding_metadata,
        write_tile_embedding_artifact,
    )
    from slide2vec.runtime.feature_identity import pooled_feature_identity

    tiling = _tiling(execution.output_dir, sample_id, corners, annotation)
    metadata = build_tile_embedding_metadata(
        model, tiling_result=tiling, image_path=tiling.image_path, mask_path=None,
        tile_size_lv0=tiling.tile_size_lv0, backend="openslide",
        compatibility=pooled_feature_identity(model, execution=execution),
        encoder_input_size_px=TILE if corners else None,
    )  # fmt: skip
    if not corners:
        write_tile_embedding_metadata(
            sample_id, output_dir=execution.output_dir, output_format=execution.output_format,
            metadata=metadata,
        )  # fmt: skip
        return
    write_tile_embedding_artifact(
        sample_id, features(first, len(corners), 4), execution=execution, metadata=metadata,
        annotation=annotation,
    )  # fmt: skip


def _regions(model, execution):
    from hs2p import TilingConfig
    from slide2vec import PreprocessingConfig
    from slide2vec.runtime.embedding import (
        build_hierarchical_embedding_metadata,
        write_hierarchical_embedding_artifact,
    )
    from slide2vec.runtime.feature_identity import pooled_feature_identity

    config = TilingConfig(
        requested_spacing_um=0.5, requested_tile_size_px=TILE, tolerance=0.05, overlap=0.0,
        backend="openslide",
    )  # fmt: skip
    preprocessing = PreprocessingConfig(
        tiling=config, requested_region_size_px=2 * TILE, region_tile_multiple=2
    )
    tiling = _tiling(execution.output_dir, "007-A.v2", [(896, 0), (0, 0)], size=896)
    metadata = build_hierarchical_embedding_metadata(
        model, tiling_result=tiling, image_path=tiling.image_path, mask_path=None,
        backend="openslide", preprocessing=preprocessing,
        compatibility=pooled_feature_identity(
            model, execution=execution, preprocessing=preprocessing
        ),
        encoder_input_size_px=TILE,
    )  # fmt: skip
    write_hierarchical_embedding_artifact(
        "007-A.v2", features(1, 2, 4, 3), execution=execution, metadata=metadata
    )


def _single(into):
    """Write one vector per slide, patient and image."""
    import torch
    from slide2vec.artifacts import (
        write_image_embedding,
        write_patient_embeddings,
        write_slide_embeddings,
    )

    about = {"encoder_name": "moozy", "encoder_level": "slide", "feature_dtype": "fp32"}
    vector = torch.tensor(features(1, 4), dtype=torch.float32)
    write_slide_embeddings("007-A.v2", vector, output_dir=into / "slides", metadata=about)
    write_patient_embeddings(
        "007", vector.half(), output_dir=into / "patients", output_format="npz", num_slides=2,
        metadata=about | {"encoder_level": "patient", "feature_dtype": "fp16"},
    )  # fmt: skip
    write_image_embedding(
        vector, output_dir=into / "images", sample_id="bach-001", output_format="npz",
        metadata={"artifact_type": "image_embeddings", "sample_id": "bach-001", "format": "npz",
                  "image_path": "/data/bach/001.tif"} | about | {"encoder_level": "tile"},
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(__file__).parent)
