"""What there is now, of all that stored tables are made of; each is looked at once."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from croma_sql.errors import WarehouseError
from croma_sql.places import CHANGED
from croma_sql.warehouse import layout
from croma_sql.warehouse.benchmarks.selects import read_benchmark
from croma_sql.warehouse.derived.harmonised import asked_rows
from croma_sql.warehouse.identities import identity
from croma_sql.warehouse.parquet import read_metadata
from croma_sql.warehouse.scoring.known_rows import question, read_known
from croma_sql.warehouse.scoring.made_of import digest_of, rows_of


class Present:
    """Vectors, samples and benchmarks of a warehouse, as digests.

    Digests of vectors are those of their files (`croma_sql.warehouse.identities`). A benchmark is
    run only where nobody has kept what its SELECT gives over these samples.
    """

    def __init__(self, files: layout.Listing) -> None:
        self.files = files
        self.encoders: dict[str, list[layout.EmbeddingsFile]] = {}
        for file in files.embeddings:
            self.encoders.setdefault(file.encoder, []).append(file)
        self._vectors: dict[str, list[str]] = {}
        self._about: dict[Path, dict[str, Any]] = {}

    def vectors(self, encoder: str) -> list[str]:
        """Digests of the files of an encoder's vectors.

        Raises
        ------
        SourceError
            One of them cannot be read.
        """
        if encoder not in self._vectors:
            paths = [file.path for file in self.encoders.get(encoder, [])]
            self._vectors[encoder] = [identity(path) for path in paths]
        return self._vectors[encoder]

    def about(self, path: Path) -> dict[str, Any]:
        """Metadata of a file of vectors.

        Raises
        ------
        SourceError
            It cannot be read.
        """
        if path not in self._about:
            self._about[path] = read_metadata(path)
        return self._about[path]

    def rows(self, benchmark: str, keep: Sequence[str] | None = None) -> str:
        """Digest of the rows of a benchmark, or of what harmonising on it takes.

        Parameters
        ----------
        keep : what harmonising keeps

        Raises
        ------
        CromaSqlError
            The benchmark fails.
        """
        names = None if keep is None else tuple(keep)
        asked = self._question(benchmark, names)
        if asked in self._known:
            return self._known[asked]
        found = _rows(self.files.root, benchmark, names, asked)
        if self._question(benchmark, names) != asked:
            raise WarehouseError(f"benchmark {benchmark!r} or its samples changed {CHANGED}")
        return found

    def _question(self, benchmark: str, keep: tuple[str, ...] | None) -> str:
        select = _read(self.files.benchmarks[benchmark])
        return question(select, self.files.samples, keep)

    @cached_property
    def _known(self) -> dict[str, str]:
        return read_known(self.files.root)


@lru_cache(maxsize=1024)
def _rows(root: Path, benchmark: str, keep: tuple[str, ...] | None, asked: str) -> str:
    """Run a benchmark, once for each question."""
    if keep is None:
        return rows_of(read_benchmark(root, benchmark))
    return digest_of(asked_rows(root, benchmark, keep)[1])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise WarehouseError(f"{path} cannot be read: {error.strerror or error}") from error
