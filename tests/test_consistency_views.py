"""What the views of consistency answer: loops over vectors, and encoders whose fault is planted."""

import re
from importlib.resources import files

import duckdb
import numpy as np
import polars as pl
import pytest
import scanned

import croma_sql
from croma_sql.session import SOURCES, VIEWS

TWIN = 3  # HXR2 is a second device of the model HXR1
PAIRS = [(a, b) for a in range(4) for b in range(4) if a != b]
KEYS = ["acquisition_a", "acquisition_b"]


def cosine(u, v):
    return 1 - u @ v / np.linalg.norm(u) / np.linalg.norm(v)


def order(point, others, left_out=None):
    """Numbers of the others, nearest first, of equals the first."""
    numbers = [j for j in range(len(others)) if j != left_out]
    return sorted(numbers, key=lambda j: (cosine(point, others[j]), j))


def twins():
    vectors = scanned.good(0, n=24, d=16, noise=0.8)
    vectors[TWIN] = vectors[TWIN - 1] + 0.01 * scanned.vectors(1, n=24, d=16)[0]
    return vectors


ATTRIBUTES = {
    "stain": ["old", "new", None] * 8,
    'it\'s "odd"': list(range(24)),
    "distance": ["an attribute"] * 24,
    "Rank": [False] * 24,
    "iok": ["too"] * 24,
}


@pytest.fixture(scope="module")
def vectors():
    return twins()


@pytest.fixture(scope="module")
def con(tmp_path_factory, vectors):
    root = tmp_path_factory.mktemp("views") / "W"
    return scanned.warehouse(root, {"e": vectors}, ATTRIBUTES, per_unit=3)


def of_pairs(vectors, statistic):
    return {(scanned.SCANNERS[a], scanned.SCANNERS[b]): statistic(a, b) for a, b in PAIRS}


def assert_pairs(found, expected):
    """Rows of acquisition_a, acquisition_b and a value."""
    assert {(a, b): value for a, b, value in found} == pytest.approx(expected, abs=1e-12)


def test_pairs_of_acquisitions_agree_with_loops(con, vectors):
    def rank(a, b):
        return np.array([order(vectors[a][p], vectors[b]).index(p) + 1 for p in range(24)])

    def d_cos(a, b):
        return np.mean([cosine(vectors[a][p], vectors[b][p]) for p in range(24)])

    def mantel(a, b):
        sides = [[cosine(v[i], v[j]) for i in range(24) for j in range(i)] for v in vectors[[a, b]]]
        return np.corrcoef(sides)[0, 1]

    def profile(a, b, p):
        sides = [[cosine(v[p], v[q]) for q in range(24) if q != p] for v in vectors[[a, b]]]
        return np.corrcoef(sides)[0, 1]

    expected = {
        "d_cos": d_cos,
        "mr_1nn": lambda a, b: np.mean(rank(a, b) == 1),
        "mr_1nn_symmetric": lambda a, b: np.mean([rank(a, b) == 1, rank(b, a) == 1]),
        "top_3": lambda a, b: np.mean(rank(a, b) <= 3),
        "top_5": lambda a, b: np.mean(rank(a, b) <= 5),
        "top_10": lambda a, b: np.mean(rank(a, b) <= 10),
        "mantel_r": mantel,
        "profile_r": lambda a, b: np.mean([profile(a, b, p) for p in range(24)]),
    }
    found = con.sql("FROM acquisition_pairs").pl()
    assert found.select("benchmark", "encoder", "n").unique().rows() == [("scanners", "e", 24)]
    for name, statistic in expected.items():
        assert_pairs(found.select(*KEYS, name).rows(), of_pairs(vectors, statistic))
    assert found["mr_1nn"].n_unique() > 3  # or nothing would be told apart
    assert (found["mr_1nn"] != found["mr_1nn_symmetric"]).any()
    summary = con.sql("FROM consistency_summary").pl()
    for name in ("d_cos", "mr_1nn", "top_3", "top_5", "top_10", "mantel_r", "profile_r"):
        assert summary[name].item() == pytest.approx(found[name].mean(), abs=1e-12)
    assert summary.select("n_units", "n_acquisitions").row(0) == (24, 4)


