"""How a benchmark is written: comment lines that say what it is bound to, then one SELECT."""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from croma_sql.errors import BenchmarkError

ALL = "all"
OnUndefined = Literal["error", "null"]

_LINE = re.compile(r"--\s*(datasets|undefined):[ \t]*(.*)")


@dataclass(frozen=True, slots=True)
class BenchmarkText:
    """What a file of ``benchmarks/`` says.

    select : one SELECT over samples
    datasets : those whose samples it sees; ``'all'``; or None where no line says so: then it sees
        every dataset but those that pooling made
    on_undefined : whether samples without a margin are an error, or kept as NULL
    """

    select: str
    datasets: tuple[str, ...] | Literal["all"] | None = None
    on_undefined: OnUndefined = "error"

    def written(self) -> str:
        """Write it as a file, which remains one SELECT that any DuckDB runs.

        Examples
        --------
        >>> print(BenchmarkText("FROM samples", ("a", "Łódź")).written(), end="")
        -- datasets: ["a", "Łódź"]
        FROM samples
        """
        lines = []
        if self.datasets == ALL:
            lines.append(f"-- datasets: {ALL}")
        elif self.datasets is not None:
            lines.append(f"-- datasets: {json.dumps(self.datasets, ensure_ascii=False)}")
        if self.on_undefined != "error":
            lines.append(f"-- undefined: {self.on_undefined}")
        return "\n".join([*lines, self.select.strip(), ""])


def read_text(name: str, text: str) -> BenchmarkText:
    r"""Take the lines on top of a SELECT that say what a benchmark is bound to.

    Raises
    ------
    BenchmarkError
        A line that begins as one of these and says something else.

    Examples
    --------
    >>> read_text("b", '-- datasets: ["a"]\nFROM samples')
    BenchmarkText(select='FROM samples', datasets=('a',), on_undefined='error')
    """
    found: dict[str, Any] = {}
    rest = text.lstrip()
    while line := _LINE.match(rest):
        what, value = line[1], line[2].strip()
        found["on_undefined" if what == "undefined" else what] = _READ[what](name, value)
        rest = rest[line.end() :].lstrip()
    return BenchmarkText(rest.strip(), **found)


def _datasets(name: str, value: str) -> tuple[str, ...] | str:
    if value == ALL:
        return ALL
    try:
        names = json.loads(value)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise BenchmarkError(
            f"benchmark {name!r}: the line '-- datasets: {value}' is neither a list of names, such "
            f'as ["biopsies"], nor {ALL}; correct it, or begin the comment with another word'
        )
    return tuple(dict.fromkeys(names))


def _on_undefined(name: str, value: str) -> str:
    if value not in ("error", "null"):
        raise BenchmarkError(
            f"benchmark {name!r}: the line '-- undefined: {value}' says neither error nor null; "
            "correct it, or begin the comment with another word"
        )
    return value


_READ = {"datasets": _datasets, "undefined": _on_undefined}
