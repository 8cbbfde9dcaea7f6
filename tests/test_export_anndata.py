"""Margins beside the observations of AnnData: the right ones, and nothing else touched."""

import anndata
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from slides import SELECT, built, contents, tiles
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app

COLUMNS = [f"croma_{name}" for name in ("margin", "undefined_reason", "d_so", "d_os")]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Two encoders, ``e`` and ``f``."""
    root = built(tmp_path_factory.mktemp("anndata") / "W", tiles())
    return built(root, tiles(seed=1), encoder="f")


@pytest.fixture(scope="module")
def margins(scored):
    """Rows of the samples under ``e``, by id."""
    frame = croma_sql.read_margins(scored, encoder="e")
    return {row["sample_id"]: row for row in frame.to_dicts()}


def observed(ids):
    """An AnnData of anything, of observations in another order than samples, and of strangers."""
    rng = np.random.default_rng(0)
    n = len(ids)
    adata = anndata.AnnData(
        sparse.csr_matrix(rng.poisson(1, (n, 7)).astype(np.float32)),
        obs=pd.DataFrame(
            {"kind": pd.Categorical(["a", "b"] * (n // 2)), "slide": [i[:3] for i in ids]},
            index=ids,
        ),
        obsm={"X_umap": rng.random((n, 2)), "vectors": rng.random((n, 5)).astype(np.float16)},
        layers={"raw": rng.integers(0, 9, (n, 7))},
        uns={"colours": np.array(["red", "blue"]), "nested": {"k": 3}},
    )
    adata.obsp["near"] = sparse.random(n, n, 0.1, format="csr", random_state=0)
    return adata


def known_and_strangers(margins):
    ids = [*sorted(margins)[20:][::-1], *(f"stranger {i}" for i in range(6))]
    return ids


def everything(path):
    """Every dataset and attribute of a file, but for what ``obs`` of the copy may have new."""
    found = {}

    def note(name, it):
        found[name, "attributes"] = {key: repr(value) for key, value in it.attrs.items()}
        if isinstance(it, h5py.Dataset):
            values = np.asarray(it[()])
            plain = values.tolist() if values.dtype == object else values.tobytes()
            found[name, "values"] = (it.dtype, it.shape, it.chunks, plain)

    with h5py.File(path) as file:
        file.visititems(note)
    return found


def check_values(obs, margins, ids):
    for name in ("margin", "d_so", "d_os"):
        expected = [np.nan if i not in margins else margins[i][name] for i in ids]
        expected = np.array([np.nan if one is None else one for one in expected])
        np.testing.assert_array_equal(obs[f"croma_{name}"].to_numpy(), expected)
    reason = [margins[i]["undefined_reason"] if i in margins else None for i in ids]
    assert [None if pd.isna(one) else one for one in obs["croma_undefined_reason"]] == reason
    assert set(filter(None, reason)) == {"bad_vector"}


def test_margins_come_beside_the_observations_and_nothing_else_changes(scored, margins, tmp_path):
    ids = known_and_strangers(margins)
    source, output = tmp_path / "a.h5ad", tmp_path / "new" / "b.h5ad"
    observed(ids).write_h5ad(source, compression="gzip")
    before = everything(source)
    done = croma_sql.export_anndata(scored, source, output, benchmark="b", encoder="e")
    assert done.columns == COLUMNS
    assert (done.n, done.n_without, done.n_unused) == (100, 6, 20)
    assert done.without == [f"stranger {i}" for i in range(4)]
    assert set(done.unused) < set(sorted(margins)[:20])
    check_values(anndata.read_h5ad(output).obs, margins, ids)
    after = everything(output)
    order = before.pop(("obs", "attributes")), after.pop(("obs", "attributes"))
    assert order[0].pop("column-order") != order[1].pop("column-order")
    assert order[0] == order[1]
    assert {key: after.pop(key) for key in before} == before
    assert {name.split("/")[1] for name, _ in after} == set(COLUMNS)
    assert everything(source)["obs", "attributes"] == order[0] | {
        "column-order": repr(np.array(["kind", "slide"], dtype=object))
    }


def test_in_memory_the_same(scored, margins):
    ids = known_and_strangers(margins)
    adata, untouched = observed(ids), observed(ids)
    done = croma_sql.to_anndata(adata, scored, encoder="e")
    assert (done.n, done.n_without) == (100, 6)
    check_values(adata.obs, margins, ids)
    assert list(adata.obs.columns) == ["kind", "slide", *COLUMNS]
    assert (adata.X != untouched.X).nnz == 0
    assert adata.uns.keys() == untouched.uns.keys()


def test_several_encoders_stand_side_by_side(scored, margins, tmp_path):
    """One export after another, over the file itself; the same columns twice are refused."""
    path = tmp_path / "a.h5ad"
    observed(sorted(margins)).write_h5ad(path)
    for key, encoder in (("of e", "e"), ("of_f", "f")):
        croma_sql.export_anndata(scored, path, path, encoder=encoder, key=key)
    obs = anndata.read_h5ad(path).obs
    assert list(obs.columns)[2::4] == ["of e_margin", "of_f_margin"]
    assert not np.array_equal(obs["of e_margin"], obs["of_f_margin"], equal_nan=True)
    before = contents(tmp_path)
    with pytest.raises(
        croma_sql.CromaSqlError, match="obs has a column 'of_f_margin' already; giv"
    ):
        croma_sql.export_anndata(scored, path, path, encoder="f", key="of_f")
    with pytest.raises(
        croma_sql.StatisticsError, match="margin of each encoder: 'e', 'f'; name on"
    ):
        croma_sql.export_anndata(scored, path, path, key="third")
    assert contents(tmp_path) == before


def test_columns_of_a_query_by_a_column_of_obs(scored, tmp_path):
    """One row per slide, for all the tiles of it; every type that obs can hold."""
    adata = observed([f"tile {i}" for i in range(8)])
    slides = ["003", "it's", "nowhere", "003", None, "s4", "s4", "s4"]
    adata.obs["slide"] = pd.Categorical(slides)
    adata.write_h5ad(tmp_path / "a.h5ad")
    query = """
        SELECT slide_id AS sample_id, count(*) AS n, median(margin) AS "median margin",
            any_value(centre) AS centre, bool_and(margin > -2) AS fine, NULL AS nothing,
            DATE '2024-05-01' AS day, sum(1) AS total, slide_id = '003' AS is_first
        FROM margins WHERE encoder = 'e' AND slide_id <> 'it''s' GROUP BY slide_id
    """
    done = croma_sql.export_anndata(
        scored, tmp_path / "a.h5ad", tmp_path / "b.h5ad", query=query, on="slide"
    )
    assert (done.n, done.n_without, done.without) == (5, 3, ["it's", "nowhere", None])
    assert done.unused == ['S/1 "a" é']
    obs = anndata.read_h5ad(tmp_path / "b.h5ad").obs
    assert obs["n"].dtype == "Int64"
    assert obs["n"].tolist() == [30, pd.NA, pd.NA, 30, pd.NA, 30, 30, 30]
    assert obs["centre"].astype(object).where(obs["centre"].notna(), None).tolist() == [
        "A", None, None, "A", None, "B", "B", "B"
    ]  # fmt: skip
    assert obs["is_first"].tolist() == [True, pd.NA, pd.NA, True, pd.NA, False, False, False]
    assert obs["day"].dropna().unique().tolist() == ["2024-05-01"]
    assert obs["total"].dtype == float
    assert obs["nothing"].isna().all()


def test_ids_that_pandas_made_floats(tmp_path):
    """Whole numbers of which one is missing; and a column of any name is the user's."""
    samples = pl.DataFrame({"sample_id": ["7", "10", "1.5"], "found": [5, 6, 7]})
    croma_sql.import_samples(tmp_path / "W", samples, dataset="d")
    adata = observed(["abc0", "abc1", "abc2", "abc3"])
    adata.obs["id"] = [10.0, None, 7.0, 1.5]
    query = "SELECT sample_id, found AS croma_found FROM samples"
    done = croma_sql.to_anndata(adata, tmp_path / "W", query=query, on="id")
    assert (done.n, done.without) == (3, [None])
    assert adata.obs["croma_found"].tolist() == [6, pd.NA, 5, 7]
    with pytest.raises(croma_sql.SourceError, match="there are no observations"):
        croma_sql.to_anndata(adata[:0].copy(), tmp_path / "W", query=query.replace("croma", "c"))


