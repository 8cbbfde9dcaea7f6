"""Tiles for QuPath: rectangles where they belong, coloured by margin, as GeoJSON has it."""

import json
import math
import shutil
import unicodedata
import uuid
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest
from slides import COLUMNS, ROWS, SLIDES, built, contents, tiles
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.exports.colours import STOPS, band, colour
from croma_sql.exports.geojson import _file_names

NAMES = {
    "003": "003.geojson", 'S/1 "a" é': "S%2F1 %22a%22 é.geojson", "it's": "it's.geojson",
    "s4": "s4.geojson",
}  # fmt: skip


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    return built(tmp_path_factory.mktemp("geojson") / "W", tiles())


def again(scored, folder, samples):
    """The same margins of tiles of which other things are known."""
    root = shutil.copytree(scored, folder / "W")
    croma_sql.import_samples(root, samples.drop("embedding"), dataset="d")
    return root


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


def read(path):
    """A feature collection, after RFC 8259, RFC 7946 and what QuPath makes of it."""
    found = json.loads(path.read_bytes().decode("utf-8"), parse_constant=refuse)
    assert found["type"] == "FeatureCollection"
    for feature in found["features"]:
        check_feature(feature)
    assert len({feature["id"] for feature in found["features"]}) == len(found["features"])
    return found


def check_feature(feature):
    assert feature.keys() == {"type", "id", "geometry", "properties"}
    assert feature["type"] == "Feature"
    assert str(uuid.UUID(feature["id"])) == feature["id"]
    assert feature["geometry"]["type"] == "Polygon"
    (ring,) = feature["geometry"]["coordinates"]
    assert (len(ring), ring[0]) == (5, ring[-1])
    area = sum(x * v - u * y for (x, y), (u, v) in pairwise(ring)) / 2
    assert area > 0  # counter-clockwise, as RFC 7946 counts
    for number in (number for corner in ring for number in corner):
        assert isinstance(number, int) or number != int(number)
    about = feature["properties"]
    assert (about["objectType"], about["isLocked"]) == ("tile", True)
    assert about["classification"].keys() == {"name", "color"}
    assert not set(about["classification"]["name"]) & set(":\n\r")  # which QuPath has no class of
    assert about["classification"]["name"].isascii()
    for shade in (about["color"], about["classification"]["color"]):
        assert len(shade) == 3
        assert all(isinstance(one, int) and 0 <= one <= 255 for one in shade)
    assert all(isinstance(one, float) for one in about["measurements"].values())


def corners(feature):
    (ring,) = feature["geometry"]["coordinates"]
    return (*ring[0], *ring[2])


# What is drawn


def test_tiles_lie_where_they_belong_with_their_margins(scored, tmp_path):
    shares = []
    drawn = croma_sql.export_geojson(scored, tmp_path / "out", on_progress=shares.append)
    assert {slide: path.name for slide, path in drawn.files.items()} == NAMES
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(NAMES.values())
    assert (drawn.n, drawn.n_undefined) == (120, 1)
    assert shares == [0.25, 0.5, 0.75, 1.0]
    margins = {row["sample_id"]: row for row in croma_sql.read_margins(scored).to_dicts()}
    seen = set()
    for slide, path in drawn.files.items():
        found = read(path)
        assert found["croma_sql"] == {
            "benchmark": "b", "encoder": "e", "subset": None, "m": 5, "slide_id": slide
        }  # fmt: skip
        assert len(found["features"]) == COLUMNS * ROWS
        for feature in found["features"]:
            about = feature["properties"]
            row = margins[about["name"]]
            assert row["slide_id"] == slide
            at = row["x"], row["y"], row["x"] + 256, row["y"] + 256
            assert corners(feature) == at
            names = [name for name in ("margin", "d_so", "d_os") if row[name] is not None]
            assert about["measurements"] == {name: row[name] for name in names}
            if row["margin"] is None:
                assert about["classification"]["name"] == "undefined (bad_vector)"
                assert about["color"] == about["classification"]["color"] == [128, 128, 128]
            else:
                name, shade = band(row["margin"])
                assert about["classification"] == {"name": name, "color": list(shade)}
                assert about["color"] == list(colour(row["margin"]))
            seen.add(about["name"])
    assert seen == margins.keys()


