"""PyTorch files: what is read is what was saved, and nothing in them is run."""

import os
import pickle
import sys
import zipfile
import zlib
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from mistakes import raises
from slide_files import grid, tensor, vectors

from croma_sql.importers.listing import Options
from croma_sql.importers.recognise import recognised


def only(path, **options):
    (source,) = recognised(path, Options(**options)).sources
    return source


def tensors(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def assert_holds(source, written):
    rows = source.read(0, source.n)
    assert (source.n, source.d) == written.shape
    assert source.dtype == rows.vectors.dtype == written.dtype
    assert zlib.crc32(rows.vectors) == zlib.crc32(np.ascontiguousarray(written))
    part = source.read(1, source.n)
    assert np.array_equal(part.vectors, written[1:])
    assert part.samples.equals(rows.samples.slice(1))
    assert source.read(0, 0).samples.schema == rows.samples.schema
    assert source.read(0, 0).vectors.dtype == written.dtype


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_tensor_of_clam(tmp_path, dtype, options):
    saved = tensors(50, 8, dtype=dtype)
    source = only(tensor(tmp_path / "TCGA-3L.v2-01Z.pt", saved, **options))
    assert (source.format, source.level, source.slide_id) == ("pt", "tile", "TCGA-3L.v2-01Z")
    assert_holds(source, saved.numpy())
    assert source.read(1, 4).samples.to_pydict() == {"tile": [1, 2, 3]}


@pytest.mark.parametrize("core", ["numpy._core", "numpy.core"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_the_array_of_trident(tmp_path, monkeypatch, dtype, core):
    """TRIDENT saves what it had as an array; before NumPy 2 its module had another name."""
    path = tensor(tmp_path / "s.pt", vectors(50, dtype=dtype))
    rewrite(path, lambda pickled: pickled.replace(b"numpy._core", core.encode()))
    assert_holds(only(path), vectors(50, dtype=np.dtype(dtype).newbyteorder("=")))


@pytest.mark.parametrize("shape", [(0, 8), (0,)])
@pytest.mark.parametrize("saved", [torch.empty, np.empty])
def test_a_slide_without_tiles(tmp_path, saved, shape):
    source = only(tensor(tmp_path / "s.pt", saved(shape)))
    assert (source.level, source.n, source.d) == ("tile", 0, shape[-1] if len(shape) == 2 else 0)


def test_the_vector_of_a_slide(tmp_path):
    source = only(tensor(tmp_path / "0042.pth", tensors(8)))
    assert (source.level, source.slide_id, source.n, source.d) == ("slide", "0042", 1, 8)
    assert np.array_equal(source.read(0, 1).vectors, tensors(8).numpy()[None])
    assert source.read(0, 1).samples.shape == (1, 0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn])
def test_precisions_that_numpy_does_not_have_are_kept_in_float32(tmp_path, dtype):
    saved = tensors(50, 8, dtype=dtype)
    source = only(tensor(tmp_path / "s.pt", saved))
    assert_holds(source, saved.float().numpy())
    assert torch.equal(torch.from_numpy(source.read(0, 50).vectors).to(dtype), saved)


def test_tensors_as_they_lie(tmp_path):
    rows = {
        "transposed": tensors(8, 50).T,
        "sliced": tensors(60, 9)[5:55, 1:],
        "needs_grad": tensors(50, 8).requires_grad_(),
        "parameter": torch.nn.Parameter(tensors(50, 8)),
        "negative": torch.view_as_complex(tensors(50, 8, 2)).conj().imag,
        "batch": tensors(1, 50, 8),
    }
    for name, saved in rows.items():
        source = only(tensor(tmp_path / f"{name}.pt", saved))
        assert_holds(source, saved.detach().resolve_neg().reshape(50, 8).numpy())


def test_a_dictionary_of_tensors(tmp_path):
    saved = {
        "coords": torch.from_numpy(grid(5)),
        "features": tensors(5, 8),
        "encoder": "uni",
        "k": 2,
    }
    source = only(tensor(tmp_path / "s.pt", OrderedDict(saved)))
    assert_holds(source, tensors(5, 8).numpy())
    assert source.attributes == {"encoder": "uni", "k": 2}
    places = source.read(2, 5).samples
    assert places["x"].to_pylist() == grid(5)[2:, 0].tolist()
    assert places["coord_unit"].to_pylist() == ["px"] * 3
    assert places["tile_size"].null_count == 3
    renamed = tensor(tmp_path / "other.pt", {"tiles": tensors(5, 8), "slide": tensors(8)})
    assert_holds(only(renamed, embedding="tiles"), tensors(5, 8).numpy())


def test_a_dictionary_of_arrays(tmp_path):
    path = tensor(tmp_path / "s.pt", {"feats": vectors(5), "coords": grid(5) / 2})
    assert_holds(only(path), vectors(5))
    assert only(path).read(0, 5).samples["coord_unit"].null_count == 5


def test_a_tensor_of_a_gpu_is_read_without_one(tmp_path):
    path = tensor(tmp_path / "s.pt", tensors(5, 8))
    rewrite(
        path, lambda pickled: pickled.replace(b"\x03\x00\x00\x00cpu", b"\x06\x00\x00\x00cuda:0")
    )
    assert_holds(only(path), tensors(5, 8).numpy())


def test_threads_read_side_by_side(tmp_path):
    sources = [
        only(tensor(tmp_path / f"{i}.pt", saved + i))
        for i, saved in enumerate((tensors(50, 8), tensors(50, 8).numpy()))
    ]
    with ThreadPoolExecutor(8) as pool:
        for i, rows in pool.map(lambda i: (i, sources[i % 2].read(0, 50)), range(40)):
            assert np.array_equal(rows.vectors, tensors(50, 8).numpy() + i % 2)


def rewrite(path, change, **options):
    """Change the pickle of a saved archive."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, change(content) if name.endswith("data.pkl") else content)


# what is refused


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=str)
@pytest.mark.parametrize(
    "hidden",
    [lambda bomb: bomb, lambda bomb: {"features": bomb}, lambda bomb: [vectors(3), bomb]],
)
def test_a_pickle_bomb_is_refused_and_does_not_go_off(tmp_path, options, hidden):
    goes_off = tmp_path / "gone off"
    path = tensor(tmp_path / "s.pt", hidden(Bomb(goes_off)), **options)
    with raises(f"{path} is refused: it asks for ", "could run code", "Nothing of it was run"):
        recognised(path)
    assert not goes_off.exists()


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_bare_pickle_is_no_pytorch_file(tmp_path, protocol):
    goes_off = tmp_path / "gone off"
    (tmp_path / "s.pt").write_bytes(pickle.dumps(Bomb(goes_off), protocol))
    with raises("s.pt is not a whole PyTorch file"):
        recognised(tmp_path / "s.pt")
    assert not goes_off.exists()


@pytest.mark.parametrize(
    ("pickled", "asks_for"),
    [
        (b"cbuiltins\neval\n(X\x03\x00\x00\x001+1tR.", "builtins.eval"),
        (b"cnumpy\nload\n(X\x01\x00\x00\x00atR.", "numpy.load"),
        (b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.", "the encoding 'rot13'"),
        (b"cnumpy\ndtype\n(K\x07tR.", "an array of 7"),
        (b"cnumpy\ndtype\n(X\x02\x00\x00\x00f4tRcos\nsystem\n(X\x01\x00\x00\x00atR.", "os.system"),
    ],
)
def test_what_arrays_do_not_need(tmp_path, pickled, asks_for):
    path = tensor(tmp_path / "s.pt", vectors(3))
    rewrite(path, lambda _: b"\x80\x02cnumpy\nndarray\n0" + pickled)
    with raises(f"{path} is refused: it asks for {asks_for}"):
        recognised(path)


def test_what_is_hidden_beside_a_tensor_is_named(tmp_path):
    path = tensor(tmp_path / "s.pt", {"features": tensors(3, 2), "more": Bomb(tmp_path / "x")})
    with raises(f"{path} is refused: it asks for {os.mkdir.__module__}.mkdir"):
        recognised(path)
    path = tensor(tmp_path / "s.pt", {"features": vectors(3), "more": tensors(3, 2)})
    with raises(f"{path} is refused: it asks for NumPy arrays beside tensors"):
        recognised(path)


def test_models_are_refused(tmp_path):
    path = tensor(tmp_path / "model.pt", torch.nn.Linear(2, 2))
    with raises("asks for torch.nn.modules.linear.Linear", "a folder or a glob without it"):
        recognised(path)
    path = tensor(tmp_path / "state.pt", torch.nn.Linear(2, 3).state_dict())
    with raises("state.pt holds no vectors under 'features'", "'weight (3, 2)', 'bias (3,)'"):
        recognised(path)
    rewrite(path, lambda pickled: pickled)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("state/constants.pkl", b"")
    with raises("state.pt is refused: it asks for a program (TorchScript)"):
        recognised(path)


@pytest.mark.parametrize(
    ("saved", "parts"),
    [
        ([torch.ones(2, 3)], ["holds a list; expected a tensor"]),
        (torch.ones(2, 2, 3), ["shape (2, 2, 3); expected (n, d)"]),
        (torch.tensor(1.0), ["shape ()"]),
        (torch.ones(3, 0), ["shape (3, 0)"]),
        (torch.ones(2, 3).to_sparse(), ["expected dense numbers"]),
        (torch.ones(2, 3, device="meta"), ["expected dense numbers"]),
        (torch.ones(2, 3, dtype=torch.complex64), ["torch.complex64; expected dense numbers"]),
        (torch.ones(2, 3, dtype=torch.bool), ["torch.bool"]),
        (
            torch.ones(1, 3).expand(10**9, 3),
            ["repeats what it holds to a shape of (1000000000, 3)"],
        ),
        (np.array([["a", "b"]], object), ["asks for an array of 'O8'"]),
        (np.array([["a", "b"]]), ["asks for an array of 'U1'"]),
        (np.ones(3, [("a", object)]), ["asks for an array of 'V8'"]),
        ({"features": torch.ones(4, 3), "coords": torch.ones(3, 2)}, ["has 4 vectors", "(3, 2)"]),
    ],
)
@pytest.mark.filterwarnings("ignore:Validating sparse")
def test_what_is_no_matrix(tmp_path, saved, parts):
    path = tensor(tmp_path / "s.pt", saved)
    with raises(str(path), *parts):
        recognised(path)


@pytest.mark.parametrize("saved", [tensors(50, 8), vectors(50)], ids=["tensor", "array"])
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=str)
def test_files_that_are_cut_short(tmp_path, saved, options):
    path = tensor(tmp_path / "s.pt", saved, **options)
    whole = path.read_bytes()
    for size in (*range(0, len(whole), len(whole) // 30), len(whole) - 1):
        path.write_bytes(whole[:size])
        with raises(str(path)):
            recognised(path)


def test_damage_is_told_or_does_no_harm(tmp_path):
    path = tensor(tmp_path / "s.pt", tensors(9, 8))
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(150):
        damaged = bytearray(whole)
        for at in random.integers(0, len(whole), 4):
            damaged[at] = random.integers(256)
        path.write_bytes(damaged)
        try:
            source = only(path)
            source.read(0, source.n)
        except Exception as error:
            assert str(path) in str(error)
            assert type(error).__name__ == "SourceError"


def test_members_that_were_compressed(tmp_path):
    path = tensor(tmp_path / "s.pt", tensors(9, 8))
    rewrite(path, lambda pickled: pickled, compression=zipfile.ZIP_DEFLATED)
    with raises(f"{path} is not a whole PyTorch file", "members are compressed"):
        recognised(path)


def test_a_file_that_changes_after_it_was_recognised(tmp_path):
    path = tensor(tmp_path / "s.pt", tensors(9, 8))
    source = only(path)
    tensor(path, tensors(8, 8))
    with raises(f"{path} has changed meanwhile"):
        source.read(0, 9)
    path.unlink()
    with raises(f"{path} does not exist"):
        source.read(0, 9)


def test_without_pytorch(tmp_path, monkeypatch):
    path = tensor(tmp_path / "s.pt", tensors(9, 8))
    monkeypatch.setitem(sys.modules, "torch", None)
    with raises(f"{path} is read by PyTorch", "pip install 'croma-sql[torch]'"):
        recognised(path)
