"""Units that lack acquisitions: each pair of acquisitions on the units that both have."""

from itertools import permutations

import naive_consistency as naive
import numpy as np
import polars as pl
import pytest
from acquired import scanned
from polars.testing import assert_frame_equal
from test_consistency_doors import from_python, from_sql

import croma_sql

NAMES = [f"scanner {s}" for s in range(3)]


def each_lacks_one(units=12, complete=()):
    """Vectors (S, N, d), and which of them there are: each unit lacks one of three scanners."""
    vectors = scanned(3, units=units, d=6)
    has = np.ones((3, units), np.bool_)
    has[np.arange(units) % 3, np.arange(units)] = False
    has[:, list(complete)] = True
    return vectors, has


def frame_of(vectors, has):
    cells = np.argwhere(has)
    rows = [vectors[s, p] for s, p in cells]
    return pl.DataFrame(
        {
            "unit": [f"p{p:02}" for _, p in cells],
            "acquisition": [NAMES[s] for s, _ in cells],
            "embedding": pl.Series(rows, dtype=pl.Array(pl.Float64, 6)),
        }
    )  # fmt: skip


def test_each_pair_is_that_of_a_loop_over_the_units_that_both_have():
    vectors, has = each_lacks_one(units=14, complete=(0, 4, 5, 13))
    found = from_python(frame_of(vectors, has), incomplete="pairwise", permutations=0)
    for a, b in permutations(range(3), 2):
        both = np.flatnonzero(has[a] & has[b])
        some = vectors[:, both]
        rank, nearest = naive.retrieval(some, a, b)
        between = {"acquisition_a": NAMES[a], "acquisition_b": NAMES[b]}
        pairs = found.unit_pairs.filter(**between)
        assert pairs["unit"].to_list() == [f"p{p:02}" for p in both]
        assert pairs["rank"].to_list() == rank
        assert pairs["nearest_unit"].to_list() == [f"p{both[q]:02}" for q in nearest]
        assert pairs["distance"].mean() == pytest.approx(naive.d_cos(some, a, b), abs=1e-14)
        profiles = [naive.profile(some, a, b, p) for p in range(len(both))]
        assert pairs["profile_r"].to_list() == pytest.approx(profiles, abs=1e-12)
        (row,) = found.acquisition_pairs.filter(**between).rows(named=True)
        assert row["n_units"] == len(both)
        assert row["mantel_r"] == pytest.approx(naive.mantel(some, a, b), abs=1e-12)
    counts = found.acquisition_pairs["n_units"]
    assert counts.min() < counts.max() < 14


def test_a_pair_is_the_comparison_of_its_two_acquisitions_to_the_last_bit():
    frame = frame_of(*each_lacks_one(complete=(1, 2)))
    options = {"permutations": 99, "seed": 4}
    found = from_python(frame, incomplete="pairwise", **options)
    for a, b in permutations(NAMES, 2):
        two = frame.filter(pl.col("acquisition").is_in([a, b]))
        alone = from_python(two, incomplete="drop", **options)
        for table in ("unit_pairs", "acquisition_pairs"):
            one, other = (
                getattr(tables, table).filter(acquisition_a=a, acquisition_b=b)
                for tables in (found, alone)
            )
            assert_frame_equal(one, other, check_exact=True)


def test_what_is_of_all_acquisitions_is_of_complete_units_and_of_one_of_all_it_has():
    vectors, has = each_lacks_one(complete=(1, 2, 6, 7))
    frame = frame_of(vectors, has)
    found = from_python(frame, incomplete="pairwise", permutations=0)
    complete = from_python(frame, incomplete="drop", permutations=0)
    assert found.n_incomplete == complete.n_incomplete == 8
    assert_frame_equal(found.unit_neighbourhoods, complete.unit_neighbourhoods, check_exact=True)
    last = found.acquisitions.tail(1)
    assert_frame_equal(last, complete.acquisitions.tail(1), check_exact=True)
    for s, name in enumerate(NAMES):
        some = vectors[:, has[s]]
        intra = [naive.intra_distance(some, s, p) for p in range(some.shape[1])]
        units = found.units.filter(acquisition=name)
        assert units["intra_distance"].to_list() == pytest.approx(intra, abs=1e-12)
        (row,) = found.acquisitions.filter(acquisition=name).rows(named=True)
        assert row["n_vectors"] == some.shape[1]
        assert row["mean_distance"] == pytest.approx(naive.mean_distance(some[s]), abs=1e-12)


