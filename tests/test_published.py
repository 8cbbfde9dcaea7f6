"""Tables of the CRoMa and PathoROB papers, recomputed through our own SQL."""

import json
import pickle

import numpy as np
import polars as pl
import pytest

COHORTS = {
    "camelyon": {"RudolfV-2-S", "Mascaret"},
    "tcga-4x4": {"Midnight-12k", "Mascaret", "H-optimus-1"},
    "tolkach-esca": {"Midnight-12k", "Mascaret"},
    "pcabiop": {"PRISM2"},
}
TILE_COHORTS = ("camelyon", "tcga-4x4", "tolkach-esca")
SPEARMAN = {  # CRoMa, LTM10; over encoders, without controls
    ("camelyon", "tcga-4x4"): (0.9215, 0.5169),
    ("camelyon", "tolkach-esca"): (0.8946, 0.8962),
    ("tcga-4x4", "tolkach-esca"): (0.9346, 0.4869),
}
NAMES = "benchmark := 'cohort', encoder := 'model', ltm10 := 'croma_ltm10'"


@pytest.fixture
def published(shared):
    return shared / "truth_croma"


@pytest.fixture
def con(con, published):
    """With every published table as ``results``, and ``tiles`` of the three tile cohorts."""
    tables = [
        pl.read_csv(published / f"{cohort}.csv").with_columns(cohort=pl.lit(cohort))
        for cohort in COHORTS
    ]
    con.register("results", pl.concat(tables))
    con.execute("CREATE VIEW tiles AS FROM results WHERE cohort <> 'pcabiop'")
    return con


def test_frontier_of_each_cohort(con):
    found = con.sql(f"FROM croma_frontier('results', {NAMES})").pl()
    assert len(found) == 26 + 26 + 26 + 5
    for cohort, encoders in COHORTS.items():
        of_cohort = found.filter(pl.col("benchmark") == cohort)
        assert set(of_cohort.filter("on_frontier")["encoder"]) == encoders
        ranked = of_cohort.filter(~pl.col("is_control"))
        for rank in ("croma_rank", "ltm10_rank"):
            assert sorted(ranked[rank]) == list(range(1, len(ranked) + 1))
    assert set(found.filter("is_control")["encoder"]) == {"DINOv2-B"}


def test_mean_ranks_and_their_frontier(con, published):
    """As stored: ranks to three digits, and their mean of those."""
    stored = pl.read_csv(published / "cross_benchmark.csv")
    found = con.sql(f"FROM croma_mean_ranks('tiles', {NAMES})").pl()
    both = stored.join(found, left_on="model", right_on="encoder", how="full", suffix="_found")
    assert len(both) == len(stored) == 26
    assert set(both.filter("on_frontier")["model"]) == {"Mascaret"}
    for row in both.iter_rows(named=True):
        assert row["on_frontier_found"] == row["on_frontier"]
        assert row["n_benchmarks"] == 3
        for ours, theirs in (
            ("croma_rank_found", "croma_rank"),
            ("ltm10_rank", "ltm_rank"),
            ("mean_rank_found", "mean_rank"),
        ):
            assert row[ours] == pytest.approx(row[theirs], abs=0.00051)
        assert row["is_control"] == (row["croma_rank_found"] is None)


def test_slide_encoders_are_no_tile_encoders(con):
    """One encoder is in both panels; nothing else can be compared over all four cohorts."""
    found = con.sql(f"""
        SELECT encoder, n_benchmarks FROM croma_mean_ranks('results', {NAMES})
        WHERE mean_rank IS NOT NULL
    """)
    assert found.fetchall() == [("Prov-GigaPath", 4)]


def test_spearman_between_cohorts(con):
    found = con.sql("""
        SELECT one.cohort, other.cohort, spearman(one.croma, other.croma),
            spearman(one.croma_ltm10, other.croma_ltm10), count(*)
        FROM tiles AS one JOIN tiles AS other USING (model)
        WHERE one.cohort < other.cohort AND NOT one.is_control
        GROUP BY ALL
    """).fetchall()
    assert {(one, other) for one, other, *_ in found} == SPEARMAN.keys()
    for one, other, *rho, n in found:
        assert rho == pytest.approx(SPEARMAN[one, other], abs=0.00005)
        assert n == 25


