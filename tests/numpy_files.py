"""Damaged and hostile .npy and .npz files."""

import io
import zipfile

import numpy as np


def npy(array, **options):
    """Return the bytes of a .npy file."""
    content = io.BytesIO()
    np.save(content, array, **options)
    return content.getvalue()


def archive(path, arrays, compression=zipfile.ZIP_STORED):
    """Write an archive of arrays, or of bytes that say they are."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, array in arrays.items():
            file.writestr(f"{name}.npy", array if isinstance(array, bytes) else npy(array))


def forge(path, said, name):
    """Let an archive say of a member that it unpacks to that many bytes."""
    content = bytearray(path.read_bytes())
    at = content.rindex(f"{name}.npy".encode()) - 46  # its entry in the directory
    assert content[at : at + 4] == b"PK\x01\x02"
    content[at + 24 : at + 28] = said.to_bytes(4, "little")
    path.write_bytes(content)


def objects():
    """Return the bytes of an array of Python objects."""
    return npy(np.array([["a", None]], dtype=object), allow_pickle=True)


def bomb(path, name, shape):
    """Write an array of a few bytes, of which header and directory say that shape."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    archive(path, {name: header.getvalue() + bytes(4096)}, zipfile.ZIP_DEFLATED)
    forge(path, len(header.getvalue()) + np.prod(shape).item() * 4, name)
