"""Make the archives beside this file with PathoROB's own call, at its commit 46594e9.

Nothing is extracted: the vectors are those below. The patches are made up; ids with dashes and
dots, centres with spaces and a patch in two 2x2 cells are as in PathoROB.

    git clone https://github.com/bifold-pathomics/PathoROB && python make_features.py PathoROB
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
PATCHES = pd.DataFrame(
    [
        ("BRCA-LUAD", "TCGA-E9-A1R5-01Z-00-DX1", "0_0_521", "breast", "Johns Hopkins"),
        ("BRCA-COAD", "TCGA-E9-A1R5-01Z-00-DX1", "0_0_521", "breast", "Johns Hopkins"),
        ("BRCA-LUAD", "TCGA-44-2655-01Z-00-DX1", "007", "lung", "Johns Hopkins"),
        ("BRCA-LUAD", "TCGA-44-2655-01Z-00-DX1", "advent.100", "lung", "Asterand"),
        ("BRCA-COAD", "002", "1-2", "breast", "Asterand"),
    ],
    columns=["subset", "slide_id", "patch_id", "biological_class", "medical_center"],
)


def main(checkout):
    import torch

    sys.path.insert(0, checkout)
    from pathorob.features.data_manager import FeatureDataManager

    (HERE / "metadata").mkdir(exist_ok=True)
    PATCHES.to_csv(HERE / "metadata" / "tcga_2x2.csv", index=False)
    patches = PATCHES.drop(columns="subset").drop_duplicates(ignore_index=True)
    vectors = torch.tensor(1 + np.arange(len(patches) * 3).reshape(-1, 3) / 8, dtype=torch.float32)
    manager = FeatureDataManager(HERE / "features", HERE / "metadata")
    manager.save_features("uni2h", "tcga", vectors, patches)


if __name__ == "__main__":
    main(sys.argv[1])