def test_whole_columns_keep_their_type(scored, margins):
    adata = observed(sorted(margins))
    query = "SELECT sample_id, 1::SMALLINT AS i, true AS b, 1.5::FLOAT AS x FROM samples"
    croma_sql.to_anndata(adata, scored, query=query)
    assert [str(adata.obs[name].dtype) for name in "ibx"] == ["int16", "bool", "float32"]


def old(path):
    """The form of AnnData before 0.7: obs is a table."""
    with h5py.File(path, "w") as file:
        file["X"] = np.eye(3)
        file["obs"] = np.array([(b"a", 1)], dtype=[("index", "S1"), ("n", int)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "nope.h5ad"}, "nope.h5ad does not exist"),
        ({"source": "text.h5ad"}, "text.h5ad cannot be read: .*file signature not found"),
        ({"source": "old.h5ad"}, "old.h5ad has no obs as AnnData has written it since version 0.7"),
        ({"on": "nope"}, "obs has no column 'nope'; it has 'kind', 'slide'"),
        ({"on": "kind"}, "no observation is a sample: these are 'a', 'b', 'a', ..., samples '"),
        ({"encoder": None, "query": 'SELECT sample_id, 1 AS "a/b" FROM samples'},
         "AnnData takes no column of the name 'a/b'; say AS another"),
        ({"encoder": None, "query": 'SELECT sample_id, 1 AS "." FROM samples'},
         "AnnData takes no column of the name '.'; say AS another"),
        ({"subset": "nope"}, "benchmark 'b' has no subset 'nope'; it has none at all"),
        ({"m": 99}, "m is 99, but"),
        ({"query": "SELECT sample_id, margin FROM margins"}, "leave --benchmark, --encoder and"),
        ({"encoder": None, "query": "SELECT margin FROM margins"}, "the query has columns 'ma"),
        ({"encoder": None, "query": "SELECT sample_id, 1 AS x FROM margins"},
         "the query has 120 samples in more than one row: '"),
        ({"encoder": None, "query": "SELECT sample_id, [1] AS l FROM margins WHERE encoder = 'e'"},
         "column 'l' holds List.* which obs cannot; cast it"),
        ({"encoder": None, "query": "SELECT sample_id, nope FROM margins"}, "the query fails"),
        ({"output": "s3://bucket/b.h5ad"}, "s3://bucket/b.h5ad is on object storage, .*copy it to"),
        ({"source": "s3://bucket/a.h5ad"}, "s3://bucket/a.h5ad is on object storage, .*copy it to"),
        ({"output": "a.h5ad/b.h5ad"}, "cannot write .*b.h5ad: File exists"),
    ],
)  # fmt: skip
def test_what_fails_leaves_what_was_there(scored, margins, tmp_path, options, message):
    observed(sorted(margins)).write_h5ad(tmp_path / "a.h5ad")
    (tmp_path / "text.h5ad").write_text("no HDF5 " * 100)
    old(tmp_path / "old.h5ad")
    before = contents(tmp_path)
    asked = {"source": "a.h5ad", "output": "b.h5ad", "encoder": "e"} | options
    source, output = (
        name if "://" in name else tmp_path / name
        for name in (asked.pop("source"), asked.pop("output"))
    )
    with pytest.raises(croma_sql.CromaSqlError, match=message):
        croma_sql.export_anndata(scored, source, output, **asked)
    assert contents(tmp_path) == before


