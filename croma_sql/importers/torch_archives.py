"""Load what PyTorch has saved, and run nothing that is in it."""

import io
import pickle
import re
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from croma_sql.errors import SourceError
from croma_sql.places import is_local

_ZIP = b"PK\x03\x04"
_BEFORE_ZIP = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # how PyTorch before 1.6 begins a file


class _NeedsMoreError(Exception):
    """An archive that asks for more than arrays."""


def _new_array(*_: Any) -> Any:
    made: Any = np.empty(0).__reduce__()
    return made[0](*made[1])


def _new_dtype(code: str, *_: Any) -> np.dtype[Any]:
    dtype = np.dtype(code, copy=True) if isinstance(code, str) else None
    if dtype is None or dtype.kind not in "fiu":
        raise _NeedsMoreError(f"an array of {code!r}")
    return dtype


def _encode(text: str, encoding: str) -> bytes:
    """Turn text to the bytes that it stands for, in pickles of the protocol that PyTorch uses."""
    if encoding != "latin1":
        raise _NeedsMoreError(f"the encoding {encoding!r}")
    return text.encode("latin1")


_OF_ARRAYS = {  # what stands for the functions that a pickled array asks for
    ("numpy.core.multiarray", "_reconstruct"): _new_array,
    ("numpy._core.multiarray", "_reconstruct"): _new_array,
    ("numpy", "ndarray"): None,  # an argument of the above
    ("numpy", "dtype"): _new_dtype,
    ("__builtin__", "bytes"): lambda: b"",  # of an array without elements
    ("_codecs", "encode"): _encode,
}


def load(path: Path) -> Any:
    """Load a tensor, a NumPy array, or a dictionary of such and of plain values.

    Tensors of a local file are mapped into memory, and read where they are used.

    Raises
    ------
    SourceError
        Not there, cut short or damaged; or an archive that would have to run code.
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise SourceError(
            f"{path} is read by PyTorch, which is missing: pip install 'croma-sql[torch]'"
        ) from None
    try:
        with path.open("rb") if is_local(path) else io.BytesIO(path.read_bytes()) as file:
            return _load(file, path if is_local(path) else None)
    except FileNotFoundError:
        raise SourceError(f"{path} does not exist") from None
    except _NeedsMoreError as error:
        raise SourceError(
            f"{path} is refused: it asks for {error}, and whatever is more than numbers could run "
            "code. Nothing of it was run. Expected a tensor of vectors, as torch.save(features, "
            "path) writes it; a model is left out by giving a folder or a glob without it"
        ) from None
    except Exception as error:  # damaged archives fail in any way
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise SourceError(
            f"{path} is not a whole PyTorch file; it may be cut short. Write or copy it again "
            f"({said})"
        ) from error


def _load(file: IO[bytes], path: Path | None) -> Any:
    start = file.read(len(_BEFORE_ZIP))
    if start == _BEFORE_ZIP:
        return _load_weights(file)
    if not start.startswith(_ZIP):
        raise ValueError("it does not begin like one")
    with zipfile.ZipFile(file) as archive:
        members = {member.filename.partition("/")[2]: member for member in archive.infolist()}
        if "constants.pkl" in members:
            raise _NeedsMoreError("a program (TorchScript)")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members.values()):
            raise ValueError("its members are compressed, which PyTorch does not do")
        try:
            return _load_weights(file, path)
        except _NeedsMoreError as error:
            if not str(error).startswith(_MADE_OF_ARRAYS):
                raise
            with archive.open(members["data.pkl"]) as pickled:
                return _Arrays(pickled).load()


def _load_weights(file: IO[bytes], path: Path | None = None) -> Any:
    import torch

    try:
        if path is not None:
            return torch.load(path, "cpu", weights_only=True, mmap=True)
        file.seek(0)
        return torch.load(file, "cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        asked = re.search(r"GLOBAL ([\w.]+)", str(error))
        raise _NeedsMoreError(asked[1] if asked else "more than tensors") from error


_MADE_OF_ARRAYS = ("numpy", "_codecs", "__builtin__")


class _Arrays(pickle.Unpickler):
    """Load NumPy arrays of numbers, which PyTorch saves but does not load as weights."""

    def find_class(self, module: str, name: str) -> Any:
        """Find what an array is made with, and nothing else."""
        if module == "torch._utils":
            raise _NeedsMoreError("NumPy arrays beside tensors")
        if (module, name) not in _OF_ARRAYS:
            raise _NeedsMoreError(f"{module}.{name}")
        return _OF_ARRAYS[module, name]

    def persistent_load(self, pid: Any) -> Any:
        """Refuse tensors beside arrays."""
        raise _NeedsMoreError("NumPy arrays beside tensors")
