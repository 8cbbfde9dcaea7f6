"""What is compared with what: plain data, and nothing that loads a vector."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CAMELYON, TCGA, SUBSET = 20_400, 5_760, 1_200
SELECT = 'SELECT sample_id, label, confounder, "group" AS group_id FROM samples'
STRATA = """
    SELECT label, confounder, count(*) AS n, median(margin) AS croma, f0(margin) AS f0,
        ltm(margin, 0.10) AS ltm10
    FROM margins GROUP BY ALL ORDER BY ALL
"""
SLOW = "croma: at most 2 laps; --all-laps for as many as the others"


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a table.

    lap : function in `lap.LAPS`; or
    command : a process that is timed as a whole, ``{folder}`` and ``{warehouse}`` to be filled in
    data : fields of `inputs.Data`
    role : 'ours', 'product' or 'croma'; ratios are to the product and croma of the same group
    slow : at most two laps unless all are asked for
    """

    name: str
    lap: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    role: str = ""
    group: str = ""
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One table."""

    name: str
    about: str
    variants: tuple[Variant, ...]
    notes: tuple[str, ...] = ()
    memory: bool = False


def all_cases(scale: float) -> dict[str, Case]:
    """Every case by name, with ``scale`` times the rows."""

    def sized(n: int, of: int = 1) -> int:
        return max(2 * of, round(n * scale / of) * of)

    cases = [make(sized) for make in (_camelyon, _confounder, _panel, _tcga, _paired)]
    cases += [make(sized) for make in (_cells, _scopes, _memory, _growth, _cli, _bootstrap)]
    cases += [make(sized) for make in (_silhouettes, _imports)]
    cases.append(_acquisitions(sized))
    return {case.name: case for case in cases}


Sized = Callable[..., int]


def _camelyon(sized: Sized) -> Case:
    data = {"name": "camelyon", "manifest": "camelyon", "n": sized(CAMELYON), "d": 1536}
    return Case(
        "camelyon",
        "Camelyon: 2 labels x 2 centres, 1,536 x float32, m = 5",
        (
            *_usual(data, m=5),
            Variant("faiss flat, per cell and type", "faiss", data, {"m": 5}),
            Variant("scikit-learn, per cell and type", "sklearn", data, {"m": 5}),
        ),
        (SLOW,),
    )


def _usual(data: dict[str, Any], m: int) -> tuple[Variant, ...]:
    """List the comparison that most cases make; validation is croma's work too."""
    options = {"m": m}
    return (
        Variant("search", "search", data, options, role="ours"),
        Variant("build_scope + search", "search", data, options | {"scope": True}),
        Variant("croma_sql.margins", "margins", data, options),
        Variant("product of typed blocks", "product", data, options, role="product"),
        Variant("croma 1.0.1", "croma", data, options, role="croma", slow=True),
    )


def _confounder(sized: Sized) -> Case:
    data = {"name": "confounder", "manifest": "camelyon", "n": sized(CAMELYON), "d": 1536}
    data |= {"label": 0.05, "confounder": 1.5}
    about = "the same size, but the centre decides who is near"
    return Case("confounder", about, _usual(data, m=5), (SLOW,))


def _panel(sized: Sized) -> Case:
    """Give vectors directions so weak that k-NN errs and neighbours are of every type."""
    data = {"name": "panel", "manifest": "camelyon", "n": sized(CAMELYON), "d": 1536}
    data |= {"label": 0.12, "confounder": 0.12, "group": 0.1}
    options = {"m": 20, "k": 101}
    full, less = ({**options, "accuracies": accuracies} for accuracies in (True, False))
    return Case(
        "panel",
        "Camelyon, m = 20 and the 101 nearest of any type: CRoMa, RI, MaRI, k-NN accuracies",
        (
            Variant("all, with accuracies", "panel", data, full, role="ours"),
            Variant("without accuracies", "panel", data, less),
            Variant("search", "search", data, options),
            Variant("product of all pairs", "triangle", data, options, role="product"),
            Variant("croma 1.0.1: RI, MaRI, CRoMa", "croma_panel", data, options, role="croma",
                    slow=True),
        ),
        (SLOW, "croma has the accuracy of the label only; its classes share no neighbours"),
    )  # fmt: skip