def test_intra_distance_and_spread_agree_with_loops(con, vectors):
    found = con.sql("SELECT acquisition, unit, intra_distance, n_samples FROM units").pl()
    for s, scanner in enumerate(scanned.SCANNERS):
        of_one = found.filter(pl.col("acquisition") == scanner).sort("unit")
        expected = [
            np.mean([cosine(vectors[s][p], vectors[s][q]) for q in range(24) if q != p])
            for p in range(24)
        ]
        assert of_one["intra_distance"].to_numpy() == pytest.approx(np.array(expected), abs=1e-12)
    assert set(found["n_samples"]) == {3}
    mean = con.sql("SELECT intra_distance FROM consistency_summary").fetchall()[0][0]
    assert mean == pytest.approx(found["intra_distance"].mean(), abs=1e-12)
    everything = vectors.reshape(-1, vectors.shape[-1])
    pairs = [cosine(everything[i], everything[j]) for i in range(96) for j in range(i)]
    together = con.sql(
        "SELECT n_vectors, mean_distance FROM acquisitions WHERE acquisition IS NULL"
    )
    assert together.fetchall() == [(96, pytest.approx(np.mean(pairs), abs=1e-12))]


def test_iok_agrees_with_its_definition_at_every_k(con, vectors):
    near = [[order(vectors[s][p], vectors[s], left_out=p) for p in range(24)] for s in range(4)]
    found = dict(con.sql("SELECT k, iok FROM iok").fetchall())
    assert sorted(found) == list(range(1, 24))
    for k in range(1, 24):
        shared = [
            len(set.intersection(*(set(near[s][p][:k]) for s in range(4)))) for p in range(24)
        ]
        assert found[k] == pytest.approx(np.mean(shared) / k, abs=1e-12)
        at_k = con.sql(f"SELECT n_shared, iok FROM unit_neighbourhoods_at({k}) ORDER BY unit")
        assert at_k.fetchall() == [(n, pytest.approx(n / k)) for n in shared]
    assert found[23] == 1
    told = con.sql("SELECT iok_1, iok_5, iok_10 FROM consistency_summary").fetchall()[0]
    assert told == (found[1], found[5], found[10])
    for k in (1, 3, 10, 22):
        asked = f"SELECT sum(n_shared) / sum(k) FROM unit_neighbourhoods_at('{k}')"
        assert con.sql(asked).fetchall() == [(found[k],)]


@pytest.mark.parametrize("k", ["0", "24", "2.5", "NULL", "'x'", "[5]", "99999999999999999999999"])
def test_a_k_that_was_not_compared_is_refused(con, k):
    with pytest.raises(duckdb.Error, match='benchmark "scanners" were compared to a depth of 23'):
        con.sql(f"FROM unit_neighbourhoods_at({k})").fetchall()


def test_two_devices_of_one_model_are_the_most_consistent_pair(con):
    for order_by in ("d_cos", "mr_1nn DESC", "mantel_r DESC"):
        best = con.sql(f"SELECT acquisition_a, acquisition_b FROM acquisition_pairs "
                       f"ORDER BY {order_by} LIMIT 2").fetchall()  # fmt: skip
        assert set(best) == {("HXR1", "HXR2"), ("HXR2", "HXR1")}


def test_pairs_pivot_into_a_heat_map(con):
    heat_map = con.sql("""
        PIVOT acquisition_pairs ON acquisition_b USING any_value(mr_1nn)
        GROUP BY benchmark, encoder, acquisition_a ORDER BY acquisition_a
    """).pl()
    assert heat_map.columns[3:] == heat_map["acquisition_a"].to_list() == scanned.SCANNERS
    assert [heat_map[s].null_count() for s in scanned.SCANNERS] == [1, 1, 1, 1]
    there = con.sql("SELECT acquisition_a, acquisition_b, mr_1nn FROM acquisition_pairs").fetchall()
    for a, b, value in there:
        assert heat_map.filter(acquisition_a=a)[b].item() == value


