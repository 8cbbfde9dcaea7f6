"""Consistency across acquisitions from Python and from SQL: the same bytes, and the same errors."""

import naive_consistency as naive
import numpy as np
import polars as pl
import pytest
from acquired import samples
from polars.testing import assert_frame_equal

import croma_sql

COLUMNS = ("embedding", "unit", "acquisition")
KEYS = {
    "croma_unit_pairs": ["unit", "acquisition_a", "acquisition_b"],
    "croma_units": ["unit", "acquisition"],
    "croma_acquisitions": ["acquisition"],
}


def from_python(frame, **options):
    return croma_sql.consistency(*(frame[name] for name in COLUMNS), **options)


def from_sql(con, macro, arguments=""):
    found = con.sql(f"FROM {macro}('scans'{arguments})").pl()
    return found.sort([*KEYS.get(macro, found.columns[:2]), "scope"])


def both(con, frame, **options):
    """Tables of the two doors beside each other."""
    con.register("scans", frame)
    found = from_python(frame, permutations=0, **options)
    tables = (found.unit_pairs, found.units, found.acquisitions)
    for (macro, keys), table in zip(KEYS.items(), tables, strict=True):
        yield from_sql(con, macro).drop("scope"), table.sort(keys)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sql_gives_the_same_bytes(con, dtype):
    frame = samples(0, dtype=dtype)
    for sql, python in both(con, frame):
        assert_frame_equal(sql, python, check_exact=True)
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=5)
    for (sql, _), (_, python) in zip(both(con, shuffled), both(con, frame), strict=True):
        assert_frame_equal(sql, python, check_exact=True)


def test_pairs_of_acquisitions_are_means_over_units(con):
    frame = samples(1, units=15)
    con.register("scans", frame)
    found = from_python(frame, seed=3, permutations=99)
    sql = from_sql(con, "croma_acquisition_pairs", ", seed := 3, permutations := 99")
    pairs = found.unit_pairs.group_by("acquisition_a", "acquisition_b").agg(
        n=pl.len().cast(pl.Int64),
        d_cos=pl.col("distance").mean(),
        mr_1nn=(pl.col("rank") == 1).mean(),
        top_3=(pl.col("rank") <= 3).mean(),
        top_5=(pl.col("rank") <= 5).mean(),
        top_10=(pl.col("rank") <= 10).mean(),
        profile_r=pl.col("profile_r").mean(),
    )
    pairs = pairs.join(found.acquisition_pairs, on=["acquisition_a", "acquisition_b"])
    expected = pairs.drop("permutations").sort("acquisition_a", "acquisition_b")
    assert_frame_equal(sql.select(expected.columns), expected, abs_tol=1e-14)
    assert (sql["mr_1nn"] != sql["mr_1nn_symmetric"]).any()
    back = dict(
        zip(sql.select("acquisition_a", "acquisition_b").rows(), sql["mr_1nn"], strict=True)
    )
    for a, b, there, mean in sql.select(
        "acquisition_a", "acquisition_b", "mr_1nn", "mr_1nn_symmetric"
    ).rows():
        assert mean == pytest.approx((there + back[b, a]) / 2)
    assert_frame_equal(
        from_sql(con, "croma_acquisition_pairs", ", permutations := 0").drop("mantel_p"),
        sql.drop("mantel_p"),
        check_exact=True,
    )


def test_iok_of_every_k_or_some(con):
    frame = samples(2, units=9)
    con.register("scans", frame)
    found = from_python(frame).unit_neighbourhoods
    every = con.sql("FROM croma_iok('scans') ORDER BY unit, k")
    assert [(unit, k, n) for unit, k, n, *_ in every.fetchall()] == [
        (unit, k, sum(place <= k for place in places))
        for unit, places in found.select("unit", "shared_at").rows()
        for k in range(1, 9)
    ]
    assert all(iok == n / k for _, k, n, iok, _ in every.fetchall())
    some = "SELECT unit, k, iok FROM ({}) ORDER BY ALL"
    of_every = con.sql(some.format("FROM croma_iok('scans') WHERE k IN (1, 5)")).fetchall()
    assert con.sql(some.format("FROM croma_iok('scans', k := [1, 5])")).fetchall() == of_every
    assert len(con.sql("FROM croma_iok('scans', k := 5)").fetchall()) == 9


def test_each_scope_is_compared_by_itself(con):
    frames = [samples(seed, units=5 + seed, d=4 + seed) for seed in range(3)]
    every = pl.concat(
        frame.with_columns(pl.col("embedding").cast(pl.List(pl.Float32)), encoder=pl.lit(f"e{i}"))
        for i, frame in enumerate(frames)
    ).sample(fraction=1.0, shuffle=True, seed=0)
    con.register("scans", every)
    found = from_sql(con, "croma_unit_pairs", ", \"by\" := 'encoder'")
    for i, frame in enumerate(frames):
        assert_frame_equal(
            found.filter(scope=f"e{i}").drop("scope"),
            from_python(frame).unit_pairs.sort(KEYS["croma_unit_pairs"]),
            check_exact=True,
        )