def test_a_sample_in_several_subsets_needs_one(tmp_path):
    root = built(tmp_path / "W", tiles())
    twice = f"SELECT *, unnest(['all', 'again']) AS subset FROM ({SELECT})"
    croma_sql.add_benchmark(root, "b", twice)
    croma_sql.score(root, on_undefined="null")
    adata = observed(pl.read_parquet(root / "samples" / "d.parquet")["sample_id"].to_list())
    with pytest.raises(croma_sql.StatisticsError, match="of each subset: 'again', 'all'; name one"):
        croma_sql.to_anndata(adata, root)
    assert croma_sql.to_anndata(adata, root, subset="all").n == 120


def test_the_verb(scored, margins, tmp_path):
    ids = known_and_strangers(margins)
    observed(ids).write_h5ad(tmp_path / "a.h5ad")
    asked = ["export", "anndata", scored, tmp_path / "a.h5ad", "--output", tmp_path / "b.h5ad"]
    said = CliRunner().invoke(app, [*map(str, asked), "--encoder", "e", "--key", "e"])
    assert said.exit_code == 0
    lines = said.stdout.splitlines()
    assert lines[:2] == [
        f"e_margin, e_undefined_reason, e_d_so, e_d_os of 100 observations in {tmp_path}/b.h5ad",
        "without a row: 6 observations: 'stranger 0', 'stranger 1', 'stranger 2', ...",
    ]
    assert lines[2].startswith("without an observation: 20 samples: '003:")
    assert "e_margin" in anndata.read_h5ad(tmp_path / "b.h5ad").obs
