"""Make the tileset beside this file with the calls of croma's own scripts, at its commit 96de54e.

Nothing is extracted: the vectors are those below. The manifest has ids with leading zeros and dots,
a quoted newline, and a centre that pandas reads as missing.

    git clone https://github.com/clemsgrs/croma && python make_tileset.py croma
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
TILES = pd.DataFrame(
    [
        ("007", "tiles/007.png", "1", "RUMC", "case.1"),
        ("008", "tiles/008.png", "0", "NA", "case.1"),
        ("s-9.a", 'tiles/"s-9",\n a.png', "0", "RUMC", "case-2"),
    ],
    columns=["sample_id", "image_path", "label", "confounder", "group_id"],
)


def main(checkout):
    sys.path[:0] = [f"{checkout}/scripts/bench", f"{checkout}/src"]
    from embedding_artifacts import EmbeddingArtifactContract, publish_embedding_artifact
    from input_fingerprint import manifest_fingerprint

    TILES.to_csv(HERE / "manifest.csv", index=False)
    vectors = (1 + np.arange(12).reshape(3, 4) / 8).astype(np.float32)
    contract = EmbeddingArtifactContract(
        checkpoint_revision="a" * 40,
        extraction_contract={"version": 1, "backend": "timm", "model_id": "owner/model"},
        precision="float32",
        manifest_fingerprint=manifest_fingerprint(pd.read_csv(HERE / "manifest.csv")),
        batch_size=8,
        output_dtype="float32",
        output_shape=vectors.shape,
    )
    publish_embedding_artifact(HERE / "Mascaret.npy", vectors, contract)


if __name__ == "__main__":
    main(sys.argv[1])