def test_vectors_are_pooled_as_they_are():
    """The mean of samples, not of their directions, is the vector of a unit."""
    frame = samples(3, units=6, dtype=np.float64)
    means = frame.group_by("unit", "acquisition").agg(
        pl.col("embedding").map_batches(
            lambda vectors: pl.Series([vectors.to_numpy().mean(axis=0)]), returns_scalar=True
        ),
        pl.len(),
    )
    means = means.sort("acquisition", "unit")
    units = np.stack(means["embedding"].to_list()).reshape(3, 6, -1)
    found = from_python(frame)
    assert found.units["n_samples"].to_list() == means["len"].to_list()
    own = np.diag(naive.distances(units[0], units[2])).astype(float)
    pairs = found.unit_pairs.filter(acquisition_a="scanner 0", acquisition_b="scanner 2")
    assert pairs["distance"].to_numpy() == pytest.approx(own, rel=1e-12)


def test_names_keep_their_types_and_are_ordered_as_text(con):
    frame = samples(4, units=11).with_columns(
        pl.col("unit").str.slice(1).cast(pl.Int16), pl.col("acquisition") == "scanner 0"
    )
    found = from_python(frame)
    assert found.units["unit"].unique(maintain_order=True).to_list() == [0, 1, 10, *range(2, 10)]
    assert found.units.schema["unit"] == pl.Int16
    assert found.unit_pairs.schema["nearest_unit"] == pl.Int16
    assert found.acquisition_pairs["acquisition_a"].to_list() == [False, True]
    for sql, python in both(con, frame):
        assert_frame_equal(sql, python, check_exact=True)


def test_columns_may_have_any_name(con):
    frame = samples(5)
    con.register("scans", frame)
    expected = from_sql(con, "croma_units")
    odd = frame.rename({"unit": "the 'slide'", "acquisition": 'scan"ner', "embedding": "vec'tor"})
    con.register("scans", odd.with_columns(unit=pl.lit(None)))
    arguments = ", unit := 'the ''slide''', acquisition := 'scan\"ner', embedding := 'vec''tor'"
    assert_frame_equal(from_sql(con, "croma_units", arguments), expected, check_exact=True)


@pytest.mark.parametrize("kind", ["numpy", "lists", "arrow", "float16", "lengths"])
def test_vectors_may_come_in_any_form(kind):
    frame = samples(6)
    vectors = frame["embedding"].to_numpy()
    given = {
        "numpy": vectors,
        "lists": vectors.astype(float).tolist(),
        "arrow": frame["embedding"].to_arrow(),
        "float16": vectors.astype(np.float16),
        "lengths": vectors * 8,
    }[kind]
    found = croma_sql.consistency(given, frame["unit"], frame["acquisition"].to_list())
    tolerance = {"rel_tol": 1e-2} if kind == "float16" else {"check_exact": True}
    assert_frame_equal(found.units, from_python(frame).units, **tolerance)


def without(frame, unit, acquisition):
    return frame.filter(~((pl.col("unit") == unit) & (pl.col("acquisition") == acquisition)))


def test_incomplete_units_are_told_or_left_out(con):
    frame = samples(7)
    gaps = without(without(without(frame, "p3", "scanner 1"), "p5", "scanner 0"), "p5", "scanner 2")
    told = (
        "2 of 12 units in 'unit' are not under every 'acquisition': 'p3' has no 'scanner 1'; "
        "'p5' has no 'scanner 0', 'scanner 2'"
    )
    with pytest.raises(croma_sql.CohortError, match=told):
        from_python(gaps)
    complete = from_python(frame.filter(~pl.col("unit").is_in(["p3", "p5"])))
    found = from_python(gaps, incomplete="drop")
    assert (found.n_incomplete, complete.n_incomplete) == (2, 0)
    assert_frame_equal(found.unit_pairs, complete.unit_pairs, check_exact=True)
    con.register("scans", gaps)
    with pytest.raises(Exception, match=told):
        from_sql(con, "croma_units")
    assert_frame_equal(
        from_sql(con, "croma_units", ", incomplete := 'drop'").drop("scope"),
        complete.units.sort("unit", "acquisition"),
        check_exact=True,
    )


def test_a_unit_loses_an_acquisition_with_its_last_good_vector(con):
    frame = samples(8, most=1)
    bad = pl.when((pl.col("unit") == "p2") & (pl.col("acquisition") == "scanner 1"))
    for vector in (None, [0.0] * 8, [np.nan] * 8):
        spoilt = frame.with_columns(
            bad.then(pl.lit(vector, frame.schema["embedding"]))
            .otherwise("embedding")
            .alias("embedding")
        )
        con.register("scans", spoilt)
        with pytest.raises(croma_sql.CohortError, match=r"1 of 36 .* \('p2' under 'scanner 1'\)"):
            from_python(spoilt)
        with pytest.raises(croma_sql.CohortError, match="'p2' has no 'scanner 1'"):
            from_python(spoilt, on_bad_vectors="drop")
        found = from_python(spoilt, on_bad_vectors="drop", incomplete="drop")
        assert found.n_incomplete == 1
        arguments = ", on_bad_vectors := 'drop', incomplete := 'drop'"
        assert len(from_sql(con, "croma_units", arguments)) == len(found.units) == 33


def test_no_rows_give_no_rows(con):
    con.register("scans", samples(12).clear())
    for macro in (*KEYS, "croma_iok", "croma_acquisition_pairs"):
        assert con.sql(f"FROM {macro}('scans')").fetchall() == []