@pytest.mark.parametrize("cohort", COHORTS)
def test_statistics_of_the_published_histograms(con, published, cohort):
    """Margins spread evenly over each of 200 bins, against the table of the cohort."""
    histogram = json.loads((published / "distributions.json").read_text())["cohorts"][cohort]
    counts = pl.DataFrame(histogram["models"])
    width = (histogram["hi"] - histogram["lo"]) / len(counts)
    con.register("histograms", counts.with_row_index("bin"))
    found = con.sql("""
        WITH margins AS (
            SELECT model, $lo + $width * (bin + (unnest(range(count)) + 0.5) / count) AS margin
            FROM (UNPIVOT histograms ON COLUMNS(* EXCLUDE bin) INTO NAME model VALUE count)
        )
        SELECT model, median(margin), f0(margin), ltm(margin, 0.10), count(*) AS n,
            results.croma, results.croma_f0, results.croma_ltm10
        FROM margins JOIN results USING (model) WHERE cohort = $cohort
        GROUP BY ALL
    """, params={"cohort": cohort, "lo": histogram["lo"], "width": width}).fetchall()  # fmt: skip
    assert len(found) == len(histogram["models"]) == (5 if cohort == "pcabiop" else 26)
    zero = -histogram["lo"] / width  # bins at or below zero, the last of them in part
    for model, median, f0, ltm10, n, croma, croma_f0, croma_ltm10 in found:
        assert median == pytest.approx(croma, abs=1.25e-3)  # 1.2e-3, as rounded
        assert ltm10 == pytest.approx(croma_ltm10, abs=0.1 * width)
        counted = histogram["models"][model]
        least, most = (sum(counted[: int(at)]) / n for at in (np.floor(zero), np.ceil(zero)))
        assert least <= f0 <= most
        assert round(least, 6) <= croma_f0 <= round(most, 6)


class NumpyOnly(pickle.Unpickler):
    """Reads arrays and numbers; whatever else a pickle asks for is refused."""

    ALLOWED = (
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
    )

    def find_class(self, module, name):
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"a table of frequencies needs no {module}.{name}")
        return super().find_class(module, name)


def edges(path, n):
    """Neighbours at each rank k, pooled over n samples.

    Columns k; SS, SO, OS, OO: how many there are at that rank; SS_share, ...: the published shares
    of those up to that rank.
    """
    with path.open("rb") as file:
        stats = NumpyOnly(file).load()["stats"]
    shares = {f"{kind}_share": stats[f"fraction_{kind}-cum-norm"] for kind in TYPES}
    counts = {kind: n * stats[f"fraction_{kind}-norm"] for kind in TYPES}
    for count in counts.values():
        np.testing.assert_allclose(count, np.rint(count), rtol=0, atol=1e-6)
    whole = {kind: np.rint(count).astype(int) for kind, count in counts.items()}
    return pl.DataFrame({"k": stats["k"], **whole, **shares})


TYPES = ("SS", "SO", "OS", "OO")
INDICES = {"camelyon": (11, 20_400), "tcga": (61, 112_800), "tolkach_esca": (46, 9_000)}


@pytest.mark.parametrize("cohort", INDICES)
@pytest.mark.parametrize("encoder", ["uni2h_clsmean", "phikonv2_clsmean"])
def test_robustness_index_of_pathorob(con, shared, encoder, cohort):
    """Exactly from the published shares; from counts, as exactly as shares are rounded."""
    (folder,) = (shared / "truth_pathorob/robustness_index" / encoder / cohort).iterdir()
    published = json.loads((folder / "results_summary.json").read_text())
    k, n = INDICES[cohort]
    assert published["k_opt"] == k
    frame = edges(folder / "frequencies-same-class.pkl", n)
    assert (frame.select(pl.sum_horizontal(TYPES)).to_series() == n).all()
    con.register("edges", frame)
    from_shares = con.execute("SELECT ri(SO_share, OS_share) FROM edges WHERE k = $1", [k])
    assert from_shares.fetchall() == [(published["robustness_index"],)]
    from_counts = con.execute("SELECT ri(SO, OS) FROM edges WHERE k <= $1", [k])
    assert from_counts.fetchall()[0] == pytest.approx((published["robustness_index"],), rel=1e-15)


def test_a_pickle_of_anything_else_is_refused(tmp_path):
    path = tmp_path / "frequencies.pkl"
    path.write_bytes(pickle.dumps({"stats": print}))
    with pytest.raises(pickle.UnpicklingError, match="needs no builtins"):
        edges(path, 1)