def test_again_is_the_same_and_other_margins_are_others(scored, tmp_path):
    for name, m in (("a", 5), ("b", 5), ("c", 3)):
        croma_sql.export_geojson(scored, tmp_path / name, m=m, slides=["003"])
    found = [contents(tmp_path / name) for name in "abc"]
    assert found[0] == found[1]
    assert found[0] != found[2]
    ids = [{one["id"] for one in read(tmp_path / n / "003.geojson")["features"]} for n in "ac"]
    assert not ids[0] & ids[1]


def test_files_of_slides_are_apart_on_any_file_system():
    """Also where case or the way an accent is written is no difference, and some names devices."""
    slides = ["S1", "s1", "S2", "\u00e9", "e\u0301", "..", "CON", "nul", "com1.a", "conch", "%53"]
    names = _file_names(slides)
    assert list(names) == slides
    assert [unquote(name.removesuffix(".geojson")) for name in names.values()] == slides
    assert len({unicodedata.normalize("NFC", name).lower() for name in names.values()}) == 11
    assert {slide: names[slide] for slide in ("S1", "s1", "S2", "CON", "conch")} == {
        "S1": "%531.geojson", "s1": "s1.geojson", "S2": "S2.geojson", "CON": "%43ON.geojson",
        "conch": "conch.geojson",
    }  # fmt: skip


def test_one_slide_in_one_file(scored, tmp_path):
    path = tmp_path / "new" / "mine.GeoJSON"
    drawn = croma_sql.export_geojson(scored, path, slides=["it's"])
    assert drawn.files == {"it's": path}
    assert len(read(path)["features"]) == COLUMNS * ROWS


@pytest.mark.parametrize("mpp", [0.2528, "Pixel size"])
def test_micrometres_are_divided_by_those_of_a_pixel(scored, tmp_path, mpp):
    """STAMP's tiles of 256 um: neighbours still share their edges, to the last digit."""
    frame = tiles(unit="um").with_columns(
        pl.when(pl.col("slide_id") == "s4").then(0.5).otherwise(0.2528).alias("Pixel size")
    )
    root = again(scored, tmp_path, frame)
    drawn = croma_sql.export_geojson(root, tmp_path / "out", mpp=mpp)
    for slide, path in drawn.files.items():
        scale = 0.5 if slide == "s4" and mpp == "Pixel size" else 0.2528
        found = [corners(feature) for feature in read(path)["features"]]
        size = 256 / scale
        assert min(left for left, *_ in found) == round(1000.5 / scale, 2)
        assert max(bottom for *_, bottom in found) == round(ROWS * size, 2)
        for left, top, right, bottom in found:
            assert (right - left, bottom - top) == (pytest.approx(size, abs=0.011),) * 2
        lefts, rights = ({one[side] for one in found} for side in (0, 2))
        assert len(lefts & rights) == COLUMNS - 1


def test_numbers_may_come_as_text_and_sizes_from_the_command(scored, tmp_path):
    """CLAM keeps no size; a slide called 1, and columns that are whole numbers or capitals."""
    frame = tiles().with_columns(
        pl.col("x").cast(pl.Int32), pl.col("y").cast(pl.String), tile_size=None,
        slide_id=pl.col("slide_id").rank("dense").cast(pl.Int64),
    ).rename({"x": "X"})  # fmt: skip
    root = again(scored, tmp_path, frame)
    with pytest.raises(
        croma_sql.WarehouseError, match=r"120 tiles of slide '1', '2', '3', \.\.\. "
    ):
        croma_sql.export_geojson(root, tmp_path / "out")
    drawn = croma_sql.export_geojson(root, tmp_path / "out", tile_size=224)
    assert list(drawn.files) == ["1", "2", "3", "4"]
    for feature in read(drawn.files["1"])["features"]:
        left, top, right, bottom = corners(feature)
        assert (right - left, bottom - top) == (224, 224)


BOUNDS = {"003": (32_123, 45_678), 'S/1 "a" é': (0, 0), "it's": (7.5, 12), "s4": (-3, 100_001)}


def bounded(frame, bounds=BOUNDS, dtype=pl.Float64):
    """The same tiles, of slides whose region that is not empty begins there."""
    offset = pl.col("slide_id").replace_strict
    x, y = (
        {slide: None if at[axis] is None else float(at[axis]) for slide, at in bounds.items()}
        for axis in (0, 1)
    )
    return frame.with_columns(
        bounds_x=offset(x, return_dtype=pl.Float64).cast(dtype),
        bounds_y=offset(y, return_dtype=pl.Float64).cast(dtype),
    )


