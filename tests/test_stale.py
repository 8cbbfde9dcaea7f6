"""What is out of date is told by whatever shows it, in one sentence, and refused on request."""

import re
import shutil
import warnings

import anndata
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from cohorts import random_cohort
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.warehouse import identities, layout
from croma_sql.warehouse.states.stored import stored_tables
from croma_sql.warehouse.states.telling import tables_read

MARGINS = """
    SELECT sample_id, label, confounder, group_id FROM samples
"""
UNITS = "SELECT sample_id, unit, confounder AS acquisition FROM samples WHERE unit IS NOT NULL"
VECTORS = "vectors of encoder 'e' changed"
ROWS = "rows of benchmark 'b' changed"
SHOWN = [  # verbs that show margins, and what they are asked
    ["summary"],
    ["summary", "--intervals"],
    ["strata", "--by", "label"],
    ["strata"],
    ["strata", "--tail"],
    ["compare", "--draws", "9"],
    ["compare", "--pairs"],
    ["compare", "--overall"],
    ["sql", "SELECT margin FROM margins"],
    ["sql", 'SELECT median(margin) FROM "margins_at"(1)'],
    ["sql", "WITH x AS (FROM encoder_panel_at(5)) SELECT croma FROM x"],
]
EXPORTS = [
    ["export", "table", "W", "margins", "--output", "out.csv"],
    ["export", "table", "W", "SELECT sample_id FROM first_ranks", "--output", "out.parquet"],
    ["export", "anndata", "W", "in.h5ad", "--output", "out.h5ad", "--encoder", "e",
     "--benchmark", "b"],
    ["export", "anndata", "W", "in.h5ad", "--output", "out.h5ad", "--query",
     "SELECT sample_id, margin FROM margins WHERE encoder = 'e'"],
    ["export", "geojson", "W", "--output", "out", "--encoder", "e", "--benchmark", "b"],
]  # fmt: skip


def frame(seed=0, n=120):
    cohort = random_cohort(seed, n=n, d=8, groups=24)
    i = np.arange(n)
    return cohort.frame().with_columns(
        sample_id=pl.Series([f"s{one:03d}" for one in i]),
        unit=pl.Series([f"u{one // 2}" if one < 40 else None for one in i]),
        confounder=pl.Series([f"centre{one % 2}" for one in i]),
        group_id=pl.Series([f"slide{one // 6}-{one % 2}" for one in i]),
        slide_id=pl.lit("slide 1"),
        x=pl.Series(i * 256.0),
        y=pl.lit(0.0),
        coord_unit=pl.lit("px"),
        tile_size=pl.lit(256.0),
    )


def put(root, encoder="e", seed=0, samples=None):
    tiles = frame(seed)
    samples = frame().drop("embedding") if samples is None else samples
    croma_sql.import_embeddings(root, tiles, encoder=encoder, dataset="d", samples=samples)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Of every family of stored tables one, all up to date."""
    root = tmp_path_factory.mktemp("stale") / "W"
    put(root)
    put(root, "f", 1)
    croma_sql.add_benchmark(root, "b", MARGINS)
    croma_sql.add_benchmark(root, "u", UNITS)
    croma_sql.score(root, k=5, first_ranks=True)
    croma_sql.score_consistency(root, permutations=3)
    croma_sql.score_centre(root, trials=2, folds=2, k_range=(2, 3))
    anndata.AnnData(obs=frame().select("sample_id").to_pandas().set_index("sample_id")).write_h5ad(
        root.with_name("in.h5ad")
    )
    return root


@pytest.fixture
def root(kept, tmp_path, monkeypatch):
    shutil.copytree(kept, tmp_path / "W")
    shutil.copy(kept.with_name("in.h5ad"), tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "W"


def run(*arguments):
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.stdout, done.stderr


def states(root):
    """States by table, benchmark and encoder, and reasons of what is not up to date."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", croma_sql.StaleWarning)
        found = croma_sql.connect(root).sql("FROM stored_tables").pl()
    assert (found["is_stale"] == (found["state"] != "up to date")).all()
    return {
        (row["table_name"], row["benchmark"], row["encoder"]): row["reason"]
        for row in found.to_dicts()
    }


