"""Arrow files: the file format, the stream that Hugging Face saves, and Feather.

What a writer, or a damaged disk, has put into a file is checked before anything is read from it:
Arrow follows offsets as it finds them, and one that is wrong would end the process.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather

from croma_sql.errors import SourceError
from croma_sql.places import is_local

_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"
_ENDS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")  # of a stream; the second before Arrow 0.15


def read_arrow(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read columns of an Arrow file or stream, all of them by default; a local file is mapped.

    Raises
    ------
    SourceError
        Damaged, cut short, or of another format.
    OSError
        Not there, or it may not be read.
    """
    try:
        return _read(path, columns)
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise
        problem = str(error).strip().partition("\n")[0]
        raise SourceError(
            f"{path} is not a readable Arrow file or stream; it may be cut short, damaged or of "
            f"another format ({problem}). Write or copy it again"
        ) from error


def _read(path: Path, columns: Sequence[str] | None) -> pa.Table:
    with ExitStack() as files:
        source: Any = (
            files.enter_context(pa.memory_map(str(path)))
            if is_local(path) and path.stat().st_size
            else files.enter_context(path.open("rb"))
        )
        start = source.read(len(_FILE))
        if start.startswith(_FEATHER_1):
            source.seek(0)
            table = pa.feather.read_table(source, columns)
        elif start == _FILE:
            table = _read_ipc(pa.ipc.open_file, source, columns)
        else:
            table = _read_ipc(pa.ipc.open_stream, source, columns)
            _check_end(source, path)
        table.validate(full=True)
        return table


def _read_ipc(open_ipc: Any, source: Any, columns: Sequence[str] | None) -> pa.Table:
    source.seek(0)
    reader = open_ipc(source)
    if columns is None:
        return reader.read_all()
    wanted = sorted(reader.schema.get_field_index(column) for column in columns)
    source.seek(0)
    options = pa.ipc.IpcReadOptions(included_fields=wanted)
    return open_ipc(source, options=options).read_all().select(columns)


def _check_end(source: Any, path: Path) -> None:
    """Refuse a stream that merely stops: Arrow takes what is left of it for all."""
    longest = len(_ENDS[0])
    source.seek(-min(longest, source.seek(0, 2)), 2)
    if not source.read(longest).endswith(_ENDS):
        raise SourceError(
            f"{path} is an Arrow stream without its end; it may be cut short. Copy it again"
        )