def _tcga(sized: Sized) -> Case:
    data = {"name": "tcga", "manifest": "tcga", "n": sized(TCGA), "d": 1024}
    return Case(
        "tcga", "TCGA: 4 labels x 4 centres, 1,024 x float32, m = 5", _usual(data, m=5), (SLOW,)
    )


def _paired(sized: Sized) -> Case:
    n = sized(94 * SUBSET, SUBSET)
    data = {"name": "paired", "manifest": "paired", "n": n, "d": 768}
    about = f"{n // SUBSET} subsets of 2 x 2 cells, {SUBSET:,} x 768 float32 each, m = 5"
    return Case("paired", about, _many(data, m=5), (SLOW,))


def _many(data: dict[str, Any], m: int) -> tuple[Variant, ...]:
    options = {"m": m}
    return (
        Variant("search_all", "search_all", data, options, role="ours"),
        Variant("build_scopes + search_all", "search_all", data, options | {"scope": True}),
        Variant("product of typed blocks", "product", data, options, role="product"),
        Variant(
            "croma 1.0.1, paired design",
            "croma",
            data,
            options | {"paired": True},
            role="croma",
            slow=True,
        ),
    )


def _cells(sized: Sized) -> Case:
    data = {"name": "cells", "manifest": "cells", "n": sized(20_000), "d": 50}
    about = "30 unbalanced cells (6 x 5), 50 x float32, m = 5"
    return Case("cells", about, _usual(data, m=5), (SLOW,))


def _scopes(sized: Sized) -> Case:
    n = sized(66_000, 22)
    data = {"name": "scopes", "manifest": "scopes", "n": n, "d": 64}
    about = f"{n // 22:,} scopes of 4 to 40 rows, 64 x float32, m = 1"
    return Case("scopes", about, _many(data, m=1), (SLOW,))


def _memory(sized: Sized) -> Case:
    shapes = ((CAMELYON, 1536, "float32"), (CAMELYON, 1536, "float16"), (60_000, 1024, "float16"))
    variants = []
    for rows, d, dtype in shapes:
        n = sized(rows)
        data = {"name": f"memory_{n}_{dtype}", "manifest": "grid", "n": n, "d": d, "dtype": dtype}
        name = f"{n:,} x {d:,} {dtype}"
        options = {"m": 5, "scope": True}
        variants.append(Variant(name, "search", data, options, group=name, role="ours"))
    about = "peak memory of build_scope + search, the vectors in memory, m = 5"
    return Case("memory", about, tuple(variants), memory=True)


def _growth(sized: Sized) -> Case:
    shapes = [(sized(n), 384) for n in (5_000, 10_000, 20_000, 40_000, 80_000)]
    shapes += [(sized(10_000), d) for d in (64, 256, 1024, 4608)]
    variants = []
    for n, d in shapes:
        data = {"name": f"growth_{n}_{d}", "manifest": "grid", "n": n, "d": d}
        size = f"{n:,} x {d:,}"
        variants += [
            Variant(f"{size} search", "search", data, {"m": 5}, role="ours", group=size),
            Variant(f"{size} product", "product", data, {"m": 5}, role="product", group=size),
        ]
    return Case("growth", "search and product as n and d grow, 2 x 2 cells, m = 5", tuple(variants))


def _cli(sized: Sized) -> Case:
    data = {"name": "cli", "manifest": "camelyon", "n": sized(CAMELYON), "d": 1536}
    data["dtype"] = "float16"
    vectors, manifest, warehouse = "{folder}/cli.npy", "{folder}/cli.csv", "{warehouse}"
    steps = {
        "import": ("import", "embeddings", vectors, "--to", warehouse, "--encoder", "e",
                   "--dataset", "camelyon", "--samples", manifest),
        "benchmark": ("benchmark", warehouse, "b", SELECT),
        "score": ("score", warehouse),
        "score again: up to date": ("score", warehouse),
        "sql: margins by class x centre": ("sql", warehouse, STRATA),
    }  # fmt: skip
    commands = (
        Variant(
            f"croma-sql {name}",
            data=data,
            command=("croma-sql", *step),
            group="" if name == "score" else "nothing that croma does",
        )
        for name, step in steps.items()
    )
    croma = Variant("croma 1.0.1, m = 5", "croma", data, {"m": 5}, role="croma", slow=True)
    margins = Variant("margins from Python", "warehouse", data, role="ours")
    notes = (SLOW, "croma-sql: whole processes; the others without imports and loading")
    about = "the command line, Camelyon, 1,536 x float16"
    return Case("cli", about, (*commands, margins, croma), notes)


