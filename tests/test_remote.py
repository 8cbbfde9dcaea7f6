"""Warehouses and sources on object storage: the same as on a disk, and whole at any time."""

import shlex
import sys
from urllib.parse import quote

import duckdb
import h5py
import numpy as np
import polars as pl
import pytest
from acquired import samples as acquired
from cohorts import random_cohort
from mistakes import SELECT, import_tiles, raises
from storage import bucket, contents, import_and_benchmark
from typer.testing import CliRunner

import croma_sql
from croma_sql.cli.app import app
from croma_sql.exports.tables import failed
from croma_sql.importers.recognise import recognised
from croma_sql.object_storage import OPTIONS
from croma_sql.places import frozen, opened
from croma_sql.warehouse.parquet import _known_footer
from croma_sql.warehouse.publish import publishing
from croma_sql.warehouse.scoring.memory import Cut
from croma_sql.warehouse.scoring.plan import _digest
from croma_sql.warehouse.views import damaged

NULL = {"on_undefined": "null"}


# The same as on a disk


def build(root, source):
    """All that a warehouse can hold."""
    cohort = random_cohort(0, n=80, d=8, groups=40, dtype=np.float16).frame()
    if not source.exists():
        cohort.write_parquet(source)
    croma_sql.import_embeddings(root, source, encoder="e", dataset="é 1", samples=cohort)
    scans = acquired(0).with_row_index("sample_id")
    croma_sql.import_embeddings(root, scans, encoder="e", dataset="scans", samples=scans)
    croma_sql.import_encoders(root, pl.DataFrame({"encoder": ["e"], "is_control": [True]}))
    croma_sql.add_benchmark(root, "b", f"{SELECT} WHERE dataset = 'é 1'")
    paired = "SELECT sample_id, unit, acquisition FROM samples WHERE dataset = 'scans'"
    croma_sql.add_benchmark(root, "scans", paired)
    croma_sql.score(root, k=11, first_ranks=True, **NULL)
    croma_sql.score_consistency(root, permutations=9)
    croma_sql.harmonise(root, encoder="e", benchmark="b", keep=["label"])
    croma_sql.pool(root, encoder="e", by=["group_id"], to="e, slides/Ü", dataset="slides")
    return root


def test_every_byte_and_every_word_is_the_same(storage, tmp_path, monkeypatch):
    """Also where vectors do not fit into memory, which are set aside on this machine."""
    here = build(tmp_path / "W", tmp_path / "tiles.parquet")
    monkeypatch.setattr("croma_sql.warehouse.scoring.parts.cut", lambda *_: Cut(False, 16, 1))
    there = build(bucket("study") / "it's für %20", tmp_path / "tiles.parquet")
    local, remote = contents(here), contents(there)
    assert len(local) >= 20
    assert remote == local
    for verb in ("info W", "sql W 'FROM margins ORDER BY ALL' --format json"):
        said = []
        for root in (here, there):
            arguments = [str(root) if part == "W" else part for part in shlex.split(verb)]
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, done.output
            said.append(done.output.replace(str(root), "W"))
        assert said[1] == said[0]
    assert croma_sql.check(there) == []


# Sources


@pytest.fixture(scope="module")
def sources(storage, tmp_path_factory):
    """The same sources on this machine and on object storage."""
    folder = tmp_path_factory.mktemp("sources")
    cohort = random_cohort(0, n=60, d=8, dtype=np.float16)
    frame = cohort.frame()
    frame.write_parquet(folder / "vectors.parquet")
    frame.write_ipc(folder / "vectors.arrow")
    np.save(folder / "vectors.npy", cohort.vectors)
    frame.drop("embedding").write_csv(folder / "manifest.csv")
    there = bucket("sources") / "of a lab"
    for path in folder.iterdir():
        there.fs.pipe_file(f"{there.path}/{path.name}", path.read_bytes())
    return folder, there


