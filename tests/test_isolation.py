"""One confounder by itself: neighbours that agree in further columns, and what that brings out."""

import json

import duckdb
import naive
import numpy as np
import numpy.testing as npt
import polars as pl
import pyarrow.parquet as pq
import pytest
from cohorts import AWKWARD, PLANTED, planted, random_cohort
from mistakes import SELECT, import_tiles, raises, tiles

import croma_sql
from croma_sql.warehouse.scoring.memory import Cut

MATCHED = SELECT.replace(" FROM", ", site AS match_site, stain AS match_stain FROM")
COHORTS = {
    "two by two": random_cohort(3, n=150),
    "many cells": random_cohort(4, n=240, labels=5, confounders=4, groups=40),
    "unbalanced cells": AWKWARD["unbalanced cells"](3),
    "duplicates": AWKWARD["duplicates"](3),  # of integers, whose distances no rounding touches
}
NULL = {"on_undefined": "null"}


def with_strata(cohort, seed=0):
    """Sites and stains in unequal numbers; one label, one confounder or one row in some of them."""
    frame = cohort.frame()
    rng = np.random.default_rng(seed)
    site = rng.choice(["A", 'B, the "second"', "Ü"], size=len(frame), p=[0.6, 0.3, 0.1])
    site[(cohort.label == "class0") & (rng.random(len(site)) < 0.1)] = "one label"
    site[(cohort.confounder == "centre0") & (rng.random(len(site)) < 0.1)] = "one confounder"
    site[np.argmax(cohort.ids)] = "one row"
    return frame.with_columns(
        site=pl.Series(site), stain=pl.Series(rng.integers(2, size=len(site)))
    )


def scored(root, frame, select=MATCHED, **options):
    import_tiles(root, frame)
    croma_sql.add_benchmark(root, "b", select)
    croma_sql.score(root, **NULL, **options)
    return croma_sql.connect(root)


@pytest.fixture(params=["small", "by blocks", "part by part"])
def searched_as(request, monkeypatch):
    """As small scopes are, as large ones are, and as those that do not fit into memory."""
    if request.param != "small":
        monkeypatch.setattr("croma_sql.udfs.neighbours.search.SMALL", 0)
        monkeypatch.setattr("croma_sql.udfs.neighbours.search.WORTH_SPREADING", 0)
    if request.param == "part by part":
        monkeypatch.setattr("croma_sql.warehouse.scoring.parts.ROWS_PER_PART", 30)
        monkeypatch.setattr("croma_sql.warehouse.scoring.edge_tables.GROUP_ROWS", 64)
        monkeypatch.setattr("croma_sql.warehouse.scoring.parts.cut", lambda *_: Cut(False, 64, 1))
    return request.param


# What matching means


@pytest.mark.parametrize("name", COHORTS)
def test_neighbours_agree_in_every_match_column(root, name, searched_as):
    frame = with_strata(COHORTS[name])
    con = scored(root, frame, m=9, k=15, first_ranks=True)
    expected = naive.neighbours(
        *(
            frame[c].to_list()
            for c in ("embedding", "label", "confounder", "group_id", "sample_id")
        ),
        match=frame.select("site", "stain").rows(),
    )
    expected = dict(zip(frame["sample_id"], expected, strict=True))
    typed = con.sql("FROM typed_neighbours").pl()
    nearest = con.sql("SELECT * REPLACE ('ANY' AS type) FROM neighbours").pl()
    found = {
        key: rows
        for key, rows in pl.concat(
            edges.select("sample_id", "type", "rank", "neighbour_id", "distance")
            for edges in (typed, nearest)
        ).group_by("sample_id", "type")
    }
    sure = {
        sample: name == "duplicates" or np.diff([d for d, _ in row["ANY"]]).min(initial=1) > 1e-13
        for sample, row in expected.items()
    }
    for sample, row in expected.items():
        for kind, depth in (("SO", 9), ("OS", 9), ("ANY", 15)):
            edges = found.get((sample, kind), typed.clear()).sort("rank")
            distances, ids = zip(*row[kind][:depth], strict=True) if row[kind] else ((), ())
            npt.assert_allclose(edges["distance"], distances, atol=1e-13)
            assert not sure[sample] or edges["neighbour_id"].to_list() == list(ids)
    ranks = con.sql("SELECT sample_id, first_so_rank, first_os_rank FROM first_ranks").fetchall()
    for sample, *ranks_of in ranks:
        places = [naive.first_rank(expected[sample], kind) for kind in ("SO", "OS")]
        assert not sure[sample] or ranks_of == places
    margins = con.sql("SELECT sample_id, d_so, d_os, margin, undefined_reason FROM margins")
    for sample, *numbers, reason in margins.fetchall():
        *values, why = naive.margin(expected[sample], 5)
        assert reason == why
        npt.assert_allclose(np.array(numbers, float), np.array(values, float), atol=1e-11)
    assert {len(expected), len(ranks)} == {len(frame)}


