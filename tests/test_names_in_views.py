"""Attributes that go by the name of a column of a view: reachable in each, and said on import."""

import re
from pathlib import Path

import polars as pl
import pytest
from mistakes import raises
from slides import tiles
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.warehouse.data.names_in_views import OWN

SELECT = "SELECT sample_id, class AS label, centre AS confounder, slide_id AS group_id FROM samples"
SQL = Path(croma_sql.__file__).parent / "sql" / "views"


def own_columns():
    """Every name that a view keeps from attributes."""
    lists = re.findall(r"attributes_but\(\[(.*?)\]\)", "".join(
        path.read_text() for path in SQL.rglob("*.sql")), re.DOTALL)  # fmt: skip
    return {name for some in lists for name in re.findall(r"'(\w+)'", some)}


def test_names_of_views_are_known():
    assert own_columns() == OWN


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Tiles whose attributes go by the names of results."""
    root = tmp_path_factory.mktemp("w") / "W"
    frame = tiles().with_columns(
        margin=pl.col("slide_id").rank("dense").cast(pl.Int64),
        Encoder=pl.lit("scan"),
        label=pl.col("class"),
        rank=pl.int_range(pl.len()) % 3,
        k=pl.lit("x"),
    )
    samples = frame.drop("embedding")
    done = croma_sql.import_embeddings(
        root, frame, encoder="e", dataset="d", samples=samples, on_bad_vectors="null"
    )
    assert done.notes == [
        "columns 'margin', 'Encoder', 'label', 'rank', 'k' are 'sample_margin', 'sample_Encoder', "
        "'sample_label', 'sample_rank', 'sample_k' in views with a column of that name, as margins"
    ]
    encoders = pl.DataFrame({"encoder": ["e"], "croma": [7], "family": ["f"]})
    croma_sql.import_encoders(root, encoders)
    croma_sql.add_benchmark(root, "b", SELECT)
    croma_sql.score(root, k=5, on_undefined="null")
    return root


@pytest.mark.parametrize(
    ("view", "called"),
    [
        ("margins", {"sample_margin", "sample_Encoder", "sample_label", "rank", "k"}),
        ("hubs_at(1)", {"margin", "sample_Encoder", "sample_label", "rank", "k"}),
        ("neighbourhoods_at(5)", {"margin", "sample_Encoder", "sample_label", "rank", "sample_k"}),
        ("dominant_confounders(['b'])", {"sample_margin", "sample_Encoder", "sample_label", "k"}),
        ("silhouettes", {"margin", "sample_Encoder", "sample_label", "rank", "k"}),
        ("unit_pairs", {"margin", "sample_Encoder", "label", "sample_rank", "k"}),
        ("unit_neighbourhoods_at(1)", {"margin", "sample_Encoder", "rank", "sample_k"}),
        ("encoder_ranking", {"croma", "encoder_croma", "family"}),
        ("encoder_mean_ranks", {"croma", "family"}),
    ],
)
def test_every_attribute_is_in_every_view(scored, view, called):
    with croma_sql.connect(scored) as con:
        columns = con.sql(f"FROM {view}").columns
        assert called <= set(columns)
        assert len({column.lower() for column in columns}) == len(columns)


def test_an_attribute_that_goes_by_the_name_of_a_result_keeps_its_values(scored):
    with croma_sql.connect(scored) as con:
        found = con.sql(
            "SELECT count(*) FROM margins JOIN samples USING (sample_id) "
            "WHERE sample_margin = samples.margin AND \"sample_Encoder\" = 'scan'"
        ).fetchall()
        assert found == con.sql("SELECT count(*) FROM samples").fetchall()


def test_strata_are_of_attributes(scored):
    table = croma_sql.strata(scored, "sample_margin")
    assert sorted(table["sample_margin"]) == [1, 2, 3, 4]
    with raises("'margin' is a column of results, not an attribute; the attribute of that name is "
                "'sample_margin': --by sample_margin"):  # fmt: skip
        croma_sql.strata(scored, "margin")
    with raises("'encoder' is a column of results", "'sample_Encoder': --by sample_Encoder"):
        croma_sql.strata(scored, "encoder")
    with raises("'d_so' is a column of results, not an attribute; name an attribute of samples"):
        croma_sql.strata(scored, "d_so")
    done = CliRunner().invoke(app, ["strata", str(scored), "--attribute", "margin"])
    assert "'sample_margin': --attribute sample_margin" in done.stderr
    listed = CliRunner().invoke(app, ["strata", str(scored), "--tail", "--format", "csv"]).output
    assert "sample_margin" in listed
    assert "sample_label" not in listed  # which is label


def test_two_attributes_that_would_have_one_name(root):
    frame = pl.DataFrame({"sample_id": ["a"], "Margin": [1], "sample_margin": [2]})
    with raises("the frame: columns 'Margin' and 'sample_margin' would have one name in views, "
                "which call the first 'sample_Margin' beside results; rename one"):  # fmt: skip
        croma_sql.import_samples(root, frame, dataset="d")
    croma_sql.import_samples(root, frame.drop("Margin"), dataset="d")
    other = pl.DataFrame({"sample_id": ["b"], "margin": [1]})
    with raises("these samples and those of dataset 'd': columns 'margin' and 'sample_margin'"):
        croma_sql.import_samples(root, other, dataset="e")
    with raises("columns 'margin', 'Margin' have one name in SQL"):
        two = pl.DataFrame({"sample_id": ["b"], "margin": [1], "Margin": [2]})
        croma_sql.import_samples(root, two, dataset="e")
