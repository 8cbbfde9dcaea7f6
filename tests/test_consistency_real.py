"""Real tissue under six simulated scanners: what four encoders keep of 240 places.

What a reader should conclude: both networks are fragile on one scanner, the blurred s3_soft, from
which a place moves furthest and is found again least often (38 % and 52 % of the time, elsewhere 70
to 88 %), and lite2 is the one that finds more. No consistency is a merit by itself: a grey
thumbnail is the best of all by all five metrics without having collapsed, and a colour histogram,
which moves all places alike, keeps their geometry and loses nearly every place.

Margins conclude the same of the networks: s3_soft is the only scanner under which their median is
negative, and lite2 has the higher one. They see what consistency cannot, that the thumbnail knows
nothing of the tissue (it is the lowest) and that the histogram does.
"""

import polars as pl
import pytest

import croma_sql

PLACES = "SELECT sample_id, location_id AS unit, scanner AS acquisition FROM samples"
FOUND = {  # d_cos, relative_d_cos, mr_1nn, top_5, mantel_r, intra_distance, iok_10, profile_r
    "efficientnet_lite0": (0.2207, 0.4081, 0.7115, 0.8417, 0.8977, 0.5408, 0.3617, 0.9059),
    "efficientnet_lite2": (0.2065, 0.3698, 0.8000, 0.9015, 0.8879, 0.5585, 0.2925, 0.8900),
    "gray_thumb16": (0.0004, 0.0132, 1.0000, 1.0000, 0.9968, 0.0277, 0.8317, 0.9968),
    "rgb_hist48": (0.1749, 0.3720, 0.0742, 0.2428, 0.9856, 0.4702, 0.6629, 0.9819),
}
COLUMNS = (
    "d_cos", "relative_d_cos", "mr_1nn", "top_5", "mantel_r", "intra_distance", "iok_10",
    "profile_r",
)  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory, shared):
    root = tmp_path_factory.mktemp("places") / "W"
    for encoder in FOUND:
        path = shared / "hne_multiscanner" / f"{encoder}.parquet"
        samples = pl.read_parquet(path).drop("embedding")
        croma_sql.import_embeddings(root, path, encoder=encoder, dataset="hne", samples=samples)
    croma_sql.add_benchmark(root, "places", PLACES)
    croma_sql.score_consistency(root, permutations=99)
    return root


def test_the_table_of_the_four_encoders(root):
    summary = croma_sql.consistency_summary(root)
    assert summary.select("n_units", "n_acquisitions").unique().rows() == [(240, 6)]
    assert summary["encoder"].to_list() == [
        "gray_thumb16", "efficientnet_lite2", "efficientnet_lite0", "rgb_hist48",
    ]  # fmt: skip
    for row in summary.rows(named=True):
        told = [row[name] for name in COLUMNS]
        assert told == pytest.approx(FOUND[row["encoder"]], abs=5.1e-5)
    assert summary["collapse_reason"].null_count() == 4


def test_which_network_is_more_consistent_depends_on_the_question(root):
    """Fields, of which there are ten, are drawn, since places of one field are not independent."""
    found = croma_sql.compare_consistency_pairs(root, group="group_id").filter(
        pl.col("first").str.starts_with("eff"), pl.col("second").str.starts_with("eff")
    )
    better = {row["metric"]: row for row in found.rows(named=True)}
    assert {metric: row["first"][-5:] for metric, row in better.items()} == {
        "d_cos": "lite2", "mr_1nn": "lite2", "iok_10": "lite0", "profile_r": "lite0",
    }  # fmt: skip
    assert better["mr_1nn"]["lo"] > 0
    assert better["d_cos"]["lo"] < 0 < better["d_cos"]["hi"]  # which ten fields cannot tell
    assert better["iok_10"]["lo"] > 0


@pytest.fixture(scope="module")
def margins(shared):
    def of(encoder):
        tiles = pl.read_parquet(shared / "hne_multiscanner" / f"{encoder}.parquet")
        columns = (tiles[name] for name in ("embedding", "label", "scanner", "group_id"))
        found = croma_sql.margins(*columns, sample_id=tiles["sample_id"])
        return found.with_columns(encoder=pl.lit(encoder))

    return pl.concat([of(encoder) for encoder in FOUND])


def test_margins_rank_the_networks_alike_and_know_about_the_tissue(margins):
    croma = dict(margins.group_by("encoder").agg(pl.col("margin").median()).rows())
    assert sorted(croma, key=croma.get) == [
        "gray_thumb16", "efficientnet_lite0", "efficientnet_lite2", "rgb_hist48",
    ]  # fmt: skip
    assert croma["gray_thumb16"] < 0 < croma["efficientnet_lite0"]


def test_consistency_and_margins_name_the_same_scanner(root, margins):
    with croma_sql.connect(root) as con:
        moved = con.sql("""
            SELECT encoder, acquisition_a AS scanner, avg(d_cos) AS d_cos,
                avg(mr_1nn_symmetric) AS mr_1nn, avg(mantel_r) AS mantel_r, max(mantel_p) AS p
            FROM acquisition_pairs GROUP BY ALL
        """).pl()
    croma = margins.group_by("encoder", pl.col("confounder").alias("scanner")).agg(
        pl.col("margin").median().alias("croma")
    )
    found = moved.join(croma, on=["encoder", "scanner"])
    assert len(found) == 24
    assert found["p"].max() == 0.01  # the smallest that 99 permutations can give
    worst = {
        encoder: (
            rows.sort("d_cos")["scanner"][-1],
            *(rows.sort(name)["scanner"][0] for name in ("mr_1nn", "mantel_r", "croma")),
        )
        for (encoder,), rows in found.group_by("encoder")
    }
    assert worst["efficientnet_lite0"] == worst["efficientnet_lite2"] == ("s3_soft",) * 4
    assert worst["rgb_hist48"][0] == worst["rgb_hist48"][3] == "s1_warm"
    networks = found.filter(pl.col("encoder").str.starts_with("eff"))
    assert set(networks.filter(pl.col("croma") < 0)["scanner"]) == {"s3_soft"}
