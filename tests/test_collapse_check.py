"""Whether an encoder is consistent or collapsed: each rule on an encoder that it is made for."""

import duckdb
import numpy as np
import pytest
import scanned

import croma_sql

PANEL = {
    "good": scanned.good(0),
    "fair": scanned.vectors(1, noise=0.8),
    "in a cone": scanned.in_a_cone(2),
    "a ResNet": scanned.compact(3),
    "noisy": scanned.noisy(4),
    "collapsed": scanned.collapsed(5),
    "collapsed but apart": scanned.collapsed_but_apart(6),
    "collapsed but for three": scanned.collapsed_but_for_three(8),
    "on a line": scanned.on_a_line(7),
}


def checked(root, encoders, min_spread=0.01):
    with scanned.warehouse(root, encoders, permutations=0) as con:
        return con.sql(f"FROM collapse_check_at({min_spread}) ORDER BY encoder").pl()


def reasons(root, *names):
    found = checked(root, {name: PANEL[name] for name in names})
    return dict(found.select("encoder", "collapse_reason").rows())


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    return checked(tmp_path_factory.mktemp("panel") / "W", PANEL)


def test_each_fault_is_told_from_the_others(panel):
    assert dict(panel.select("encoder", "collapse_reason").rows()) == {
        "good": None,
        "fair": None,
        "in a cone": None,
        "noisy": None,  # it moves far, and d_cos says so
        "a ResNet": "compact",
        "collapsed": "no_spread",
        "collapsed but apart": "no_spread",
        "collapsed but for three": "no_spread",
        "on a line": "low_rank",
    }
    assert (panel["is_collapse"] == panel["collapse_reason"].is_not_null()).all()


def test_the_figures_say_why(panel):
    by_name = {row["encoder"]: row for row in panel.rows(named=True)}
    for row in by_name.values():
        ratio = row["d_cos"] / row["intra_distance"]
        assert row["relative_d_cos"] == pytest.approx(ratio, rel=1e-12)
    cone = by_name["in a cone"]  # as good as they come, though all its vectors point one way
    assert 0.03 < cone["mean_distance"] < 0.07
    assert cone["relative_d_cos"] < 0.05
    assert cone["mr_1nn"] == 1
    resnet = by_name["a ResNet"]  # better by d_cos than what is good, worse by all else
    assert resnet["d_cos"] < by_name["good"]["d_cos"]
    assert resnet["mr_1nn"] < 0.3
    assert resnet["mantel_r"] < 0.3
    assert 0.5 < resnet["relative_d_cos"] < 1
    assert by_name["collapsed"]["mean_distance"] < 1e-5
    assert by_name["collapsed but apart"]["mr_1nn"] == 1  # its ranks still are of use
    few = by_name["collapsed but for three"]  # which every mean takes for spread
    assert few["median_distance"] < 1e-5 < 0.1 < min(few["intra_distance"], few["mean_distance"])
    assert by_name["on a line"]["effective_rank"] < 2 < by_name["a ResNet"]["effective_rank"]


def test_ranks_are_among_all_encoders_of_the_benchmark(panel):
    for rank, of in (("d_cos_rank", "d_cos"), ("relative_rank", "relative_d_cos")):
        assert panel[rank].to_list() == panel[of].rank("min").to_list()


def test_an_encoder_that_is_alone_is_judged_by_itself(tmp_path):
    expected = {
        "collapsed": "no_spread", "on a line": "low_rank", "a ResNet": None, "in a cone": None,
    }  # fmt: skip
    for name, reason in expected.items():
        assert reasons(tmp_path / name, name) == {name: reason}


def test_one_other_encoder_is_enough_to_compare(tmp_path):
    assert reasons(tmp_path, "a ResNet", "good") == {"a ResNet": "compact", "good": None}


def test_encoders_that_have_collapsed_are_no_measure_of_others(tmp_path):
    """Beside them alone a ResNet would be spread out, and among them alone nobody is compact."""
    assert reasons(tmp_path / "some", "collapsed", "collapsed but apart", "a ResNet", "good") == {
        "collapsed": "no_spread",
        "collapsed but apart": "no_spread",
        "a ResNet": "compact",
        "good": None,
    }
    alone = reasons(tmp_path / "alone", "collapsed", "a ResNet")
    assert alone == {"collapsed": "no_spread", "a ResNet": None}


def test_encoders_that_differ_little_are_not_flagged(tmp_path):
    """One of two is always first by d_cos and last by something else."""
    found = checked(
        tmp_path,
        {f"e{seed}": scanned.vectors(seed, noise=0.9 + seed / 50) for seed in range(5)},
    )
    assert found["mr_1nn"].n_unique() > 2
    assert not found["is_collapse"].any()


