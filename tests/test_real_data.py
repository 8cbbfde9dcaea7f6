"""Known values on real data, through all three doors and the warehouse."""

import numpy as np
import polars as pl
import pytest

import croma_sql

SPEECH = {  # median, F(0), LTM10; label digit, confounder speaker
    "logmel_meanstd": (-0.381885, 0.8710, -0.788306),
    "mfcc_t8": (-0.055370, 0.6610, -0.267496),
    "mfcc_t8_cmn": (0.052922, 0.3077, -0.127749),
}
TISSUE = {  # label, scanner, field; all 1,440 rows
    "efficientnet_lite0": (0.063463, 0.315, -0.200),
    "efficientnet_lite2": (0.073633, 0.302, -0.168),
}
CELLS = (0.026444, 0.4716, -0.379088)  # cell_type without MK, HSC, DC; technology


def summaries(frame, confounder, con, tmp_path, label="label"):
    """(median, F(0), LTM10) through Python, SQL, Polars and a warehouse."""
    tail = "SELECT median(margin), f0(margin), ltm(margin, 0.10)"
    expressions = {
        "median": pl.col("margin").median(),
        "f0": pl.col("margin").croma.f0(),
        "ltm": pl.col("margin").croma.ltm(0.10),
    }
    columns = ("embedding", label, confounder, "group_id")
    arrays = croma_sql.margins(*(frame[name] for name in columns), sample_id=frame["sample_id"])
    yield arrays.select(**expressions).row(0)
    con.register("tiles", frame)
    named = {"label": label, "confounder": confounder}
    query = f"{tail} FROM croma_margins('tiles', label := $label, confounder := $confounder)"
    yield con.execute(query, named).fetchall()[0]
    margin = pl.col("embedding").croma.margin(label, confounder, "group_id", sample_id="sample_id")
    yield frame.lazy().select(margin=margin).select(**expressions).collect().row(0)
    croma_sql.import_embeddings(tmp_path, frame, encoder="e", dataset="d", samples=frame)
    select = (
        f"SELECT sample_id, {label} AS label, {confounder} AS confounder, group_id FROM samples"
    )
    croma_sql.add_benchmark(tmp_path, "b", select)
    croma_sql.score(tmp_path)
    yield (
        croma_sql.connect(tmp_path)
        .execute("FROM encoder_summary SELECT croma, f0, ltm10")
        .fetchall()[0]
    )


def assert_printed(found, printed, digits):
    for value, expected, places in zip(found, printed, digits, strict=True):
        assert value == pytest.approx(expected, abs=0.51 * 10.0**-places)


@pytest.mark.parametrize("encoder", SPEECH)
def test_speech(shared, con, tmp_path, encoder):
    frame = pl.read_parquet(shared / "fsdd_speech" / f"{encoder}.parquet")
    for found in summaries(frame, "speaker", con, tmp_path):
        assert_printed(found, SPEECH[encoder], (6, 4, 6))


@pytest.mark.parametrize("encoder", TISSUE)
def test_tissue(shared, con, tmp_path, encoder):
    frame = pl.read_parquet(shared / "hne_multiscanner" / f"{encoder}.parquet")
    assert len(frame) == 1440
    for found in summaries(frame, "scanner", con, tmp_path):
        assert_printed(found, TISSUE[encoder], (6, 3, 3))


def test_cells(shared, con, tmp_path):
    frame = pl.read_parquet(shared / "pbmc_3tech_pca30" / "pbmc_3tech_pca30.parquet")
    frame = frame.filter(~pl.col("cell_type").is_in(["MK", "HSC", "DC"]))
    for found in summaries(frame, "technology", con, tmp_path, label="cell_type"):
        assert_printed(found, CELLS, (6, 4, 6))


def test_a_real_manifest_with_stand_in_vectors(shared, con):
    """TCGA 4 x 4: 5,760 tiles, 16 cells, as PathoROB gives them to its index."""
    manifest = pl.read_parquet(shared / "pathorob_metadata" / "tcga_4x4.parquet")
    vectors = np.random.default_rng(0).standard_normal((len(manifest), 64), dtype=np.float32)
    frame = manifest.unique("sample_id", maintain_order=True)
    frame = frame.with_columns(embedding=pl.Series(vectors[: len(frame)]))
    con.register("tiles", frame)
    found = con.sql(
        "SELECT label, confounder, count(*), count(margin) "
        "FROM croma_margins('tiles', confounder := 'medical_center') GROUP BY ALL"
    ).fetchall()
    assert sum(n for *_, n, _ in found) == sum(n for *_, n in found) == len(frame)
    assert len(found) == frame.select("label", "medical_center").n_unique()