def _bootstrap(sized: Sized) -> Case:
    """Take features of vectors for the margins of as many encoders."""
    data = {"name": "bootstrap", "manifest": "camelyon", "n": sized(CAMELYON), "d": 26}
    one = {"encoders": 1, "statistics": ["croma"]}
    return Case(
        "bootstrap",
        f"2,000 draws of the groups of {data['n']:,} margins",
        (
            Variant("26 encoders: croma, f0, ltm10", "bootstrap", data,
                    {"encoders": 26, "statistics": ["croma", "f0", "ltm10"]}, group="26"),
            Variant("26 encoders: ranks", "rank_stability", data, group="26 ranks"),
            Variant("one encoder: croma", "bootstrap", data, one, role="ours"),
            Variant("croma 1.0.1, one encoder", "croma_bootstrap", data, role="croma", slow=True),
        ),
        (SLOW,),
    )  # fmt: skip


def _acquisitions(sized: Sized) -> Case:
    n = sized(5 * 384, 5)
    data = {"name": "acquisitions", "manifest": "acquired", "n": n, "d": 2560, "label": 0.6}
    options = {"acquisitions": 5, "permutations": 999}
    return Case(
        "acquisitions",
        f"{n // 5} units x 5 acquisitions, 2,560 x float32, all metrics, 999 permutations",
        (
            Variant("compare", "consistency", data, options, role="ours"),
            Variant("croma_sql.consistency", "consistency", data, options | {"scope": True}),
            Variant("compare, no permutations", "consistency", data,
                    options | {"permutations": 0}),
            Variant("numpy and scipy", "by_definition", data, options),
        ),
        ("also measured: profile r, effective rank; numpy and scipy go without them",),
    )  # fmt: skip


def _silhouettes(sized: Sized) -> Case:
    data = {"name": "silhouettes", "manifest": "camelyon", "n": sized(CAMELYON), "d": 1536}
    return Case(
        "silhouettes",
        "FM-SI of Camelyon: cosine silhouettes of 2 centres, 1,536 x float32",
        (
            Variant("croma_sql.silhouettes", "silhouettes", data, role="ours"),
            Variant("scikit-learn, silhouette_samples", "sklearn_silhouettes", data),
        ),
        ("scikit-learn measures all pairs of rows, in float32 chunks of 1 GiB",),
        memory=True,
    )


def _imports(sized: Sized) -> Case:
    variants = []
    n = sized(200)
    for layout, about in (
        ("trident", "chunks of 1 row"),
        ("clam", "chunks of 32 rows"),
        ("contiguous", "no chunks"),
    ):
        data = _slides(n, layout)
        group = f"{n} slides, {about}"
        options = {"slides": data["name"]}
        variants += [
            Variant(f"{group}: import", "import_slides", data, options, role="ours", group=group),
            Variant(f"{group}: h5py loop", "h5py_loop", data, options, role="product", group=group),
        ]
    more = {"there": ["f"]}, {"there": ["e"]}
    for options, about in zip(more, ("a second encoder", "nothing new"), strict=True):
        data = _slides(n, "clam")
        given = options | {"slides": data["name"]}
        variants.append(Variant(f"{n} slides, {about}", "import_slides", data, given, group=about))
    for some in (sized(50), sized(100), sized(400)):
        data = _slides(some, "clam")
        options = {"slides": data["name"]}
        variants.append(Variant(f"{some} slides", "import_slides", data, options, group=str(some)))
    return Case(
        "imports",
        "slides of 2,000 x 1,024 x float16 from .h5 into a warehouse, against only reading them",
        tuple(variants),
        ("product: a plain h5py loop that reads vectors and coordinates; files are in the cache",),
    )


def _slides(n: int, layout: str) -> dict[str, Any]:
    name = f"slides_{layout}_{n}"
    return {"name": name, "manifest": f"slides {layout}", "n": n, "d": 1024, "dtype": "float16"}