@pytest.mark.parametrize("name", ["vectors.parquet", "vectors.arrow", "vectors.npy"])
def test_sources_are_read_where_they_lie(sources, tmp_path, name):
    found = []
    for folder in sources:
        root = tmp_path / str(len(found))
        options = {"encoder": "e", "dataset": "d", "samples": f"{folder}/manifest.csv"}
        croma_sql.import_embeddings(root, f"{folder}/{name}", **options)
        found.append({name: data for name, data in contents(root).items() if "sources" not in name})
    assert found[1] == found[0]  # but for where they come from


def test_from_one_bucket_into_another(sources, remote):
    command = f"import embeddings '{sources[1]}/vectors.npy' --encoder e --dataset d"
    samples = f"--samples '{sources[1]}/manifest.csv'"
    to = f'--to "{remote}"'
    done = CliRunner().invoke(app, shlex.split(f"{command} {samples} {to}"))
    assert done.exit_code == 0, done.output
    assert done.output.startswith("60 vectors of 8 float16 values as encoder 'e', dataset 'd' of")
    assert croma_sql.check(remote) == []


def slides(folder, names):
    """Files of tiles, and what a lab knows of the slides."""
    (folder / "h5").mkdir()
    for i, name in enumerate(names):
        with h5py.File(folder / "h5" / f"{name}.h5", "w") as file:
            file["features"] = np.random.default_rng(i).random((30, 8), np.float32)
            file["coords"] = np.arange(60).reshape(30, 2)
    slide = {"slide_id": names, "label": ["a", "b"] * 2, "centre": ["x", "x", "y", "y"]}
    pl.DataFrame(slide).write_csv(folder / "slides.csv")