def reasons(root, benchmark=None, encoder=None):
    return {
        reason
        for (_, of, one), reason in states(root).items()
        if benchmark in (None, of) and encoder in (None, one)
    }


def change_vectors(root):
    put(root, seed=7)


def change_label(root):
    samples = frame().drop("embedding")
    flipped = pl.when(pl.col("sample_id") == "s000").then(pl.lit("class0")).otherwise("label")
    other = pl.when(pl.col("sample_id") == "s000").then(pl.lit("class1")).otherwise("label")
    first = samples["label"][0]
    samples = samples.with_columns((other if first == "class0" else flipped).alias("label"))
    croma_sql.import_samples(root, samples, dataset="d")


def change_benchmark(root):
    croma_sql.add_benchmark(root, "b", MARGINS + " WHERE sample_id <> 's000'")


def remove_benchmark(root):
    layout.benchmark_path(root, "b").unlink()


def remove_encoder(root):
    shutil.rmtree(root / "embeddings" / "encoder=e")


def remove_samples(root):
    shutil.rmtree(root / "samples")


AGAIN = "Run croma-sql score W"
GONE = "Add again what was removed, or delete what was computed from it"
CHANGES = {
    change_vectors: ("b / e", VECTORS, AGAIN),
    change_label: ("b / e, b / f", ROWS, AGAIN),
    change_benchmark: ("b / e, b / f", ROWS, AGAIN),
    remove_benchmark: ("b / e, b / f", "benchmark 'b' was removed", GONE),
    remove_encoder: ("b / e", "encoder 'e' was removed", GONE),
    remove_samples: ("b / e, b / f", "all samples were removed", GONE),
}


def test_nothing_is_said_of_what_is_up_to_date(root):
    assert set(states(root).values()) == {None}
    for arguments in SHOWN[:1] + SHOWN[-1:]:
        assert run(arguments[0], "W", *arguments[1:], "--strict")[::2] == (0, "")
    assert run("check", "W", "--strict") == (0, "W is whole\n", "")
    assert croma_sql.read_margins("W", strict=True)["is_stale"].sum() == 0
    croma_sql.connect("W", strict=True).close()


@pytest.mark.parametrize("change", CHANGES)
def test_every_verb_says_what_is_out_of_date(root, change):
    """One line on stderr beside the numbers; with --strict that line is all."""
    change(root)
    who, reason, cure = CHANGES[change]
    line = f"croma-sql: out of date: {who} ({reason}). {cure}\n"
    for verb, *rest in SHOWN if change in (change_vectors, remove_samples) else SHOWN[:1]:
        code, out, err = run(verb, "W", *rest)
        assert (code, err.count("out of date"), err.count(line)) == (0, 1, 1), (verb, rest)
        assert out
        assert run(verb, "W", *rest, "--strict") == (1, "", line), (verb, rest)


@pytest.mark.parametrize("arguments", EXPORTS)
def test_exports_say_it_and_write_nothing_that_is_refused(root, arguments):
    change_vectors(root)
    line = f"croma-sql: out of date: b / e ({VECTORS}). {AGAIN}\n"
    before = set(root.parent.iterdir())
    assert run(*arguments, "--strict") == (1, "", line)
    assert set(root.parent.iterdir()) == before
    assert run(*arguments)[::2] == (0, line)
    assert len(set(root.parent.iterdir())) == len(before) + 1


def test_an_exported_table_has_it_in_a_column(root):
    change_vectors(root)
    run("export", "table", "W", "margins", "--output", "out.csv")
    found = pl.read_csv("out.csv").group_by("encoder").agg(pl.col("is_stale").all())
    assert sorted(found.rows()) == [("e", True), ("f", False)]