def test_any_cut_makes_the_same_files_of_strata(root, monkeypatch):
    frame = with_strata(AWKWARD["duplicates"](4))
    monkeypatch.setattr("croma_sql.warehouse.scoring.parts.ROWS_PER_PART", 20)
    monkeypatch.setattr("croma_sql.warehouse.scoring.edge_tables.GROUP_ROWS", 64)
    select = MATCHED.replace(" FROM", ", unnest(['x', 'y']) AS subset FROM")
    files = []
    for n, how in enumerate([Cut(True, 1000, 1 << 30), Cut(True, 16, 1 << 20), Cut(False, 16, 1)]):
        monkeypatch.setattr("croma_sql.warehouse.scoring.parts.cut", lambda *_, how=how: how)
        copy = root.with_name(f"copy{n}")
        scored(copy, frame, select, k=5, first_ranks=True)
        files.append([p.read_bytes() for p in sorted((copy / "scores").rglob("*.parquet"))])
    assert files[0] == files[1] == files[2]
    assert croma_sql.check(copy) == []


def test_within_a_subset(root):
    """A sample in two subsets has its strata in each."""
    frame = with_strata(random_cohort(5, n=240, labels=3))
    con = scored(root, frame, """
        SELECT pairs.*, site AS match_site
        FROM croma_label_pairs('samples') AS pairs JOIN samples USING (sample_id)
    """)  # fmt: skip
    margins = con.sql("SELECT subset, sample_id, margin FROM margins").pl()
    for pair in ((0, 1), (0, 2), (1, 2)):
        some = frame.filter(pl.col("label").is_in([f"class{n}" for n in pair]))
        parts = [
            croma_sql.margins(
                *(site[c] for c in ("embedding", "label", "confounder", "group_id")),
                sample_id=site["sample_id"],
            )
            for (name,), site in some.group_by("site")
            if name in ("A", 'B, the "second"')
        ]
        alone = pl.concat(parts).select("sample_id", alone="margin")
        both = margins.filter(pl.col("subset") == "class{} | class{}".format(*pair)).join(
            alone, on="sample_id"
        )
        assert len(both) == len(alone) > 100
        assert both["margin"].equals(both["alone"])


def test_what_matched_stands_beside_the_margins(root):
    frame = with_strata(random_cohort(0, n=90))
    named = MATCHED.replace("match_stain", '"Match_Fär bung"')
    margins = scored(root, frame, named).sql("FROM margins").pl()
    truth = dict(zip(frame["sample_id"], frame.select("site", "stain").rows(), strict=True))
    for sample, matched in margins.select("sample_id", "matched").rows():
        site, stain = truth[sample]
        assert json.loads(matched) == {"site": site, "Fär bung": str(stain)}
    con = scored(root, frame, SELECT)
    assert con.sql("SELECT count(*), count(matched) FROM margins").fetchall() == [(90, 0)]