def test_slides_are_imported_as_on_a_disk(remote, tmp_path, monkeypatch):
    """Also where the import was interrupted before its parts were in force."""
    slides(tmp_path, ["007", "b.c", "d", "é"])
    options = {"encoder": "e", "dataset": "d", "samples": tmp_path / "slides.csv"}
    with monkeypatch.context() as interrupted:
        interrupted.setattr("croma_sql.warehouse.slides.slides.locked", lambda root: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            croma_sql.import_embeddings(remote, tmp_path / "h5", **options)
    assert len(contents(remote)) == 3  # marker, a part and its tiles
    croma_sql.import_embeddings(tmp_path / "W", tmp_path / "h5", **options)
    croma_sql.import_embeddings(remote, tmp_path / "h5", **options)
    assert contents(remote) == contents(tmp_path / "W")


def test_slides_of_one_bucket_into_another(storage, remote, tmp_path):
    slides(tmp_path, ["007", "b.c", "d", "é"])
    lab = bucket("lab") / "uploaded"
    lab.fs.put(str(tmp_path), lab.path, recursive=True)
    options = {"encoder": "e", "dataset": "d", "samples": f"{lab}/slides.csv"}
    done = croma_sql.import_embeddings(remote, f"{lab}/h5", **options)
    assert (done.n, done.slides.new, done.dtype) == (120, 4, "float32")
    croma_sql.add_benchmark(
        remote,
        "b",
        "SELECT sample_id, label, centre AS confounder, slide_id AS group_id FROM samples",
    )
    croma_sql.score(remote, **NULL)
    assert croma_sql.check(remote) == []
    for remembered in (_digest, _known_footer):
        remembered.cache_clear()
    before = len(storage.asked)
    assert [one.status for one in croma_sql.info(remote).scores] == ["up to date"]
    read = [path for method, path, *_ in storage.asked[before:] if method == "GET"]
    assert sum("/embeddings/" in path for path in read) == 2  # the end of the part, and its ids
    again = croma_sql.import_embeddings(remote, f"{lab}/h5/*.h5", **options)
    assert (again.slides.new, again.slides.unchanged) == (0, 4)


# Reading


def test_what_is_asked_of_the_storage(storage, remote):
    """Connecting: the marker, a list, and of every file its end; later no byte a second time."""
    import_and_benchmark(remote)
    croma_sql.score(remote, **NULL)
    files = len(contents(remote)) - 2  # without marker and benchmark

    def asked(do):
        before = len(storage.asked)
        do()
        return len(storage.asked) - before

    opened = []
    assert asked(lambda: opened.append(croma_sql.connect(remote))) == 3 + files
    for query in ("FROM margins", "FROM embeddings"):
        opened[0].sql(query).fetchall()
        assert asked(lambda query=query: opened[0].sql(query).fetchall()) == 0
    assert asked(lambda: croma_sql.score(remote, **NULL)) <= 30
    assert asked(lambda: croma_sql.info(remote)) <= 20


def test_large_files_are_streamed(storage, remote):
    with publishing(remote / "d.bin") as file:
        file.write(bytes(20 << 20))
    path = frozen(remote) / "d.bin"
    before = len(storage.asked)
    with opened(path) as file:
        assert sum(map(len, iter(lambda: file.read(1 << 18), b""))) == 20 << 20
    assert len(storage.asked) - before == 2


def test_a_connection_never_mixes_old_and_new(remote):
    """Neither of files that were replaced; connecting again shows the new ones."""
    rng = np.random.default_rng(0)
    n, d = 1500, 512
    ids = [f"s{i}" for i in range(n)]
    samples = pl.DataFrame({"sample_id": ids})
    croma_sql.import_samples(remote, samples, dataset="d")
    old, new = rng.standard_normal((2, n, d)).astype(np.float32)
    croma_sql.import_embeddings(remote, old, encoder="e", dataset="d", ids=ids)
    largest = "SELECT max(list_max(embedding::FLOAT[])) FROM embeddings"
    con = croma_sql.connect(remote)
    assert con.sql("SELECT count(*) FROM embeddings").fetchall() == [(n,)]
    croma_sql.import_embeddings(remote, new, encoder="e", dataset="d", ids=ids)
    with pytest.raises(Exception, match=r"encoder=e/d\.parquet has been replaced meanwhile"):
        con.sql(largest).fetchall()
    con = croma_sql.connect(remote)
    assert con.sql(largest).fetchall() == [(new.max(),)]
    con = croma_sql.connect(remote)
    (remote / "embeddings/encoder=e/d.parquet").unlink()
    for error in (failed, damaged):
        with pytest.raises(duckdb.Error) as raised:
            con.sql(largest).fetchall()
        told = (
            "it's für %20/embeddings/encoder=e/d.parquet has been removed meanwhile; run it again"
        )
        assert str(error(raised.value)) == told


# A warehouse from someone else


def test_benchmarks_read_nothing_but_the_samples(storage, remote):
    import_tiles(remote)
    (bucket("secrets") / "keys.csv").write_text("key\n1\n")
    quoted = str(remote).replace("'", "''")
    sources = {
        "csv": "read_csv('s3://secrets/keys.csv')",
        "text": "read_text('s3://secrets/keys.csv')",
        "glob": "glob('s3://secrets/*')",
        "its own": f"'{quoted}/samples/d.parquet'",
        "of the machine": "read_csv('/etc/passwd')",
    }
    for name, source in sources.items():
        theirs = f"{SELECT} WHERE (SELECT count(*) > 0 FROM {source})"
        (remote / "benchmarks" / f"{quote(name)}.sql").write_text(theirs)
    before = len(storage.asked)
    problems = croma_sql.check(remote)
    assert len(problems) == len(sources)
    for name in sources:
        assert any(f"benchmark {name!r} fails: Permission Error" in one for one in problems)
    assert not any(path.startswith("/secrets") for _, path, *_ in storage.asked[before:])


# What goes wrong


def test_a_folder_that_a_console_has_made_is_empty(remote):
    remote.fs.call_s3("put_object", Bucket=remote.parts[0][:-1], Key=f"{remote.name}/", Body=b"")
    import_tiles(remote)
    assert croma_sql.check(remote) == []


def test_no_warehouse_there(remote):
    with raises(f"{remote} is not a warehouse (it has no warehouse.json)", "croma-sql import"):
        croma_sql.connect(remote)
    (remote / "notes.txt").write_text("other things")
    with raises(f"{remote} exists and is not a warehouse"):
        croma_sql.create_warehouse(remote)


@pytest.mark.parametrize("use", [croma_sql.connect, croma_sql.create_warehouse, import_tiles])
def test_no_such_bucket(storage, use):
    with raises("s3://no-such-bucket/W", "there is no such bucket", "AWS_ENDPOINT_URL"):
        use("s3://no-such-bucket/W")


@pytest.mark.parametrize("use", [croma_sql.connect, croma_sql.create_warehouse, import_tiles])
def test_access_that_is_denied(storage, use):
    storage.refuse("forbidden", "403 Forbidden", "AccessDenied")
    with raises("s3://forbidden/W", "access is denied; check the credentials"):
        use("s3://forbidden/W")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("AccessDenied", "access is denied"),
        ("InvalidAccessKeyId", "does not accept the credentials; check AWS_ACCESS_KEY_ID"),
        ("SignatureDoesNotMatch", "does not accept the credentials; check AWS_ACCESS_KEY_ID"),
        ("ExpiredToken", "the credentials have expired"),
    ],
)
def test_sources_that_are_denied(storage, code, told):
    storage.refuse("forbidden", "403 Forbidden", code, lambda e: e["REQUEST_METHOD"] != "HEAD")
    with raises("s3://forbidden/slides", told):
        recognised("s3://forbidden/slides")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("AWS_ACCESS_KEY_ID", None, "there are no credentials; set AWS_ACCESS_KEY_ID"),
        ("AWS_PROFILE", "nobody", "The config profile (nobody) could not be found"),
        ("AWS_ENDPOINT_URL", "127.0.0.1:9", "Invalid endpoint: 127.0.0.1:9"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9", "the storage cannot be reached (Could not"),
    ],
)
def test_surroundings_that_are_not_right(storage, remote, monkeypatch, tmp_path, name, value, told):
    """Said in one sentence; and once they are right, the same process goes on."""
    import_tiles(remote)
    with monkeypatch.context() as wrong:
        wrong.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        wrong.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        wrong.setattr("s3fs.core.S3FileSystem.retries", 1)
        wrong.setitem(OPTIONS["config_kwargs"], "retries", {"total_max_attempts": 1})
        wrong.delenv(name) if value is None else wrong.setenv(name, value)
        done = CliRunner().invoke(app, ["info", str(remote)])
        assert done.exit_code == 1
        assert done.output.startswith(f"croma-sql: {remote}/warehouse.json cannot be read: {told}")
        assert done.output.count("\n") == 1
    assert croma_sql.check(remote) == []


def test_urls_that_lead_nowhere(storage):
    with raises("s3:/// names no bucket; expected s3://bucket/folder"):
        croma_sql.connect("s3:///")
    with raises("s4://bucket/W leads nowhere", "s4"):
        croma_sql.connect("s4://bucket/W")
    with raises("s3://b/a=b cannot be a warehouse", "'a=b'"):
        croma_sql.connect("s3://b/a=b")


@pytest.mark.parametrize("module", ["upath", "s3fs"])
def test_a_library_that_is_missing(monkeypatch, module):
    monkeypatch.delitem(sys.modules, "croma_sql.object_storage", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with raises("s3://b/W lies on object storage", "pip install 'croma-sql[s3]'"):
        croma_sql.connect("s3://b/W")


def test_urls_of_this_machine_are_paths(tmp_path):
    import_tiles(f"file://{tmp_path}/W")
    assert croma_sql.check(tmp_path / "W") == []


def test_other_storage_that_fsspec_knows():
    import_and_benchmark("memory://study/W")
    croma_sql.score("memory://study/W", **NULL)
    with croma_sql.connect("memory://study/W") as con:
        assert con.sql("SELECT count(*) FROM margins").fetchall() == [(40,)]
    assert croma_sql.check("memory://study/W") == []