def test_verbs_of_other_families_say_it(root):
    """What they were asked to make again is; what cannot be is told."""
    remove_encoder(root)
    for verb, benchmark in (("consistency", "u"), ("centre", "b")):
        line = f"croma-sql: out of date: {benchmark} / e (encoder 'e' was removed). {GONE}\n"
        options = ["--trials", "2", "--max-k", "3", "--folds", "2"] if verb == "centre" else []
        code, out, err = run(verb, "W", *options)
        assert (code, err.count(line)) == (0, 1)
        assert "is_stale" in out
        assert run(verb, "W", *options, "--strict") == (1, "", line)
    for option in ("--by-pair", "--compare", "--agreement", "--by=label"):
        code, out, err = run("consistency", "W", option, "--strict")
        assert (code, out) == (1, ""), option
        assert "out of date: u / e (encoder 'e' was removed)" in err


@pytest.mark.parametrize("change", [change_label, change_vectors])
def test_scoring_makes_it_up_to_date_again(root, change):
    change(root)
    croma_sql.score(root)
    croma_sql.score_consistency(root, permutations=3)
    croma_sql.score_centre(root, trials=2, folds=2, k_range=(2, 3))
    assert set(states(root).values()) == {None}


def test_reasons_of_every_family(root):
    change_vectors(root)
    found = states(root)
    assert {name for name, _, _ in found} == {
        "typed_neighbours", "neighbours", "units", "unit_pairs", "unit_neighbourhoods",
        "acquisition_pairs", "acquisitions", "silhouettes", "cluster_counts", "clusterings",
        "probe_predictions",
    }  # fmt: skip
    assert {reason for (_, _, one), reason in found.items() if one == "e"} == {VECTORS}
    assert {reason for (_, _, one), reason in found.items() if one == "f"} == {None}
    change_label(root)
    assert reasons(root, "b", "e") == {f"{VECTORS}; {ROWS}"}
    assert reasons(root, "u", "f") == {None}


def test_a_benchmark_that_fails_or_is_of_another_kind(root):
    layout.benchmark_path(root, "b").write_text(UNITS)
    assert reasons(root, "b") == {"benchmark 'b' is of another kind now"}
    layout.benchmark_path(root, "b").write_text("SELECT nothing FROM samples")
    (reason,) = reasons(root, "b")
    assert reason.startswith("benchmark 'b' fails now (benchmark 'b' fails: Binder Error: ")


def test_another_version(root, monkeypatch):
    monkeypatch.setattr("croma_sql.warehouse.scoring.made_of.__version__", "9.9.9")
    assert reasons(root) == {f"made by version {croma_sql.__version__} of croma_sql"}


def test_a_file_that_cannot_be_read_is_not_called_up_to_date(root):
    path = layout.embeddings_path(root, "e", "d")
    path.write_bytes(path.read_bytes()[:100])
    found = {(one.encoder, one.state) for one in stored_tables(root)}
    assert found == {("e", "unknown"), ("f", "up to date")}


# Python


def calls(root):
    h5ad, out = anndata.read_h5ad(root.with_name("in.h5ad")), root.with_name("out.csv")
    one = {"benchmark": "b", "encoder": "e"}
    return {
        "connect": lambda **how: croma_sql.connect(root, **how).close(),
        "read_margins": lambda **how: croma_sql.read_margins(root, **how),
        "summary": lambda **how: croma_sql.summary(root, intervals=True, **how),
        "strata": lambda **how: croma_sql.strata(root, "label", **how),
        "compare": lambda **how: croma_sql.compare(root, draws=9, **how),
        "compare_pairs": lambda **how: croma_sql.compare_pairs(root, **how),
        "compare_overall": lambda **how: croma_sql.compare_overall(root, **how),
        "consistency_summary": lambda **how: croma_sql.consistency_summary(root, **how),
        "consistency_strata": lambda **how: croma_sql.consistency_strata(root, "unit", **how),
        "consistency_agreement": lambda **how: croma_sql.consistency_agreement(root, **how),
        "compare_consistency": lambda **how: croma_sql.compare_consistency(root, draws=9, **how),
        "compare_consistency_pairs": lambda **how: croma_sql.compare_consistency_pairs(root, **how),
        "export_table": lambda **how: croma_sql.export_table(root, "margins", out, **how),
        "to_anndata": lambda **how: croma_sql.to_anndata(h5ad, root, **one, **how),
        "export_geojson": lambda **how: croma_sql.export_geojson(
            root, root.with_name("slides"), **one, **how
        ),
    }