def test_scores_are_stale_when_what_must_match_changes(root):
    frame = with_strata(random_cohort(0, n=90))
    scored(root, frame)
    assert croma_sql.score(root, **NULL)[0].outcome == "up to date"
    croma_sql.add_benchmark(root, "b", MATCHED.replace("match_stain", "match_other"))
    assert croma_sql.info(root).scores[0].status == "stale"
    croma_sql.add_benchmark(root, "b", SELECT)
    assert croma_sql.score(root, **NULL)[0].outcome == "scored"


# What is refused


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        (
            "nullif(site, 'Ü') AS match_site",
            ("match_site is NULL in", "rows, for samples", "WHERE"),
        ),
        ("site AS match_", ("gives 'match_' too", "match_... columns")),
        ("site AS match_x, stain AS MATCH_X", ("each once",)),
        ("[site] AS match_x", ("column 'match_x' is of type list",)),
    ],
)
def test_what_cannot_be_matched_is_told(root, columns, parts):
    import_tiles(root, with_strata(random_cohort(0, n=90)))
    with raises("benchmark 'b'", *parts):
        croma_sql.add_benchmark(root, "b", SELECT.replace(" FROM", f", {columns} FROM"))


def test_strata_that_lack_a_label_are_counted_and_a_benchmark_that_does_is_refused(root):
    frame = tiles(120, site=["crossed"] * 100 + ["one scanner"] * 20, stain=[0] * 120)
    one = pl.when(pl.col("site") == "one scanner").then(pl.lit("centre0")).otherwise("confounder")
    frame = frame.with_columns(confounder=one)
    import_tiles(root, frame)
    croma_sql.add_benchmark(root, "b", MATCHED)
    with raises("20 of 120 samples have no margin at m = 5: 20 too_few_so", "--on-undefined null"):
        croma_sql.score(root)
    (done,) = croma_sql.score(root, **NULL)
    assert (done.n, done.n_undefined) == (120, 20)
    croma_sql.add_benchmark(root, "b", f"{MATCHED} WHERE confounder = 'centre0'")
    with raises("'confounder' has one value in all", "at least two labels and two confounders"):
        croma_sql.score(root, **NULL)
    croma_sql.add_benchmark(root, "b", MATCHED.replace("label,", "site AS label,"))
    croma_sql.score(root, **NULL)  # two labels, though one in each stratum
    assert croma_sql.connect(root).sql("SELECT count(margin) FROM margins").fetchall() == [(0,)]


def test_scores_from_before_there_was_matching_are_told_and_made_again(root):
    frame = tiles(90)
    scored(root, frame, SELECT, k=5)
    for path in (root / "scores").rglob("*.parquet"):
        with pq.ParquetFile(path) as file:
            about = json.loads(file.metadata.metadata[b"croma_sql"]) | {"fingerprint": "of then"}
            table = file.read().drop_columns("matched")
        pq.write_table(table.replace_schema_metadata({"croma_sql": json.dumps(about)}), path)
    with raises("files of the warehouse cannot be read", "matched", "croma-sql check"):
        croma_sql.connect(root)
    problems = croma_sql.check(root)
    assert len(problems) == 2
    assert all("has other columns than scores have" in problem for problem in problems)
    croma_sql.score(root, k=5, **NULL)
    assert croma_sql.check(root) == []
    assert croma_sql.connect(root).sql("SELECT count(*) FROM margins").fetchall() == [(90,)]


# croma_isolated


def test_isolated_strata_are_those_with_two_labels_and_two_confounders(con):
    frame = with_strata(random_cohort(6, n=300)).rename({"site": "Site"})
    con.register("frame_of_tiles", frame)
    for match in ("Site", ["Site"], ["stain", "Site"], "stain"):
        found = con.sql("FROM croma_isolated('frame_of_tiles', $m)", params={"m": match}).pl()
        names = [match] if isinstance(match, str) else match
        two = (pl.col(c).n_unique().over(names) > 1 for c in ("label", "confounder"))
        kept = frame.filter(*two).select(
            "sample_id", "label", "confounder", "group_id",
            *(pl.col(name).alias(f"match_{name}") for name in names),
        )  # fmt: skip
        assert found.select(kept.columns).sort("sample_id").equals(kept.sort("sample_id"))
        assert set(found.columns) == set(kept.columns)
        assert len(kept) < 300 or match == "stain"


