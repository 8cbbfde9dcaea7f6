"""What croma-sql harmonise says: what it did, kept as what, replaced, and refuses."""

import numpy as np
import polars as pl
import pytest
from harmonising import SELECT, built, contents, read, tiles

import croma_sql
from croma_sql.cli import main


@pytest.fixture
def cohort(root):
    frame = tiles(300).with_columns(Rack=pl.col("age") % 4)
    return built(root, frame)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as exit_, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["croma-sql", *map(str, arguments)])
        main()
    return exit_.value.code, capsys.readouterr()


def harmonise(capsys, root, *options):
    return run(capsys, "harmonise", root, "--encoder", "e", "--benchmark", "b", *options)


def test_command(cohort, capsys):
    code, said = harmonise(capsys, cohort, "--keep", "label", "--keep", "age", "--fit-on", "groups")
    assert (code, said.err) == (0, "")
    assert said.out.startswith(
        f"296 vectors of 30 groups as encoder 'e combat' of {cohort}, 4 others left out: shift and "
        "scale of 3 confounders removed (ComBat); kept 'label' as categories, 'age' as a number\n"
        "next: croma-sql score"
    )
    code, said = harmonise(capsys, cohort, "--keep", "centre")
    assert code == 1
    assert said.err.startswith("croma-sql: 'centre' cannot be kept while the confounder is removed")


@pytest.mark.parametrize(
    "option", [("--n-directions", "1"), ("--folds", "5"), ("--folds", "3"), ("--seed", "0")]
)
@pytest.mark.parametrize("method", ["combat", "mean"])
def test_options_that_would_make_no_difference_are_refused(cohort, capsys, method, option):
    code, said = harmonise(capsys, cohort, "--method", method, *option)
    name = option[0].removeprefix("--").replace("-", "_")
    assert (code, said.err) == (
        1, f"croma-sql: {name} is for method 'directions' only; leave it out\n"
    )  # fmt: skip
    assert harmonise(capsys, cohort, "--method", "directions", *option)[0] == 0


@pytest.mark.parametrize(
    ("asked", "known"), [("AGE", "age"), ("rack", "Rack"), ("Label", "label"), ("LABEL", "label")]
)
def test_what_is_kept_may_be_named_in_either_case(cohort, capsys, asked, known):
    """It is the same, and up to date by either name."""
    code, said = harmonise(capsys, cohort, "--keep", asked)
    assert code == 0
    assert f"; kept {known!r} as " in said.out
    assert harmonise(capsys, cohort, "--keep", known)[1].out.splitlines()[0].endswith("up to date)")
    code, said = harmonise(capsys, cohort, "--keep", asked, "--keep", known)
    assert (code, said.err) == (1, f"croma-sql: {known!r} is to be kept twice; once will do\n")


@pytest.mark.parametrize("name", ["sample_id", "SAMPLE_ID"])
def test_ids_cannot_be_kept(cohort, capsys, name):
    code, said = harmonise(capsys, cohort, "--keep", name)
    assert code == 1
    assert said.err.startswith(f"croma-sql: {name!r} cannot be kept: every sample has its own")


def test_whole_numbers_that_float64_rounds_are_refused(root, capsys):
    built(root, tiles(600).with_columns(scan=pl.int_range(600) + 2**60))
    code, said = harmonise(capsys, root, "--keep", "scan")
    assert code == 1
    assert said.err.startswith("croma-sql: column 'scan' holds whole numbers beyond 2^53")


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_what_no_encoder_can_be_called(cohort, capsys, name):
    code, said = harmonise(capsys, cohort, "--to", name)
    assert code == 1
    assert said.err.startswith(f"croma-sql: {name!r} cannot be the encoder's name: empty or")


# Replacing


def scored(root):
    croma_sql.score(root, k=15)
    croma_sql.score_centre(root, trials=1)