def test_python_warns_once_and_refuses_with_strict(root):
    change_vectors(root)
    for name, call in calls(root).items():
        with pytest.raises(croma_sql.StaleError, match=re.escape(VECTORS)):
            call(strict=True)
        with pytest.warns(croma_sql.StaleWarning) as told:
            call()
        assert len(told) == 1, name
        assert told[0].filename == __file__, name
        assert f"/ e ({VECTORS}). Run croma-sql" in str(told[0].message), name


def test_what_is_asked_for_is_what_is_told(root):
    change_vectors(root)
    assert len(croma_sql.read_margins(root, encoder="f", strict=True)) == 120
    assert len(croma_sql.consistency_summary(root, encoder="f", strict=True)) == 1
    assert run("sql", "W", "SELECT count(*) AS n FROM samples", "--strict")[0] == 0
    assert run("sql", "W", "SELECT encoder FROM encoders", "--strict")[0] == 0


@pytest.mark.parametrize(
    ("query", "tables"),
    [
        ("FROM margins", {"typed_neighbours"}),
        ("from MARGINS_AT(3)", {"typed_neighbours"}),
        ("FROM fixed_k_summary", {"neighbours"}),
        ("FROM encoder_panel_at(5)", {"typed_neighbours", "neighbours"}),
        ("FROM clustering_scores", {"clusterings"}),
        ("FROM embeddings", {"harmonised", "pooled"}),
        ("SELECT 1 FROM samples JOIN encoders ON true, stored_tables", set()),
    ],
)
def test_which_tables_a_query_reads(query, tables):
    assert tables <= tables_read(query)
    assert bool(tables) == bool(tables_read(query))
    assert len(tables_read(query) - tables) <= 1


# Cheap, and never wrong


def test_states_read_no_vectors(root, monkeypatch):
    """Only the ends of files of vectors, whatever their size, and no benchmark is run."""
    read = []
    opened = identities.opened

    def counting(path, *how):
        file = opened(path, *how)
        read.append(path)
        return file

    def run_benchmark(*_):
        raise AssertionError("a benchmark was run")

    identities._identity.cache_clear()
    monkeypatch.setattr(identities, "opened", counting)
    monkeypatch.setattr(identities, "A_FOOTER", 1 << 11)
    monkeypatch.setattr("croma_sql.warehouse.states.present.read_benchmark", run_benchmark)
    assert set(states(root).values()) == {None}
    vectors = [layout.embeddings_path(root, encoder, "d") for encoder in "ef"]
    assert [path for path in read if path in vectors] == vectors  # once each: the footer
    read.clear()
    assert set(states(root).values()) == {None}
    assert read == []


def test_attributes_that_no_benchmark_reads_may_change(root, monkeypatch):
    """Then the benchmark is run once, and scoring keeps what it gave."""
    croma_sql.import_samples(root, frame().drop("embedding").with_columns(stain=1), dataset="d")
    assert set(states(root).values()) == {None}
    assert {one.outcome for one in croma_sql.score(root)} == {"up to date"}
    croma_sql.score_consistency(root, permutations=3)
    monkeypatch.setattr("croma_sql.warehouse.states.present._rows", None)
    assert set(states(root).values()) == {None}


def test_what_is_kept_of_rows_is_an_aid(root):
    for text in ("", "[]", '{"x": 1}'):
        (root / "scores" / ".rows.json").write_text(text)
        assert set(states(root).values()) == {None}
    (root / "scores" / ".rows.json").unlink()
    assert set(states(root).values()) == {None}
    change_label(root)
    assert reasons(root, "b") == {ROWS}