@pytest.mark.parametrize("dtype", [pl.Float64, pl.String])
def test_tiles_of_a_slide_that_qupath_crops_are_counted_from_its_bounds(scored, tmp_path, dtype):
    """OpenSlide's bounds are where the region begins that QuPath shows: there it has 0, 0."""
    root = again(scored, tmp_path, bounded(tiles(), dtype=dtype))
    drawn = croma_sql.export_geojson(root, tmp_path / "out", offset_from=("bounds_x", "Bounds_Y"))
    for slide, path in drawn.files.items():
        x, y = BOUNDS[slide]
        found = {one["properties"]["name"]: corners(one) for one in read(path)["features"]}
        assert found[f"{slide}:8"] == (1512.5 - x, 256 - y, 1768.5 - x, 512 - y)
    asked = ["export", "geojson", str(root), "--output", str(tmp_path / "out2"), "--offset-from"]
    said = CliRunner().invoke(app, [*asked, "bounds_x, bounds_y"])
    assert (said.exit_code, said.stderr) == (0, "")
    assert contents(tmp_path / "out2") == contents(tmp_path / "out")


def test_bounds_are_pixels_where_coordinates_are_micrometres(scored, tmp_path):
    root = again(scored, tmp_path, bounded(tiles(unit="um")))
    (path,) = croma_sql.export_geojson(
        root, tmp_path / "out", slides="003", mpp=0.5, offset_from=("bounds_x", "bounds_y")
    ).files.values()
    first = min(corners(one) for one in read(path)["features"])
    assert first == (2001 - 32_123, -45_678, 2513 - 32_123, 512 - 45_678)


@pytest.mark.parametrize(
    ("frame", "names", "message"),
    [
        (tiles(), ("bounds_x", "bounds_y"), r"no attribute 'bounds_x', 'bounds_y'\. Join the boun"),
        (bounded(tiles(), BOUNDS | {"003": (None, 1), "s4": (1, None)}), ("bounds_x", "bounds_y"),
         "60 tiles of slide '003', 's4' have no offset in the attributes that --offset-from names"),
        (tiles(), ("x", "y"), "120 tiles of slide '003', .* have more than one offset"),
        (bounded(tiles()).with_columns(bounds_x=pl.lit("none")), ("bounds_x", "bounds_y"),
         "^'bounds_x' of tiles holds 'none', which is no number"),
        (tiles(), ("bounds_x",), r"offset_from is \('bounds_x',\); it names two attributes"),
        (tiles(), ("bounds_x", ""), "it names two attributes of the slides, of x and of y"),
        (tiles(), "xy", "offset_from is 'xy'; it names two attributes of the slides, of x and of"),
    ],
)  # fmt: skip
def test_bounds_that_are_none_are_refused(scored, tmp_path, frame, names, message):
    root = again(scored, tmp_path, frame)
    with pytest.raises(croma_sql.CromaSqlError, match=message):
        croma_sql.export_geojson(root, tmp_path / "out", offset_from=names)
    assert not (tmp_path / "out").exists()


def test_margins_are_told_apart_whatever_ones_sight():
    """Orange below 0 and blue above, each darker the further; a margin of 0 is fragile."""
    light = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in STOPS]
    assert light[:6] == sorted(light[:6])
    assert light[5:] == sorted(light[5:], reverse=True)
    assert all(r > b for r, _, b in STOPS[:5])
    assert all(b > r for r, _, b in STOPS[6:])
    at = np.linspace(-1, 1, 2001)
    shades = np.array([colour(one) for one in at])
    assert np.abs(np.diff(shades, axis=0)).max() <= 2
    assert (shades[:501] == STOPS[0]).all()
    assert (shades[1500:] == STOPS[-1]).all()
    names = [band(one)[0] for one in (-1.0, -0.25, -0.2, 0.0, 1e-9, 0.25, 0.26)]
    assert [name.partition(" (")[0] for name in names] == [
        "very fragile", "very fragile", "fragile", "fragile", "robust", "robust", "very robust"
    ]  # fmt: skip


# What is refused


