"""A finished run of a suite that is written to one JSON file, and what a run may be asked for."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from matchwood.errors import MatchwoodError, StorageError

FOLDER = Path("bench-results")
"""Where results go unless a file or another folder is given."""


class KeptRun:
    """What was measured, and the file that it was written to."""

    def __init__(self, data: dict[str, Any], path: Path | None = None) -> None:
        self.data, self.path = data, path

    def to_json(self) -> str:
        return json.dumps(self.data, indent=1)

    def write(self, out: Path | None = None) -> Path:
        """Write the JSON to a .json file, or into a folder under a name of its own."""
        target = FOLDER if out is None else out
        if target.suffix != ".json":
            stamp = self.data["started"][:19].replace("-", "").replace(":", "").replace("T", "-")
            target = target / f"{self.data['suite']}-{self.data['preset']}-{stamp}.json"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self.to_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise StorageError(
                f"expected a result file that can be written, found {error.strerror}: {target}"
            ) from None
        self.path = target
        return target


def check_preset(where: str, preset: str, known: Iterable[str]) -> None:
    """Raise unless there is such a preset; `where` names the suite."""
    known = list(known)
    if preset not in known:
        raise MatchwoodError(
            f"{where}: expected a preset among {', '.join(known)}, found {preset!r}"
        )


def check_parts(where: str, what: str, only: Iterable[str], known: Collection[str]) -> None:
    """Raise unless all parts that are asked for exist; `what` they are called."""
    unknown = sorted(set(only) - set(known))
    if unknown:
        raise MatchwoodError(
            f"{where}: expected {what} among {', '.join(known)}, found {', '.join(unknown)}"
        )