def test_a_copy_is_up_to_date_and_a_file_of_one_size_is_another(root):
    """Whatever tool wrote it: of a file that does not say what it holds, all is read."""
    path = layout.embeddings_path(root, "e", "d")
    path.write_bytes(path.read_bytes())
    assert reasons(root, "b", "e") == {None}
    put(root, seed=9)
    assert reasons(root, "b", "e") == {VECTORS}
    table = pq.read_table(path)
    sizes = set()
    for rows in (table, table.take([1, 0, *range(2, len(table))])):
        pq.write_table(rows, path, compression="none", use_dictionary=False)
        sizes.add(path.stat().st_size)
        assert reasons(root, "b", "e") == {VECTORS}
        croma_sql.score(root)
        croma_sql.score_centre(root, trials=2, folds=2, k_range=(2, 3))
        assert reasons(root, "b", "e") == {None}
    assert len(sizes) == 1


# Encoders made from others


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made") / "W"
    put(root)
    croma_sql.add_benchmark(root, "b", MARGINS)
    croma_sql.harmonise(root, encoder="e", benchmark="b", to="h", method="mean", keep=["label"])
    croma_sql.pool(root, encoder="h", to="p", dataset="groups", by=["group_id", "label"])
    croma_sql.score(root)
    return root


@pytest.fixture
def derived(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "W")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "W"


def test_what_is_made_of_what_is_out_of_date_is_too(derived):
    assert set(states(derived).values()) == {None}
    change_vectors(derived)
    found = states(derived)
    assert found["harmonised", None, "h"] == VECTORS
    assert found["pooled", None, "p"] == f"encoder 'h' is stale: {VECTORS}"
    assert found["typed_neighbours", "b", "h"] == f"encoder 'h' is stale: {VECTORS}"
    told = (
        f"croma-sql: out of date: b / h (encoder 'h' is stale: {VECTORS}). "
        "Run croma-sql harmonise or pool, then croma-sql score W\n"
    )
    assert run("summary", "W", "--encoder", "h")[::2] == (0, told)
    assert run("sql", "W", "FROM harmonised_encoders", "--strict")[:2] == (1, "")
    croma_sql.score(derived)
    assert run("summary", "W", "--encoder", "h")[::2] == (0, told)
    croma_sql.harmonise(derived, encoder="e", benchmark="b", to="h", method="mean", keep=["label"])
    assert states(derived)["pooled", None, "p"] == "vectors of encoder 'h' changed"
    croma_sql.pool(derived, encoder="h", to="p", dataset="groups", by=["group_id", "label"])
    croma_sql.score(derived)
    assert set(states(derived).values()) == {None}


@pytest.mark.parametrize(
    ("change", "harmonised", "pooled"),
    [
        (remove_benchmark, "benchmark 'b' was removed", None),
        (remove_encoder, "encoder 'e' was removed", None),
        (change_label, ROWS, "samples of dataset 'd' changed"),
    ],
)
def test_why_made_encoders_are_out_of_date(derived, change, harmonised, pooled):
    change(derived)
    found = states(derived)
    of_source = f"encoder 'h' is stale: {harmonised}"
    assert found["harmonised", None, "h"] == harmonised
    assert found["pooled", None, "p"] == "; ".join(filter(None, [pooled, of_source]))


# check and info


def test_check_and_info_tell_what_is_out_of_date(root):
    change_vectors(root)
    code, out, err = run("check", "W")
    assert (code, out) == (0, "W is whole, but not all of it is up to date\n")
    assert err.startswith(f"croma-sql: out of date: b / e, u / e ({VECTORS}). Run croma-sql score")
    assert run("check", "W", "--strict") == (1, "", err)
    assert croma_sql.check("W", strict=True) == [err.removeprefix("croma-sql: ").rstrip("\n")]
    with pytest.warns(croma_sql.StaleWarning, match=re.escape(VECTORS)):
        assert croma_sql.check(root) == []
    rows = re.findall(r"(\w+) +b +e .*stale +(.*?) *$", run("info", "W")[1], re.MULTILINE)
    assert rows == [(name, VECTORS) for name in ("typed_neighbours", "neighbours", "centre")]