def changed(column, value):
    """Let two tiles of slide 003 differ in one column."""
    where = pl.col("sample_id").is_in(["003:0", "003:4"])
    return tiles().with_columns(pl.when(where).then(value).otherwise(column).alias(column))


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (tiles().drop("x", "y", "coord_unit"), {}, "samples have no attribute 'x', 'y', 'coord_u"),
        (changed("x", None), {}, "2 tiles of slide '003' have no coordinates. Import them "),
        (changed("coord_unit", pl.lit("mm")), {}, "in neither 'px' nor 'um'. Correct their "),
        (tiles().with_columns(y=pl.lit("left")), {},
         "^'y' of tiles holds 'left', which is no number. Correct it"),
        (changed("tile_size", pl.lit("big")), {}, "^'tile_size' of tiles holds 'big', which is"),
        (changed("coord_unit", pl.lit("um")).with_columns(s=pl.lit("0.5 um")), {"mpp": "s"},
         "^'s' of tiles holds '0.5 um', which is no number"),
        (changed("tile_size", 0), {"tile_size": 9}, "2 tiles of slide '003' have no tile_size. G"),
        (changed("slide_id", None), {}, "2 samples have no slide_id. Name slides with --slide"),
        (changed("coord_unit", pl.lit("um")), {}, "have coordinates in micrometres. Say how many"),
        (changed("coord_unit", pl.lit("um")), {"mpp": 0}, "mpp is 0; it is a number above 0"),
        (tiles(), {"mpp": math.nan}, "mpp is nan; it is a number above 0"),
        (tiles(), {"tile_size": math.inf}, "tile_size is inf; it is a number above 0"),
        (changed("x", math.inf), {}, "2 tiles of slide '003' have no coordinates. Import them "),
        (changed("tile_size", math.inf), {}, "2 tiles of slide '003' have no tile_size. Give"),
        (changed("coord_unit", pl.lit("um")).with_columns(s=math.inf), {"mpp": "s"},
         "2 tiles of slide '003' have coordinates in micrometres. Say "),
        (changed("slide_id", pl.lit("s" * 250)), {}, "slide 'ssssss.* has no name that a file"),
    ],
)  # fmt: skip
def test_tiles_that_lie_nowhere_are_refused(scored, tmp_path, frame, options, message):
    root = again(scored, tmp_path, frame)
    with pytest.raises(croma_sql.CromaSqlError, match=message):
        croma_sql.export_geojson(root, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("output", "options", "message"),
    [
        ("out", {"slides": ["003", "nope"]}, "no tile of slide 'nope' has a margin; there are"),
        ("out.geojson", {}, "out.geojson would hold 4 slides: '003', 'S/1 \"a\" é', .*Name one"),
        ("out", {"m": 99}, "the query fails: .*m is 99"),
        ("file", {}, "cannot write .*003.geojson: File exists"),
    ],
)  # fmt: skip
def test_what_fails_leaves_what_was_there(scored, tmp_path, output, options, message):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(croma_sql.CromaSqlError, match=message):
        croma_sql.export_geojson(scored, tmp_path / output, **options)
    assert contents(tmp_path) == {(tmp_path / "file").relative_to(tmp_path): b"mine"}


def test_an_interrupted_slide_leaves_its_old_file(scored, tmp_path):
    out = tmp_path / "out"
    croma_sql.export_geojson(scored, out, m=3)
    before = contents(out)

    def stop(share):
        if share > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        croma_sql.export_geojson(scored, out, on_progress=stop)
    after = contents(out)
    assert after.keys() == before.keys()
    assert [after[name] == before[name] for name in sorted(after)] == [False, True, True, True]


def test_the_verb(scored, tmp_path):
    out = tmp_path / "out"
    asked = ["export", "geojson", str(scored), "--output", str(out), "--benchmark", "b"]
    said = CliRunner().invoke(app, [*asked, "--encoder", "e", "--slide", "003", "--slide", "s4"])
    assert (said.exit_code, said.stderr) == (0, "")
    assert said.stdout.splitlines() == [
        f"60 tiles of 2 slides in {out}, 1 of them without a margin",
        "next: open a slide in QuPath and drop its file onto it",
    ]
    assert sorted(path.name for path in out.iterdir()) == ["003.geojson", "s4.geojson"]
    said = CliRunner().invoke(app, [*asked, "--slide", "s4"])
    assert said.stdout.startswith(f"30 tiles of 1 slide in {out}")
    refused = CliRunner().invoke(app, [*asked, "--mpp", "nope"])
    assert refused.exit_code == 1
    assert refused.stderr.startswith("croma-sql: samples have no attribute 'nope', so nobody knows")


def test_slides_are_those_of_the_test(scored):
    assert SLIDES.keys() == NAMES.keys()
