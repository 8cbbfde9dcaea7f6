"""A warehouse of tiles on slides, scored: what exports are made of."""

import numpy as np
import polars as pl

import croma_sql

SELECT = "SELECT sample_id, class AS label, centre AS confounder, slide_id AS group_id FROM samples"
SLIDES = {"003": "A", 'S/1 "a" é': "B", "it's": "A", "s4": "B"}
COLUMNS, ROWS = 6, 5


def tiles(unit="px", size=256.0, seed=0):
    """Tiles on a grid; class and place decide the vectors, and the centre more to the right."""
    rng = np.random.default_rng(seed)
    places = [
        (slide, centre, i % COLUMNS, i // COLUMNS)
        for slide, centre in SLIDES.items()
        for i in range(COLUMNS * ROWS)
    ]
    frame = pl.DataFrame(
        {
            "sample_id": [f"{slide}:{r * COLUMNS + c}" for slide, _, c, r in places],
            "slide_id": [slide for slide, *_ in places],
            "x": [1000.5 + size * c for *_, c, _ in places],
            "y": [size * r for *_, r in places],
            "coord_unit": unit,
            "tile_size": size,
            "class": ["tumour" if r % 2 else "normal" for *_, r in places],
            "centre": [centre for _, centre, *_ in places],
        }
    )
    tumour = (frame["class"] == "tumour").to_numpy()
    moved = (frame["centre"] == "A").to_numpy() * np.array([c for *_, c, _ in places])
    vectors = 0.3 * rng.standard_normal((len(frame), 4)) + 2.0
    vectors[:, 0] += tumour
    vectors[:, 1] += moved / 2
    vectors[7] = 0.0
    return frame.with_columns(embedding=pl.Series(vectors, dtype=pl.Array(pl.Float64, 4)))


def built(root, frame, encoder="e", benchmark="b", dataset="d"):
    croma_sql.import_embeddings(
        root, frame, encoder=encoder, dataset=dataset, samples=frame.drop("embedding"),
        on_bad_vectors="null",
    )  # fmt: skip
    croma_sql.add_benchmark(root, benchmark, SELECT)
    croma_sql.score(root, on_undefined="null")
    return root


def contents(folder):
    """Every file below a folder."""
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
