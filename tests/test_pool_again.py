"""What becomes of pooled vectors: up to date or not, interrupted, refused, cancelled out."""

import polars as pl
import pytest
from harmonising import contents
from pools import HOWS, built, pooled, samples, tiles

import croma_sql
from croma_sql.warehouse.layout import embeddings_path, samples_path

# What becomes of it


def test_what_is_up_to_date_is_left_alone_and_info_tells_what_is_not(root):
    frame = tiles()
    built(root, frame)

    def told():
        known = {one.name: one for one in croma_sql.info(root).encoders}["e mean"]
        assert (known.pooled_from, known.pooled_by, known.method) == ("e", ["slide_id"], "mean")
        return known.status

    first = pooled(root)
    assert (first.outcome, told()) == ("pooled", "up to date")
    before = contents(root)
    again = pooled(root)
    assert (again.outcome, contents(root)) == ("up to date", before)
    assert (again.n_vectors, again.kept) == (first.n_vectors, first.kept)
    croma_sql.import_embeddings(
        root, frame.with_columns(frame["embedding"].reverse()), encoder="e", dataset="d"
    )
    assert told() == "stale"
    assert (pooled(root).outcome, told()) == ("pooled", "up to date")
    croma_sql.import_samples(root, frame.drop("embedding", "age"), dataset="d")
    assert told() == "stale"
    pooled(root)
    assert "age" not in samples(root).columns
    built(
        root,
        frame.head(10).with_columns(pl.format("f{}", "sample_id").alias("sample_id")),
        encoder="f",
        dataset="other",
    )
    assert told() == "up to date"
    embeddings_path(root, "e", "d").unlink()
    assert told().startswith("encoder 'e' has no vectors; there are those of 'e mean', 'f'")


def test_an_interrupted_run_leaves_what_was_there(root):
    built(root, tiles())
    before = contents(root)

    def stop(share):
        if share == 1.0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pooled(root, on_progress=stop)
    assert contents(root) == before


def test_a_source_that_changes_meanwhile_is_noticed(root):
    frame = tiles()
    built(root, frame)

    def change(share):
        if share == 1.0:
            croma_sql.import_samples(root, frame.drop("embedding", "age"), dataset="d")

    with pytest.raises(croma_sql.WarehouseError, match="'e' has changed meanwhile; run it again"):
        pooled(root, on_progress=change)
    assert not samples_path(root, "slides").exists()


@pytest.fixture(scope="module")
def settled(tmp_path_factory):
    """A warehouse in which there is much to collide with."""
    root = tmp_path_factory.mktemp("pool") / "W"
    pair = pl.when(pl.col("age") % 2 == 0)
    frame = tiles(n=400).with_columns(
        empty=pl.lit(None, pl.String),
        parts=pl.concat_list("patient", "patient"),
        a=pair.then(pl.lit("x")).otherwise(pl.lit("x:y")),
        b=pair.then(pl.lit("y:z")).otherwise(pl.lit("z")),
    )
    built(root, frame)
    pooled(root, to="e max", how="max", dataset="maxima")
    other = pl.DataFrame({"sample_id": ["o"], "embedding": [[1.0, 2.0, 3.0]]})
    return built(root, other, encoder="other", dataset="imported")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": "f"}, "encoder 'f' has no vectors; there are those of 'e', 'e max'"),
        ({"to": "e"}, "'e' cannot be pooled into itself"),
        ({"dataset": "d"}, "dataset 'd' is what is pooled; give the new samples"),
        ({"by": ["nope"]}, "cannot be pooled by 'nope'; they have 'slide_id', 'scanner'"),
        ({"by": ["sample_id"]}, "cannot be pooled by 'sample_id'"),
        ({"by": ["SLIDE_ID", "slide_id"]}, "one or more attributes, each named once"),
        ({"by": []}, "one or more attributes, each named once"),
        ({"by": ["empty"]}, "every sample lacks 'empty': nothing to pool"),
        ({"by": ["parts"]}, "cannot be pooled: column 'parts' is of type .*list"),
        ({"by": ["a", "b"]}, "1 groups would have the name of another, .*'x:y:z'"),
        ({"how": "median"}, "how is 'median'; it is one of mean, max, mean-normalised"),
        ({"from_datasets": ["nope"]}, "no vectors of dataset 'nope'; it has those of 'd'"),
        ({"from_datasets": []}, "no vectors of dataset ; it has those of 'd'"),
        ({"dataset": "new"}, r"17 sample_id\(s\) are already in dataset 'maxima': '000'.*: "
         r"prefix them with --prefix \(Python: prefix=\), or write into dataset 'maxima'"),
        ({"dataset": "maxima", "to": "e max"}, "'e max' has vectors of dataset 'maxima' already, "
         "pooled with how 'max', not 'mean'; name another encoder with --to"),
        ({"dataset": "maxima", "by": ["patient"]}, "'maxima' is there already, pooled by slide_id"),
        ({"dataset": "maxima", "prefix": "p"}, "'maxima' is there already, pooled by"),
        ({"dataset": "imported", "to": "other"}, "'other' has vectors of dataset 'imported' "
         "already, and pooling did not make them"),
        ({"to": "other", "prefix": "p"}, "'other' has vectors of 3 dimensions in dataset "
         "'imported'; these would have 24"),
    ],
)  # fmt: skip
def test_what_is_refused(settled, options, message):
    before = contents(settled)
    with pytest.raises(croma_sql.WarehouseError, match=message):
        pooled(settled, **options)
    assert contents(settled) == before


@pytest.mark.parametrize("how", HOWS)
def test_groups_whose_vectors_cancel_are_named(root, how):
    """Scaled to length 1, vectors of a triangle of equal sides leave but what rounding does."""
    sides = {
        "mean": [[1.0, 2.0], [1.0, 2.0], [-2.0, -4.0]],
        "max": [[0.0, -1.0], [-1.0, 0.0], [0.0, -2.0]],
        "mean-normalised": [[3.0, 0.0], [-1.0, 3**0.5], [-0.5, -(0.75**0.5)]],
    }[how]
    frame = pl.DataFrame(
        {
            "sample_id": ["a", "b", "c", "d"],
            "slide_id": ["s1", "s1", "s1", "s2"],
            "embedding": pl.Series([*sides, [1.0, 1.0]], dtype=pl.Array(pl.Float64, 2)),
        }
    )
    built(root, frame)
    with pytest.raises(
        croma_sql.WarehouseError, match=f"the {how} of 1 groups has no direction, .*: 's1'"
    ):
        pooled(root, how=how)
    assert not samples_path(root, "slides").exists()