def test_a_shift_between_scanners_is_no_collapse(tmp_path):
    """Rigid offsets ruin d_cos and retrieval; the geometry of the units stays."""
    moved = scanned.good(0)
    moved += 2 * np.random.default_rng(1).standard_normal((4, 1, 48)) / np.sqrt(48)
    found = checked(tmp_path, {"moved": moved, "good": scanned.good(0)})
    assert found.filter(encoder="moved")["relative_d_cos"].item() > 2
    assert found.filter(encoder="moved")["mr_1nn"].item() < 0.8
    assert not found["is_collapse"].any()


def test_a_rotation_of_each_scanner_ruins_distances_and_not_the_geometry(tmp_path):
    rng = np.random.default_rng(0)
    rotations = [np.linalg.qr(rng.standard_normal((48, 48)))[0] for _ in range(4)]
    turned = np.stack([v @ r for v, r in zip(scanned.good(0), rotations, strict=True)])
    encoders = {"as is": scanned.good(0), "turned": turned}
    with scanned.warehouse(tmp_path, encoders, permutations=0) as con:
        columns = "d_cos, mr_1nn, mantel_r, intra_distance, iok_5, profile_r"
        as_is, turned = con.sql(
            f"SELECT {columns} FROM consistency_summary ORDER BY encoder"
        ).fetchall()
    assert turned[0] > 0.9 > 0.2 > as_is[0]
    assert turned[1] < 0.1 < as_is[1]
    assert turned[2:] == pytest.approx(as_is[2:], abs=1e-9)


def test_units_that_all_coincide_have_no_spread(tmp_path):
    """Nothing but zeros and NULLs, and no division by them."""
    with scanned.warehouse(tmp_path, {"one point": np.ones((4, 6, 3))}, permutations=9) as con:
        row = con.sql("FROM collapse_check").pl().row(0, named=True)
    assert (row["d_cos"], row["intra_distance"], row["mean_distance"]) == (0, 0, 0)
    assert row["relative_d_cos"] is row["relative_rank"] is row["effective_rank"] is None
    assert row["collapse_reason"] == "no_spread"


def test_units_that_coincide_under_each_scanner_have_no_spread(tmp_path):
    """Scanners lie far apart, so the vectors of all together do not coincide."""
    apart = np.repeat(np.eye(4)[:, None], 6, axis=1)
    with scanned.warehouse(tmp_path, {"scanner": apart}, permutations=0) as con:
        row = con.sql("FROM collapse_check").pl().row(0, named=True)
    assert row["mean_distance"] > 0.5
    assert row["collapse_reason"] == "no_spread"


def test_three_units_always_lie_nearly_on_a_line(tmp_path):
    found = checked(tmp_path, {"few": np.repeat(np.eye(3)[None], 2, axis=0)})
    assert found["effective_rank"].item() <= 2 + 1e-12
    assert found["collapse_reason"].item() is None


def test_min_spread_is_the_users(tmp_path):
    with scanned.warehouse(tmp_path, {"in a cone": PANEL["in a cone"]}, permutations=0) as con:

        def reason(min_spread):
            found = con.sql(f"SELECT collapse_reason FROM collapse_check_at({min_spread})")
            return found.fetchall()[0][0]

        assert reason(0.1) == "no_spread"
        assert reason(0) is None
        for bad in ("-0.1", "NULL", "'nan'::DOUBLE", "'x'", "[0.01]"):
            with pytest.raises(duckdb.Error, match="it is a cosine distance, from 0 to 2"):
                reason(bad)


@pytest.mark.parametrize("table", ["units", "acquisitions"])
def test_a_spread_that_is_not_known_is_no_spread(tmp_path, table):
    """Whose table is missing may have collapsed, and is no measure of others either."""
    encoders = {name: PANEL[name] for name in ("good", "a ResNet", "on a line")}
    with scanned.warehouse(tmp_path / "W", encoders, permutations=0):
        pass
    for path in (tmp_path / "W" / "scores" / table).rglob("encoder=good/*.parquet"):
        path.unlink()
    with croma_sql.connect(tmp_path / "W") as con:
        query = "SELECT encoder, collapse_reason, is_collapse FROM collapse_check ORDER BY ALL"
        assert con.sql(query).fetchall() == [
            ("a ResNet", None, False),  # alone now
            ("good", None, None),
            ("on a line", "low_rank", True),
        ]


def test_encoders_are_compared_where_there_are_as_many_units(tmp_path):
    """Among fewer, units are found again more often."""
    with scanned.warehouse(tmp_path, {"a ResNet": PANEL["a ResNet"]}, permutations=0):
        pass
    for name, there in (("few", 39), ("good", 40)):
        found = PANEL["good"].copy()
        found[:, there:] = np.nan
        croma_sql.import_embeddings(
            tmp_path, scanned.tiles(found), encoder=name, dataset="d", on_bad_vectors="null"
        )
        croma_sql.score_consistency(tmp_path, incomplete="drop", permutations=0)
        with croma_sql.connect(tmp_path) as con:
            found = dict(con.sql("SELECT encoder, collapse_reason FROM collapse_check").fetchall())
        assert found["a ResNet"] == (None if name == "few" else "compact")