@pytest.mark.parametrize("match", ["site", "['stain', 'Site', 'elsewhere']", "[]", "NULL"])
def test_columns_that_are_not_there_are_told(con, match):
    con.register("frame_of_tiles", with_strata(random_cohort(6, n=90)).rename({"site": "Site"}))
    match = match if match[0] in "[N" else f"'{match}'"
    told = "only [02] of these is a column"
    with pytest.raises(Exception, match=told):
        con.sql(f"FROM croma_isolated('frame_of_tiles', {match})").fetchall()


def test_rows_without_a_stratum_are_named_by_the_benchmark(root):
    frame = with_strata(random_cohort(6, n=90))
    odd = pl.col("sample_id") == "s00042"
    hole = pl.when(odd).then(None)
    import_tiles(root, frame.with_columns(site=hole.otherwise("site")))
    with raises("match_site is NULL in 1 of", "'s00042'"):
        croma_sql.add_benchmark(root, "b", "FROM croma_isolated('samples', 'site')")
    alone = pl.when(odd).then(pl.lit("alone")).otherwise("site")
    import_tiles(root, frame.with_columns(alone.alias("site"), label=hole.otherwise("label")))
    with raises("label is NULL in 1 of", "'s00042'"):
        croma_sql.add_benchmark(root, "b", "FROM croma_isolated('samples', 'site')")


# Which nuisance dominates


@pytest.fixture(scope="module", params=range(3))
def warehouse(request, tmp_path_factory):
    """Scanner and centre in one run, each by itself and as they come."""
    samples, vectors = planted(request.param)
    root = tmp_path_factory.mktemp("planted") / "warehouse"
    for encoder, values in vectors.items():
        croma_sql.import_embeddings(
            root, values, encoder=encoder, dataset="d", samples=samples, sample_id="sample_id"
        )
    for factor, other in (("scanner", "centre"), ("centre", "scanner")):
        croma_sql.add_benchmark(root, factor, f"""
            FROM croma_isolated('samples', '{other}', label := 'class', confounder := '{factor}',
                                group_id := 'slide')
        """)  # fmt: skip
        croma_sql.add_benchmark(root, f"{factor} as it comes", f"""
            SELECT sample_id, class AS label, {factor} AS confounder, slide AS group_id FROM samples
        """)  # fmt: skip
    croma_sql.score(root, **NULL)
    return croma_sql.connect(root)


def by_effect(factor):
    return sorted(PLANTED, key=lambda encoder: PLANTED[encoder][factor], reverse=True)


def test_matching_recovers_each_planted_order_and_scoring_as_it_comes_does_not(warehouse):
    """Most fragile first: scanner most, both, centre most, neither; and the other way round."""
    for factor, name in enumerate(("scanner", "centre")):
        order = dict(
            warehouse.execute("""
                SELECT benchmark, list(encoder ORDER BY croma) FROM encoder_summary
                WHERE starts_with(benchmark, $name) GROUP BY benchmark
            """, {"name": name}).fetchall()
        )  # fmt: skip
        assert order[name] == by_effect(factor)
        assert order[f"{name} as it comes"] == [
            "both",
            *(e for e in by_effect(factor) if e != "both"),
        ]


