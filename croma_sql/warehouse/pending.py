"""What a removal that has begun is to delete: written before, deleted last.

While the file exists, the warehouse may be half of what it was. So it is opened only to be checked,
and to run the same removal again, which ends it.
"""

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path

from croma_sql.errors import WarehouseError
from croma_sql.warehouse.publish import publishing

PENDING = "pending.json"


@dataclass(frozen=True, slots=True)
class Pending:
    """A removal that has begun.

    what : 'encoder', 'dataset', 'benchmark' or 'scores'
    arguments : names and options of the command after the warehouse
    files : paths below the warehouse
    encoders, datasets, benchmarks, scores : see `croma_sql.warehouse.removing.Removed`
    """

    what: str
    arguments: list[str]
    files: list[str]
    encoders: list[str]
    datasets: list[str]
    benchmarks: list[str]
    scores: list[list[str]]

    def is_of(self, what: str, arguments: list[str]) -> bool:
        """Tell whether a command is the one that began it."""
        return (self.what, self.arguments) == (what, arguments)


def write_pending(root: Path, pending: Pending) -> None:
    """List what is to be deleted."""
    with publishing(root / PENDING) as file:
        file.write(json.dumps(asdict(pending)).encode())


def read_pending(root: Path) -> Pending | None:
    """Read the list of a removal that has begun; None where there is none.

    Raises
    ------
    WarehouseError
        It cannot be read.
    """
    path = root / PENDING
    try:
        return Pending(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, OSError) as error:
        raise WarehouseError(
            f"{path}, the list of a removal that has begun, cannot be read: {error}. Delete it and "
            "run that removal again"
        ) from error


def refuse_pending(root: Path) -> None:
    """Refuse a warehouse where a removal has begun and not ended.

    Raises
    ------
    WarehouseError
        It has; the message says how to end it.
    """
    pending = read_pending(root)
    if pending is not None:
        raise WarehouseError(begun(root, pending))


def begun(root: Path, pending: Pending) -> str:
    """Say that a removal has begun, and how to end it."""
    command = ["croma-sql", "remove", pending.what, str(root), *pending.arguments]
    return (
        f"{root / PENDING}: a removal is under way or was interrupted. Wait, or end it with the "
        f"same command: {shlex.join(command)}"
    )
