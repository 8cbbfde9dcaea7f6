"""What lies below a source, and what the user said about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Listing:
    """All files of a source, found once: sidecars and manifests are looked up here.

    root : the folder that was given, or the folder of the one file
    paths : sorted; a .zarr folder is one path
    """

    root: Path
    paths: Sequence[Path]

    def beside(self, path: Path, name: str) -> Path | None:
        """Find the file of that name in the folder of ``path``."""
        found = path.parent / name
        return found if found in self._known else None

    @cached_property
    def _known(self) -> frozenset[Path]:
        return frozenset(self.paths)


@dataclass(frozen=True, slots=True)
class Options:
    """What the user said of a source.

    as_format : a name of `croma_sql.importers.recognise.FORMATS`, or None: to be recognised
    embedding : the dataset, column or obsm key that holds the vectors; None: the writer's own
    sample_id : name of the id column, in sources that have columns
    samples : paths of tables of attributes; PathoROB's keys are made of one
    slide_id : 'stem', the file's name, or 'path': with its folders below the source
    """

    as_format: str | None = None
    embedding: str | None = None
    sample_id: str = "sample_id"
    samples: Sequence[Path] = ()
    slide_id: Literal["stem", "path"] = "stem"


def slide_id_of(path: Path, listing: Listing, options: Options, suffixes: Sequence[str]) -> str:
    """Name a slide by its file, without the first of ``suffixes`` that it ends with.

    Examples
    --------
    >>> listing = Listing(Path("features"), [Path("features/a/TCGA-AA.v2_patches.h5")])
    >>> slide_id_of(listing.paths[0], listing, Options(), ("_patches.h5", ".h5"))
    'TCGA-AA.v2'
    >>> slide_id_of(listing.paths[0], listing, Options(slide_id="path"), ("_patches.h5",))
    'a/TCGA-AA.v2'
    """
    name = path.name
    suffix = next((suffix for suffix in suffixes if name.lower().endswith(suffix)), "")
    stem = name[: len(name) - len(suffix)]
    if options.slide_id == "stem":
        return stem
    return "/".join([*path.relative_to(listing.root).parent.parts, stem])