def test_metrics_group_by_any_attribute(con):
    """A stratum's numbers are those of its units' rows, whichever view is asked."""
    by_unit = con.sql("FROM unit_consistency").pl()
    assert len(by_unit) == 24
    columns = ["d_cos", "mr_1nn", "top_5", "profile_r", "intra_distance", "iok_1", "iok_10"]
    expected = by_unit.group_by("stain").agg(pl.col(columns).mean()).sort("stain").rows()
    assert len(expected) == 3
    found = con.sql("""
        WITH moved AS (
            SELECT stain, avg(distance), avg((rank = 1)::INTEGER), avg((rank <= 5)::INTEGER),
                avg(profile_r)
            FROM unit_pairs GROUP BY stain
        ),
        spread AS (SELECT stain, avg(intra_distance) FROM units GROUP BY stain),
        one AS (SELECT stain, avg(iok) FROM unit_neighbourhoods_at(1) GROUP BY stain),
        ten AS (SELECT stain, avg(iok) FROM unit_neighbourhoods_at(10) GROUP BY stain)
        SELECT moved.*, spread.* EXCLUDE (stain), one.* EXCLUDE (stain), ten.* EXCLUDE (stain)
        FROM moved
        JOIN spread ON spread.stain IS NOT DISTINCT FROM moved.stain
        JOIN one ON one.stain IS NOT DISTINCT FROM moved.stain
        JOIN ten ON ten.stain IS NOT DISTINCT FROM moved.stain
        ORDER BY moved.stain NULLS FIRST
    """).fetchall()
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-12)
    whole = con.sql("FROM consistency_summary").pl()
    for name in columns:
        assert whole[name].item() == pytest.approx(by_unit[name].mean(), abs=1e-12)


def test_a_unit_has_the_attributes_that_its_samples_share(con):
    found = con.sql("FROM unit_attributes ORDER BY unit").pl()
    assert found.columns == ["benchmark", "unit", "dataset", "patient", "scanner", *ATTRIBUTES]
    assert found["patient"].equals(found["unit"], check_names=False)
    assert found["scanner"].null_count() == 24  # in which its samples differ
    assert found["dataset"].to_list() == ["d"] * 24
    for name, values in ATTRIBUTES.items():
        assert found[name].to_list() == values
    beside = con.sql("FROM unit_pairs").pl()
    assert beside["distance"].dtype == pl.Float64  # and not the attribute of that name
    assert "Rank" not in beside.columns
    assert 'it\'s "odd"' in beside.columns
    assert con.sql("SELECT iok FROM unit_neighbourhoods_at(2)").pl()["iok"].dtype == pl.Float64


def relations():
    """Every view of consistency, as it is asked: {name: text}."""
    names = [path.rpartition("/")[2] for path in VIEWS if path.startswith("consistency/")]
    arguments = {
        "collapse_check_at": "(0.01)",
        "unit_attributes_but": "([]::VARCHAR[])",
        "unit_neighbourhoods_at": "(5)",
    }
    return {name: name + arguments.get(name, "") for name in names}


def in_any_order(rows):
    return rows.sort([name for name in rows.columns if rows[name].null_count() < len(rows)])


def test_attributes_may_go_by_any_word_of_the_views(tmp_path):
    folder = files("croma_sql.sql") / "views" / "consistency"
    texts = [file.read_text(encoding="utf-8").lower() for file in folder.iterdir()]
    words = {word for text in texts for word in re.findall(r"[a-z]\w*", text)}
    words -= {"sample_id", "patient", "scanner", "embedding", "dataset"}
    answers = []
    for name, attributes in (("plain", []), ("hostile", sorted(words))):
        said = {word: [f"of {word}"] * 12 for word in attributes}
        encoders = {"e": scanned.good(0, n=12, d=8), "f": scanned.compact(1, n=12, d=48)}
        with scanned.warehouse(tmp_path / name, encoders, said, permutations=0) as con:
            answers.append({view: con.sql(f"FROM {it}").pl() for view, it in relations().items()})
    plain, hostile = answers
    assert "of median" in hostile["unit_pairs"].row(0)
    for view, rows in plain.items():
        assert len(rows) > 0, view
        assert in_any_order(hostile[view].select(rows.columns)).equals(in_any_order(rows)), view