def test_which_nuisance_dominates_is_one_query(warehouse):
    """For each tile of the centres that share their scanners; elsewhere nothing can be said."""
    found = warehouse.sql("""
        SELECT encoder, centre, count(*), count(dominant), avg((dominant = 'scanner')::INTEGER)
        FROM dominant_confounders(['scanner', 'centre'])
        GROUP BY ALL
    """).fetchall()
    assert len(found) == 4 * 5
    for encoder, centre, n, defined, scanner in found:
        if centre not in ("centre0", "centre1"):
            assert defined == 0
            continue
        assert n == defined == 150
        expected = {"scanner most": 1.0, "centre most": 0.0}.get(encoder, 0.5)
        assert scanner == pytest.approx(expected, abs=0.1 if expected != 0.5 else 0.4)


def test_dominant_confounders_by_hand(root):
    """Margins at m = 1. By x they are those of tests/test_sql.py: 2/3, -2/3, 2/3, -2/3.

    By y, a and d are of one confounder, b and c of the other, so that every SO stays where it is,
    at 0.2, and every OS is at 1 - 0.6 = 0.4: (0.4 - 0.2) / (0.4 + 0.2) = 1/3 throughout.
    """
    frame = pl.DataFrame(
        {
            "sample_id": list("abcd"),
            "embedding": pl.Series(
                [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8]], dtype=pl.Array(pl.Float64, 2)
            ),
            "kind": ["t", "t", "n", "n"],
            "x": ["1", "2", "1", "2"],
            "y": ["1", "2", "2", "1"],
            "margin": [9, 9, 9, 9],
        }
    )
    import_tiles(root, frame)
    select = "SELECT sample_id, kind AS label, {} AS confounder, sample_id AS group_id FROM samples"
    for confounder in "xy":
        croma_sql.add_benchmark(root, confounder, select.format(confounder))
    croma_sql.add_benchmark(root, "abc", select.format("y") + " WHERE sample_id <> 'd'")
    croma_sql.score(root, **NULL)
    con = croma_sql.connect(root)
    found = con.sql("""
        SELECT sample_id, label, group_id, dominant, margin, map_values(margins), dataset
        FROM dominant_confounders(['x', 'y'], m := 1) ORDER BY sample_id
    """).fetchall()
    third, two, minus_two = (pytest.approx(n / 3) for n in (1, 2, -2))
    for row, expected in zip(
        found,
        [
            ("a", "t", "a", "y", third, two, third, "d"),
            ("b", "t", "b", "x", minus_two, minus_two, third, "d"),
            ("c", "n", "c", "y", third, two, third, "d"),
            ("d", "n", "d", "x", minus_two, minus_two, third, "d"),
        ],
        strict=True,
    ):
        *others, margins, dataset = row
        assert (*others, *margins, dataset) == expected
    partly = con.sql("""
        SELECT sample_id, dominant, margin, map_keys(margins), label
        FROM dominant_confounders(['y', 'abc'], m := 1) ORDER BY sample_id
    """).fetchall()
    assert partly == [
        ("a", None, None, ["y", "abc"], "t"),
        ("b", "y", third, ["y", "abc"], "t"),
        ("c", None, None, ["y", "abc"], "n"),
        ("d", None, None, ["y"], "n"),
    ]
    with pytest.raises(
        Exception, match=r'nothing has been scored of benchmark.s. "w", "z"; the view'
    ):
        con.sql("FROM dominant_confounders(['x', 'z', 'w'])").fetchall()
    for names in ("['x', 'x']", "['x', NULL]", "NULL"):
        with pytest.raises(duckdb.Error, match="it is a list of names, each once"):
            con.sql(f"FROM dominant_confounders({names})").fetchall()


def test_a_sample_in_several_subsets_counts_with_the_median_of_its_margins(root):
    frame = random_cohort(1, n=200, labels=3).frame()
    con = scored(root, frame, "FROM croma_label_pairs('samples')")
    found = con.sql("SELECT sample_id, margin FROM dominant_confounders(['b'])").pl()
    medians = con.sql("FROM margins").pl().group_by("sample_id").agg(pl.col("margin").median())
    both = found.join(medians, on="sample_id")
    assert len(both) == len(medians) == 200
    npt.assert_allclose(both["margin"], both["margin_right"], atol=1e-15)
