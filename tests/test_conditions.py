"""Subgroups are conditions that SQL understands, for every type of column."""

import math

import duckdb
import numpy as np
import polars as pl
import pytest
from planted import cohort

import croma_sql
from croma_sql.statistics.attributes import read_attribute

AWKWARD = ["it's", 'a "quoted" one', "Łódź \U0001f52c", "", "a; DROP TABLE frame; --", None]


def awkward_frame(seed):
    rng = np.random.default_rng(seed)
    n = 1200
    margin = rng.standard_normal(n)
    margin[rng.random(n) < 0.05] = math.nan
    return pl.DataFrame(
        {
            "margin": margin,
            "group_id": rng.integers(200, size=n),
            "select": np.array(AWKWARD, object)[rng.integers(6, size=n)].tolist(),
            'site of "origin"': rng.integers(1, 4, size=n),
            "Flag": np.array([True, False, None], object)[rng.integers(3, size=n)].tolist(),
            "area": np.where(rng.random(n) < 0.1, np.nan, rng.random(n)).astype(np.float32),
            "dose": np.array([0.1, 1e-7, 1e30, math.nan, math.inf, -0.25])[rng.integers(6, size=n)],
            "rounded": rng.integers(10, size=n).astype(np.float32) / 10,
            "day": pl.Series(rng.integers(19_000, 19_004, size=n)).cast(pl.Date),
            "at": pl.Series(1_700_000_000_123_456 + rng.integers(10**12, size=n)).cast(
                pl.Datetime("us")
            ),
            "big": rng.integers(2**62, size=n) + 2**60,
            "kind": pl.Series(np.array(["x", "y"])[rng.integers(2, size=n)], dtype=pl.Categorical),
        }
    )


def numbers_of_every_type(seed):
    """Few values and many, clipped ones, times with fractions of a second, as SQL reads them too.

    Some float32 have an exponent, some numbers more digits than a decimal of SQL rounds well.
    """
    rng = np.random.default_rng(seed)
    n = 1200
    columns = {"margin": rng.standard_normal(n), "group_id": rng.integers(200, size=n)}
    for dtype in (np.int16, np.uint16, np.uint32, np.int64, np.uint64, np.int8):
        limits = np.iinfo(dtype)
        drawn = rng.integers(limits.min, limits.max, n, dtype, endpoint=True)
        columns[dtype.__name__] = np.where(rng.random(n) < 0.3, limits.max, drawn)
    tiny = 10.0 ** -rng.integers(5, 30, size=4)
    for dtype in (np.float32, np.float64):
        name, scale = dtype.__name__, 10.0 ** rng.integers(-8, 8)
        columns[f"{name}_few"] = (tiny * rng.random(4)).astype(dtype)[rng.integers(4, size=n)]
        columns[f"{name}_long"] = (100 * rng.random(4)).astype(dtype)[rng.integers(4, size=n)]
        columns[f"{name}_many"] = (scale * rng.standard_normal(n)).astype(dtype)
        columns[f"{name}_close"] = (1 + 1e-5 * rng.random(n)).astype(dtype)
    eight = 8 * 3600 * 10**9
    columns["time_few"] = pl.Series(eight + 250_000_000 * rng.integers(4, size=n)).cast(pl.Time)
    columns["time_many"] = pl.Series(rng.integers(10**9, size=n) * 1000).cast(pl.Time)
    columns["time_ns"] = pl.Series(rng.integers(4, size=n)).cast(pl.Time)
    for unit in ("ms", "us", "ns"):
        columns[f"at_{unit}"] = pl.Series(rng.integers(4, size=n)).cast(pl.Datetime(unit, "UTC"))
    big = pl.Series(rng.integers(4, size=n)).cast(pl.Decimal(38, 0)) + 10**17
    columns["decimal_few"] = big
    columns["decimal_many"] = big * 100 + pl.Series(rng.integers(100, size=n))
    columns["price"] = pl.Series(rng.integers(-(10**6), 10**6, n)).cast(pl.Decimal(20, 3)) / 1000
    return pl.DataFrame(columns)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("frame_of", [awkward_frame, numbers_of_every_type])
def test_every_subgroup_is_a_condition_that_sql_understands(frame_of, seed):
    frame = frame_of(seed)
    names = frame.columns[2:]
    found = croma_sql.subgroups(frame, names, max_attributes=2, min_size=15, top=10**6)
    assert {name for names in found["attributes"] for name in names} == set(names)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE frame AS FROM frame")
        for row in found.iter_rows(named=True):
            counted = con.sql(
                "SELECT count(*) FILTER (isfinite(margin)), count(*) FILTER (isnan(margin)), "
                f"median(margin) FILTER (isfinite(margin)) FROM frame WHERE {row['subgroup']}"
            ).fetchall()
            assert counted[0] == (row["n"], row["n_undefined"], pytest.approx(row["croma"]))


@pytest.mark.parametrize("dtype", [pl.Float16, pl.Int128])
def test_conditions_hold_for_types_that_sql_reads_as_another(tmp_path, dtype):
    """A float of 16 bits through Parquet, a whole number of 128 as the HUGEINT that it is there."""
    rng = np.random.default_rng(0)
    numbers = pl.Series("x", rng.standard_normal(1000)).cast(pl.Float16)
    if dtype == pl.Int128:
        big = [10**20 + place for place in rng.integers(40, size=1000).tolist()]
        numbers = pl.Series("x", big, dtype)
    read = read_attribute(numbers, bins=5)
    with duckdb.connect() as con:
        if dtype == pl.Float16:
            numbers.to_frame().write_parquet(tmp_path / "x.parquet")
            con.execute(
                "CREATE TABLE frame AS FROM read_parquet($path)",
                {"path": str(tmp_path / "x.parquet")},
            )
        else:
            con.register("text", numbers.cast(pl.String).to_frame())
            con.execute("CREATE TABLE frame AS SELECT x::HUGEINT AS x FROM text")
        counted = [con.sql(f"FROM frame WHERE {each}").shape[0] for each in read.conditions]
    assert counted == np.bincount(read.code, minlength=len(read.values)).tolist()
    assert min(counted[:-1]) > 150


def test_names_that_differ_by_capitals_only_are_refused():
    frame = cohort(0, slides=20).with_columns(Zone=pl.lit("x"))
    message = "columns 'zone', 'Zone' differ by capitals only.* rename all but one"
    for other in (frame, frame.lazy(), frame.to_arrow(), frame.to_pandas()):
        with pytest.raises(croma_sql.StatisticsError, match=message):
            croma_sql.subgroups(other, "zone")
    assert len(croma_sql.subgroups(frame, "focus"))
    two = frame.rename({"zone": "ö", "Zone": "Ö"})  # to SQL as well
    assert len(croma_sql.subgroups(two, "ö"))
