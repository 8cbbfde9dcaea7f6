"""What a design can be scored on, counted before any search, and every problem by its words."""

import collections

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mistakes import import_tiles, margins_of, raises, tiles
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app

SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"
ROWS = st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=40)


def eligible(rows, row):
    """Count SO and OS candidates one by one."""
    scope, label, confounder, group = row
    others = [one for one in rows if one[0] == scope and one[3] != group]
    so = sum(one[1] == label and one[2] != confounder for one in others)
    return so, sum(one[1] != label and one[2] == confounder for one in others)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(1, 6))
def test_counts_are_those_of_going_through_the_rows(rows, m):
    cells = collections.defaultdict(list)
    for row in rows:
        cells[row[:3]].append((row[3], *eligible(rows, row)))
    expected = [
        (
            *cell, len(found), len({group for group, *_ in found}),
            min(so for _, so, _ in found), min(os for *_, os in found),
            sum(so < m for _, so, _ in found), sum(os < m for *_, os in found),
            sum(min(so, os) < m for _, so, os in found),
        )
        for cell, found in sorted(cells.items())
    ]  # fmt: skip
    by, label, confounder, group = zip(*rows, strict=True)
    told = croma_sql.design(label, confounder, group, m=m, by=by)
    assert told.drop("problem").rows() == expected
    assert (told["problem"].is_null() == (told["n_undefined"] == 0)).all()


def test_the_design_knows_which_margins_are_undefined():
    frame = tiles()
    columns = [frame[name] for name in ("label", "confounder", "group_id")]
    for m in (1, 5, 12, 20):
        undefined = margins_of(frame, m=m)["undefined_reason"].is_not_null().sum()
        assert croma_sql.design(*columns, m=m)["n_undefined"].sum() == undefined


CROSSED = {
    "label": ["a", "a", "b", "b"] * 6,
    "confounder": ["x", "y"] * 12,
    "group": [f"{'xy'[i % 2]}{i // 4}" for i in range(24)],
}
CONFOUNDED = "so the two cannot be told apart and no sample has a margin: add rows that cross them"


@pytest.mark.parametrize(
    ("changed", "problem", "words"),
    [
        (
            {"label": ["a"] * 24},
            "one_label",
            "label has one value, 'a', so no sample has an OS neighbour: add rows of another label",
        ),
        (
            {"confounder": ["x"] * 24},
            "one_confounder",
            "confounder has one value, 'x', so no sample has an SO neighbour: add rows of another "
            "confounder",
        ),
        (
            {"group": ["s"] * 24},
            "one_group",
            "all rows have one group_id, and neighbours come from other groups: take the slide or "
            "the patient as group_id",
        ),
        (
            {"label": ["x", "y"] * 12},
            "confounded",
            f"each label is at a confounder of its own, {CONFOUNDED}, or take another confounder",
        ),
        (
            {"label": [str(i) for i in range(24)]},
            "labels_like_ids",
            "label has 24 values in 24 rows, as an id or a measurement has: take a class, or bins "
            "of it",
        ),
        (
            {"group": [str(i) for i in range(24)]},
            "group_per_row",
            "every row has a group_id of its own, so no neighbour is excluded: right for slides or "
            "patients; of tiles take the slide or the patient, as tiles of one slide are not "
            "independent",
        ),
        (
            {"group": ["1", "1", *CROSSED["group"][2:]]},
            "groups_span",
            "1 of 13 groups, as '1', occur at several values of confounder: if these are different "
            "slides under one name, write group_id as (confounder, group_id)::VARCHAR",
        ),
        (
            {"label": ["a", "c", "b", "b"] * 6},
            "undefined",
            "12 of 24 samples cannot have a margin at m = 5: ",
        ),
    ],
)
def test_a_problem_is_named(changed, problem, words):
    found = croma_sql.design_problems(**(CROSSED | changed))
    told = dict(found.select("problem", "words").rows())
    assert told[problem].startswith(words)
    if problem != "undefined":
        assert told[problem] == words


def test_a_sound_design_has_no_problem():
    assert croma_sql.design_problems(**CROSSED).is_empty()


def test_cells_say_why():
    label = [*CROSSED["label"], "c", "c"]
    told = croma_sql.design(
        label, [*CROSSED["confounder"], "x", "x"], [*CROSSED["group"], "x9", "x9"]
    )
    assert told.filter(label="c")["problem"].to_list() == [
        "2 have no SO candidate because label 'c' occurs at confounder 'x' only: add rows of it "
        "from elsewhere, or leave it out"
    ]


