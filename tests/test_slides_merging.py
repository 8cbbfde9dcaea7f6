"""Samples of slides put among those that are there, as a naive merge does; ids that are taken."""

import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from by_slide import bring, places, samples, vectors, write, write_slides

import croma_sql
from croma_sql.errors import SourceError, WarehouseError
from croma_sql.warehouse.data import schemas
from croma_sql.warehouse.parquet import write_table
from croma_sql.warehouse.slides import merging
from croma_sql.warehouse.slides.merging import Arrival, merged
from croma_sql.warehouse.slides.pieces import PLACES


def raises(*parts, error=SourceError):
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, parts)))


def tiles(rng, slides, extra=()):
    """Tiles of slides, some of which have no places."""
    rows = []
    for slide in slides:
        known = rng.random() < 0.7
        for tile in range(rng.integers(1, 9)):
            place = (tile * 2.0, tile * 3.0, "px", 5.0) if known else (None,) * 4
            rows.append((f"{slide}:{tile}", slide, tile, *place, *(f"{c} {tile}" for c in extra)))
    names = [*PLACES.names, *extra]
    columns = zip(*rows, strict=True) if rows else [[] for _ in names]
    table = pa.table(dict(zip(names, map(list, columns), strict=True)))
    return table.cast(pa.schema([*PLACES, *((name, pa.string()) for name in extra)]))


def naive(there, here, replaced, held):
    """One sample after the other."""
    old, new = ({row["sample_id"]: row for row in side.to_pylist()} for side in (there, here))
    names = list(dict.fromkeys([*there.column_names, *here.column_names]))
    rows = []
    for sample in old.keys() | new.keys():
        a, b = old.get(sample, {}), new.get(sample)
        if b is None:
            if a["slide_id"] not in replaced or sample in held:
                rows.append({name: a.get(name) for name in names})
        elif a and a["slide_id"] in replaced:
            rows.append({name: b[name] if name in b else a[name] for name in names})
        else:
            either = {
                name: b.get(name) if b.get(name) is not None else a.get(name) for name in names
            }
            rows.append(either)
    return sorted(rows, key=lambda row: (row["slide_id"], row["tile"]))


@pytest.mark.parametrize("batch", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("seed", range(6))
def test_tiles_are_those_of_a_naive_merge(tmp_path, monkeypatch, seed, batch):
    monkeypatch.setattr(schemas, "BATCH_ROWS", batch)
    monkeypatch.setattr(merging, "BATCH_ROWS", batch)
    rng = np.random.default_rng(seed)
    names = np.array([f"s{i}" for i in range(12)] + ["é", "z"])
    some, others = (sorted(rng.choice(names, rng.integers(0, 10), replace=False)) for _ in "ab")
    there = tiles(rng, some, extra=["label"])
    here = [tiles(rng, part) for part in np.array_split(others, 3)]
    if seed % 2:
        there = there.take(rng.permutation(len(there)))  # somebody has stored them in this order
    replaced = list(rng.choice(names, 5, replace=False))
    held = [row for row in there.column("sample_id").to_pylist() if rng.random() < 0.3]
    files = [tmp_path / f"{i}.parquet" for i in range(4)]
    for path, table in zip(files, [there, *here], strict=True):
        write_table(path, table, {})
    arrival = Arrival(
        "d", "tile", files[1:], files[0], pa.array(replaced, pa.string()), lambda: pa.array(held)
    )
    found = merged(arrival).read_all()
    expected = naive(there, pa.concat_tables(here), replaced, held)
    assert found.column_names == [*PLACES.names, "label"]
    assert found.to_pylist() == expected


def test_row_groups_do_not_depend_on_how_samples_came(root, tmp_path, monkeypatch):
    monkeypatch.setattr("croma_sql.warehouse.parquet.ROW_GROUP", 50)
    write_slides(tmp_path / "in", [40, 50, 30, 70])
    bring(root, tmp_path / "in")
    first = (root / "samples/d.parquet").read_bytes()
    for rows in (7, 64, 1000):
        monkeypatch.setattr(schemas, "BATCH_ROWS", rows)
        monkeypatch.setattr(merging, "BATCH_ROWS", rows)
        bring(root, tmp_path / "in", encoder=f"e{rows}")
        assert (root / "samples/d.parquet").read_bytes() == first


def test_samples_that_somebody_has_put_in_another_order(root, tmp_path):
    write_slides(tmp_path / "in", [40, 50, 30])
    bring(root, tmp_path / "in")
    known = samples(root)
    labelled = known.with_columns(label=pl.col("slide_id")).sample(
        fraction=1.0, shuffle=True, seed=0
    )
    croma_sql.import_samples(root, labelled, dataset="d")
    write(tmp_path / "in", "s0005", 5)
    bring(root, tmp_path / "in")
    found = samples(root)
    assert found["sample_id"].to_list() == [
        *known.filter(slide_id="s000")["sample_id"],
        *(f"s0005:{i}" for i in range(5)),
        *known.filter(pl.col("slide_id") > "s0005")["sample_id"],
    ]
    assert (
        found.filter(pl.col("slide_id") != "s0005")
        .filter(pl.col("label") != pl.col("slide_id"))
        .is_empty()
    )
    assert croma_sql.check(root) == []


def test_ids_of_a_whole_that_are_those_of_tiles(root, tmp_path):
    for ids in (["s:0", "t:7"], ["s:00", "s:9", "t", "s:x", ":0", "r:1"]):
        frame = pl.DataFrame({"sample_id": ids, "embedding": vectors("whole", len(ids)).tolist()})
        bring(root, frame, encoder="w", dataset=f"whole {len(ids)}",
              samples=frame.select("sample_id"))  # fmt: skip
    write(tmp_path / "in", "s", 9)
    write(tmp_path / "in", "t", 7)
    with raises("tiles of 1 slide(s) are already in dataset 'whole 2': 's'", error=WarehouseError):
        bring(root, tmp_path / "in")
    assert not (root / "embeddings/encoder=e").exists()  # nothing has been read
    (root / "samples/whole 2.parquet".replace(" ", "%20")).unlink()
    assert bring(root, tmp_path / "in").n == 16


def test_tiles_of_a_slide_that_is_shared_keep_their_places(root, tmp_path):
    """A file that has changed under one encoder must still fit the other."""
    for encoder in "ef":
        write(tmp_path / encoder, "s", 20, at=1)
        bring(root, tmp_path / encoder, encoder=encoder)
    write(tmp_path / "e", "s", 20, vectors("new", 20), coords=False, at=2)
    bring(root, tmp_path / "e")
    assert np.array_equal(samples(root).select("x", "y").to_numpy(), places("s", 20).astype(float))
    write(tmp_path / "e", "s", 20, coords=places("s", 20)[::-1], at=3)
    with raises("tiles of slide 's' lie elsewhere"):
        bring(root, tmp_path / "e")
    write(tmp_path / "e", "s", 21, at=4)
    with raises("'s' has 21 here and 20 there"):
        bring(root, tmp_path / "e")


def test_a_column_of_another_type(root, tmp_path):
    write(tmp_path / "in", "s", 3)
    bring(root, tmp_path / "in")
    known = samples(root).with_columns(x=pl.col("x").cast(pl.String))
    croma_sql.import_samples(root, known, dataset="d")
    write(tmp_path / "in", "t", 3)
    with raises("a column of the samples is of another type in another file", "x"):
        bring(root, tmp_path / "in")