def test_complete_units_give_the_same_bytes_whatever_is_done_with_others():
    vectors, has = each_lacks_one()
    frame = frame_of(vectors, np.ones_like(has))
    dropped, paired = (from_python(frame, incomplete=one) for one in ("drop", "pairwise"))
    for table in (
        "units",
        "unit_pairs",
        "unit_neighbourhoods",
        "acquisition_pairs",
        "acquisitions",
    ):
        assert_frame_equal(getattr(paired, table), getattr(dropped, table), check_exact=True)


def test_where_every_unit_lacks_a_scanner_pairs_are_compared_and_the_rest_is_null(con):
    frame = frame_of(*each_lacks_one())
    found = from_python(frame, incomplete="pairwise", permutations=9)
    assert found.n_incomplete == 12
    assert found.acquisition_pairs["n_units"].to_list() == [4] * 6
    assert found.acquisition_pairs["mantel_p"].null_count() == 0
    assert len(found.unit_neighbourhoods) == 0
    assert found.acquisitions.row(-1) == (None, 0, None, None)
    con.register("scans", frame)
    arguments = ", incomplete := 'pairwise', permutations := 9"
    sql = from_sql(con, "croma_acquisition_pairs", arguments)
    assert sql["n"].to_list() == [4] * 6
    assert sql["mantel_r"].to_list() == found.acquisition_pairs["mantel_r"].to_list()
    pairs = from_sql(con, "croma_unit_pairs", ", incomplete := 'pairwise'").drop("scope")
    keys = ["unit", "acquisition_a", "acquisition_b"]
    assert_frame_equal(pairs, found.unit_pairs.sort(keys), check_exact=True)


def test_a_pair_with_less_than_two_units_says_how_many_and_is_null(con):
    vectors, has = each_lacks_one()
    has[2] = False
    has[2, 1] = True  # p01 has scanner 0 and no scanner 1
    frame = frame_of(vectors, has)
    found = from_python(frame, incomplete="pairwise", permutations=9)
    counts = {
        (a, b): (n, r) for a, b, n, r, *_ in found.acquisition_pairs.rows()
    }  # fmt: skip
    assert counts[NAMES[0], NAMES[2]] == counts[NAMES[2], NAMES[0]] == (1, None)
    assert counts[NAMES[1], NAMES[2]] == (0, None)
    assert counts[NAMES[0], NAMES[1]][0] == 4
    assert found.units.filter(acquisition=NAMES[2]).rows() == [("p01", NAMES[2], 1, None, None)]
    assert found.acquisitions.filter(acquisition=NAMES[2]).rows() == [(NAMES[2], 1, None, None)]
    con.register("scans", frame)
    sql = from_sql(con, "croma_acquisition_pairs", ", incomplete := 'pairwise'")
    rows = {(row["acquisition_a"], row["acquisition_b"]): row for row in sql.to_dicts()}
    assert len(rows) == 6
    lone = rows[NAMES[0], NAMES[2]]
    assert lone["n"] == 1
    assert {
        value for name, value in lone.items() if name not in ("acquisition_a", "acquisition_b", "n")
    } == {None}


def test_errors_name_the_choice_and_how_many_units_there_are(con):
    frame = frame_of(*each_lacks_one())
    lacking = (
        "12 of 12 units in 'unit' are not under every 'acquisition': 'p00' has no 'scanner 0'; "
        "'p01' has no 'scanner 1'; 'p02' has no 'scanner 2'; .... "
    )
    messages = {
        "error": "Compare complete units only (incomplete = 'drop'), compare each pair of "
        "acquisitions on the units that both have (incomplete = 'pairwise'), or leave acquisitions "
        "out",
        "drop": "That leaves 0 to compare, of the two that it takes; compare each pair of "
        "acquisitions on the units that both have (incomplete = 'pairwise'), or leave acquisitions "
        "out that few units have",
    }
    for incomplete, message in messages.items():
        with pytest.raises(croma_sql.CohortError) as error:
            from_python(frame, incomplete=incomplete)
        assert str(error.value) == lacking + message
    few = "0 units are under every acquisition, and it takes two to compare neighbourhoods; leave "
    with pytest.raises(croma_sql.CohortError, match=few):
        from_python(frame, incomplete="pairwise", depth=3)
    con.register("scans", frame)
    for k in ("", "k := 3, "):
        with pytest.raises(Exception, match=few):
            con.sql(f"FROM croma_iok('scans', {k}incomplete := 'pairwise')").fetchall()
    apart = frame.with_columns(unit=pl.col("unit") + pl.col("acquisition"))
    with pytest.raises(croma_sql.CohortError, match="No two acquisitions have two units in common"):
        from_python(apart, incomplete="pairwise")