def test_columns_of_different_length_and_a_bad_m():
    with raises("columns differ in length: 'label' has 1, 'confounder' has 2, 'group_id' has 1"):
        croma_sql.design(["a"], ["x", "y"], [1])
    with raises("m is 0"):
        croma_sql.design(["a"], ["x"], [1], m=0)


def test_a_design_in_which_nothing_can_be_scored_is_refused(root):
    import_tiles(root)
    select = SELECT.replace("confounder", "label AS confounder")
    words = "benchmark 'b': no sample can have a margin. each label is at a confounder of its own"
    with raises(words, "--on-undefined null"):
        croma_sql.add_benchmark(root, "b", select)
    assert not (root / "benchmarks").exists()
    made = croma_sql.add_benchmark(root, "b", select, on_undefined="null")
    assert made.bound.on_undefined == "null"


def cli(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.stdout, result.stderr


def partly():
    """One class at one centre only, in groups of its own."""
    frame = tiles(n=200, group_id=[f"s{i}" for i in range(200)])
    lonely = pl.when(pl.int_range(200) < 20)
    return frame.with_columns(
        label=lonely.then(pl.lit("lonely")).otherwise("label"),
        confounder=lonely.then(pl.lit("centre0")).otherwise("confounder"),
    )


CAUSE = (
    "20 have no SO candidate because label 'lonely' occurs at confounder 'centre0' only: add rows "
    "of it from elsewhere, or leave it out"
)


def test_score_shows_all_that_became_of_all_and_remembers(root):
    import_tiles(root, partly())
    code, out, err = cli("benchmark", root, "partly", SELECT)
    assert code == 0
    assert out.startswith("benchmark 'partly': 200 rows, 3 labels, 2 confounders, 200 groups; data")
    assert "so_candidates   os_candidates   n_undefined" in out
    assert f"20 of 200 samples cannot have a margin at m = 5: {CAUSE}" in err
    croma_sql.add_benchmark(root, "whole", f"{SELECT} WHERE label <> 'lonely'")

    code, out, err = cli("score", root)
    assert code == 1
    assert [line.split()[:4] for line in out.splitlines() if " e " in line] == [
        ["partly", "e", "NULL", "failed"],
        ["whole", "e", "180", "scored"],
    ]
    assert "benchmark 'partly', encoder 'e': 20 of 200 samples have no margin at m = 5" in err
    assert CAUSE in err
    with pytest.raises(croma_sql.ScoringError) as failed:
        croma_sql.score(root)
    assert [one.outcome for one in failed.value.done] == ["failed", "up to date"]

    assert cli("score", root, "--benchmark", "partly", "--on-undefined", "null")[0] == 0
    kept = '-- datasets: ["d"]\n-- undefined: null\n'
    assert (root / "benchmarks" / "partly.sql").read_text() == f"{kept}{SELECT}\n"
    code, out, err = cli("score", root)
    assert (code, err) == (
        0,
        "benchmark 'partly': samples without a margin are NULL, as it remembers; --on-undefined "
        "error refuses them again\n",
    )
    assert cli("score", root, "--on-undefined", "error")[0] == 1
    assert "undefined" not in (root / "benchmarks" / "partly.sql").read_text()


def test_the_design_again_from_the_warehouse(root):
    import_tiles(root, partly())
    made = croma_sql.add_benchmark(root, "b", SELECT, on_undefined="null")
    code, out, err = cli("benchmark", root, "b", "--show", "--format", "csv")
    shown = pl.read_csv(out.encode())
    assert code == 0
    assert CAUSE in err
    columns = [made.rows.column(name) for name in ("label", "confounder", "group_id")]
    expected = croma_sql.design(*columns)
    assert shown.drop("scope").rows() == expected.drop("scope").rows()
    croma_sql.score(root)
    view = croma_sql.connect(root).sql("FROM benchmark_design ORDER BY label, confounder").pl()
    assert (
        view.drop("benchmark", "encoder", "subset", "matched").rows()
        == expected.drop("scope").rows()
    )


def test_labels_that_are_numbers_or_missing():
    told = croma_sql.design(np.array([0.5, np.nan, 0.5]), ["x", "x", "y"], [1, 2, 3], m=1)
    assert (
        "NULL is no label: leave these rows out"
        in told.filter(pl.col("label").is_null())["problem"].item()
    )
