"""The demo is what its description says."""

import polars as pl
import pytest

import croma_sql
from croma_sql.demo import ENCODERS, build, queries


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    root = tmp_path_factory.mktemp("demo") / "warehouse"
    build(root)
    return croma_sql.connect(root)


def test_every_place_is_seen_by_three_scanners(demo):
    samples = demo.sql("FROM samples").pl()
    assert len(samples) == 768
    by_place = samples.group_by("place").agg(
        pl.col("scanner").n_unique(), pl.col("dab", "nuclei", "region", "zone").n_unique()
    )
    assert by_place.drop("place").unique().rows() == [(3, 1, 1, 1, 1)]
    assert samples["place"].n_unique() == 256
    assert samples.null_count().sum_horizontal().item() == 0


def test_every_encoder_is_scored_on_both_benchmarks(demo):
    summary = demo.sql("FROM encoder_summary").pl()
    assert sorted(set(summary["encoder"])) == sorted(ENCODERS)
    assert len(summary) == 6
    assert (summary["n"] == 768).all()
    assert (summary["n_undefined"] == 0).all()


def test_margins_agree_with_the_reference_package(demo):
    from cohorts import Cohort
    from test_croma_agreement import reference

    frame = demo.sql("""
        SELECT sample_id, embedding, label, confounder, group_id, margin
        FROM margins JOIN embeddings USING (encoder, sample_id)
        WHERE encoder = 'efficientnet_lite0' AND benchmark = 'dab_across_scanners'
    """).pl()
    columns = (frame[c].to_numpy() for c in ("label", "confounder", "group_id", "sample_id"))
    cohort = Cohort(frame["embedding"].list.to_array(1280).to_numpy(), *columns)
    expected = reference(cohort, 5).sample_values_aligned
    assert frame["margin"].to_numpy() == pytest.approx(expected, abs=1e-9)


def test_its_queries_find_the_scanner_and_zone_that_are_fragile(demo):
    answers = [demo.sql(query).pl() for _, query in queries()]
    assert [len(answer) for answer in answers] == [6, 18, 5, 3]
    worst = answers[2].row(0, named=True)
    assert (worst["scanner"], worst["zone"]) == ("warm_soft", "border")
    assert worst["f0"] > 0.7


def test_it_leaves_a_study_alone(tmp_path):
    croma_sql.import_samples(tmp_path, pl.DataFrame({"sample_id": ["a"]}), dataset="mine")
    with pytest.raises(croma_sql.CromaSqlError, match="is a warehouse of 'mine'"):
        build(tmp_path)


def test_a_colour_histogram_is_not_collapsed_and_yet_loses_places(demo):
    """Scanners move all of its places alike: geometry stays, and hardly one is found again."""
    name, query = list(queries())[3]
    assert "same place" in name
    found = {row["encoder"]: row for row in demo.sql(query).pl().rows(named=True)}
    assert set(found) == set(ENCODERS)
    histogram = found["rgb_histogram"]
    assert histogram["mr_1nn"] < 0.1 < 0.3 < found["efficientnet_lite0"]["mr_1nn"]
    assert histogram["d_cos"] == min(row["d_cos"] for row in found.values())
    assert histogram["mantel_r"] > 0.99
    assert not any(row["is_collapse"] for row in found.values())