def harmonisation(root):
    with croma_sql.connect(root) as con:
        return con.sql("FROM harmonisation ORDER BY benchmark, encoder").pl()


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (("--keep", "age"), "method combat, fit_on samples"),
        (("--method", "mean"), "method combat, fit_on samples"),
        (("--fit-on", "groups"), "method combat, fit_on samples"),
    ],
)
def test_vectors_made_differently_go_with_their_scores(cohort, capsys, options, made):
    """What is beside the new recipe is never of the old vectors; other encoders keep theirs."""
    assert "replaced" not in harmonise(capsys, cohort, "--to", "f")[1].out
    scored(cohort)
    assert len(harmonisation(cohort)) == 1
    said = harmonise(capsys, cohort, "--to", "f", *options)[1].out.splitlines()
    assert said[1] == f"replaced 'f' and its scores: it had been made with {made}"
    assert len(harmonisation(cohort)) == 0
    assert {one.encoder for one in croma_sql.info(cohort).scores} == {"e"}
    assert croma_sql.check(cohort) == []
    croma_sql.score(cohort, k=15)
    assert len(harmonisation(cohort)) == 1
    said = harmonise(capsys, cohort, "--to", "f")[1].out.splitlines()
    assert said[1].startswith("replaced 'f' and its scores: it had been made with method ")
    assert said[1].endswith({"age": ", kept 'age'", "mean": "mean, fit_on samples"}.get(
        options[1], "fit_on groups"
    ))  # fmt: skip


def test_vectors_made_anew_in_the_same_way_leave_scores_that_info_calls_stale(cohort, capsys):
    harmonise(capsys, cohort)
    croma_sql.score(cohort)
    croma_sql.add_benchmark(cohort, "b", SELECT + "AND slide <> 's3'")
    assert "replaced" not in harmonise(capsys, cohort)[1].out
    assert {one.status for one in croma_sql.info(cohort).scores} == {"stale"}


# Damage


def without_origin(path):
    pl.read_parquet(path, hive_partitioning=False).write_parquet(path)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-9])


def with_a_flipped_key(path):
    path.write_bytes(path.read_bytes().replace(b'"harmonised": {', b'"harmonised": ['))


@pytest.mark.parametrize("damage", [without_origin, truncated, with_a_flipped_key])
def test_a_damaged_file_is_named_with_its_cure(cohort, capsys, damage):
    harmonise(capsys, cohort)
    expected = read(cohort, "e combat")
    (path,) = (cohort / "embeddings" / "encoder=e%20combat").glob("*.parquet")
    damage(path)
    before = contents(cohort)
    code, said = harmonise(capsys, cohort)
    assert code == 1
    assert str(path) in said.err
    assert "If harmonising made it, delete d0.parquet and harmonise again" in said.err
    assert "not made by harmonising" not in said.err
    assert contents(cohort) == before
    path.unlink()
    assert harmonise(capsys, cohort)[0] == 0
    assert read(cohort, "e combat").equals(expected)


# Before and after


def test_changes_are_between_the_same_rows_only(cohort, capsys):
    """Benchmark 'all' has four samples more, without harmonised vectors: no change is told."""
    croma_sql.add_benchmark(cohort, "all", SELECT.replace("WHERE NOT elsewhere", ""))
    harmonise(capsys, cohort)
    scored(cohort)
    found = harmonisation(cohort)
    of_all, of_b = found.row(0, named=True), found.row(1, named=True)
    assert (of_all["benchmark"], of_b["benchmark"]) == ("all", "b")
    for n in ("n", "n_fixed_k", "n_centre"):
        assert (of_all[n], of_all[f"{n}_before"]) == (296, 300)
        assert (of_b[n], of_b[f"{n}_before"]) == (296, 296)
    changes = [name for name in found.columns if name.endswith("_change")]
    assert len(changes) == 13
    for change in changes:
        metric = change.removesuffix("_change")
        assert of_all[change] is None
        assert of_all[metric] == of_b[metric]
        assert of_b[change] is not None


def test_each_family_of_metrics_has_its_own_rows(cohort, capsys):
    """The centre is measured anew on fewer rows; margins are not, and are compared as before."""
    harmonise(capsys, cohort)
    scored(cohort)
    croma_sql.add_benchmark(cohort, "b", SELECT + "AND slide <> 's3'")
    croma_sql.score_centre(cohort, encoder="e", trials=1)
    found = harmonisation(cohort).row(0, named=True)
    assert (found["n"], found["n_before"], found["n_centre"]) == (296, 296, 296)
    assert found["n_centre_before"] < 296
    assert found["fm_si_change"] is None
    assert found["linear_label_bacc_change"] is None
    assert np.isfinite([found["croma_change"], found["ri_change"]]).all()