def test_examples_in_headers_keep_benchmarks_and_encoders_apart(con):
    examples = []
    for path in VIEWS:
        if path.startswith("consistency/"):
            header = (files("croma_sql.sql") / "views" / f"{path}.sql").read_text(encoding="utf-8")
            lines = re.findall(r"((?:^--  {12,}\S.*\n)+)", header, re.MULTILINE)
            examples += [re.sub(r"^-- *", " ", text, flags=re.MULTILINE) for text in lines]
    assert len(examples) == 3
    for example in examples:
        found = con.sql(example).pl()
        assert found.columns[:2] == ["benchmark", "encoder"], example
        assert len(found) > 0


def test_a_query_may_call_its_own_tables_by_the_names_of_views(con):
    names = [*relations(), *SOURCES.values(), "member_files", "encoders", "samples"]
    ctes = ", ".join(f"{name} AS (SELECT 1 AS nonsense)" for name in names)
    for view, relation in relations().items():
        asked = relation if "(" in relation else f"main.{relation}"
        plain, within = (
            con.sql(f"{start} SELECT * FROM {asked}").pl() for start in ("", f"WITH {ctes}")
        )
        assert len(plain) > 0, view
        assert in_any_order(within).equals(in_any_order(plain)), view


def test_what_is_known_of_some_samples_holds_for_their_unit(tmp_path):
    """Each scanner's samples are a dataset of their own, and only one has the patients' age."""
    frame = scanned.tiles(scanned.good(0, n=6, d=8), {"age": [30, 40, 50, 60, 70, None]})
    for scanner in scanned.SCANNERS:
        one = frame.filter(scanner=scanner)
        samples = one.drop("embedding", *([] if scanner == "AT2" else ["age"]))
        croma_sql.import_embeddings(
            tmp_path / "W", one, encoder="e", dataset=scanner, samples=samples
        )
    croma_sql.add_benchmark(tmp_path / "W", "scanners", scanned.SELECT)
    croma_sql.score_consistency(tmp_path / "W", permutations=0)
    with croma_sql.connect(tmp_path / "W") as con:
        found = con.sql("SELECT age, dataset FROM unit_attributes ORDER BY unit").fetchall()
    assert found == [(age, None) for age in (30, 40, 50, 60, 70, None)]


def test_attributes_that_are_not_asked_for_cost_nothing(con):
    """Under an aggregate DuckDB leaves the join out, and samples are not read."""
    for view, name in (
        ("unit_pairs", "distance"),
        ("units", "intra_distance"),
        ("unit_neighbourhoods_at(5)", "iok"),
    ):
        read = [
            "sample_id" in con.sql(f"EXPLAIN {query} FROM {view} GROUP BY ALL").fetchall()[0][1]
            for query in (f"SELECT encoder, avg({name})", f"SELECT stain, avg({name})")
        ]
        assert read == [False, True]


def test_incomplete_units_are_counted_and_nowhere_else(tmp_path):
    frame = scanned.tiles(scanned.good(0, n=9, d=8)).filter(
        (pl.col("patient") != "p004") | (pl.col("scanner") != "GT450")
    )
    croma_sql.import_embeddings(
        tmp_path / "W", frame, encoder="e", dataset="d", samples=frame.drop("embedding")
    )
    croma_sql.add_benchmark(tmp_path / "W", "scanners", scanned.SELECT)
    with pytest.raises(croma_sql.CromaSqlError, match="p004"):
        croma_sql.score_consistency(tmp_path / "W", permutations=0)
    (done,) = croma_sql.score_consistency(tmp_path / "W", incomplete="drop", permutations=0)
    assert (done.n_units, done.n_incomplete) == (8, 1)
    with croma_sql.connect(tmp_path / "W") as con:
        assert con.sql("SELECT n_units FROM consistency_summary").fetchall() == [(8,)]
        assert con.sql("SELECT mantel_p FROM acquisition_pairs").pl()["mantel_p"].null_count() == 12
        assert con.sql("SELECT iok_5, iok_10 FROM consistency_summary").fetchall()[0][1] is None
        for view in ("units", "unit_pairs", "unit_consistency", "unit_neighbourhoods_at(1)"):
            assert con.sql(f"FROM {view} WHERE unit = 'p004'").fetchall() == []
